"""The AWS partition of a region."""

from __future__ import annotations

import botocore.session
from botocore.exceptions import UnknownRegionError


def partition_of(region: str | None) -> str:
    """aws, aws-cn, aws-us-gov ... of a region, by botocore's own table; aws for None and for what is none of AWS's."""
    try:
        return str(botocore.session.Session().get_partition_for_region(region)) if region else "aws"
    except UnknownRegionError:
        return "aws"
