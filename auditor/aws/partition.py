"""Tell the AWS partition of a region."""

from __future__ import annotations

from functools import cache


@cache
def partition_of(region: str | None) -> str:
    """Return the partition of a region (aws, aws-cn ..) by botocore's table; "aws" for None and for unknown regions."""
    from botocore import exceptions, session  # few runs ask for a partition

    try:
        return str(session.Session().get_partition_for_region(region)) if region else "aws"
    except exceptions.UnknownRegionError:
        return "aws"
