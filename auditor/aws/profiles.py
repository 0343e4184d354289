"""Read the user's AWS files by the SDK, and say what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import botocore.session
from botocore import exceptions as sdk

from auditor.errors import UsageError


def endpoint_of_profile(profile: str | None) -> str | None:
    """Return the endpoint_url that a profile sets in the user's AWS files; None if it sets none."""
    with file_errors():
        session = botocore.session.Session(profile=profile)
        found = session.get_scoped_config().get("endpoint_url")
    return str(found) if found else None


def profile_missing(error: sdk.ProfileNotFound) -> UsageError:
    """Return the error for a profile that the AWS files do not have. --profile names it, or AWS_PROFILE."""
    name = str(error.kwargs["profile"])
    return UsageError(
        f"there is no AWS profile {name[:100]!r}: see `aws configure list-profiles`, and fix --profile or AWS_PROFILE"
    )


@contextmanager
def file_errors() -> Iterator[None]:
    """Convert the SDK's exceptions on the AWS files, within this `with` block, to the auditor's errors."""
    try:
        yield
    except sdk.ProfileNotFound as error:
        raise profile_missing(error) from error
    except sdk.BotoCoreError as error:
        raise UsageError(f"the AWS configuration files cannot be used: {error}") from error
