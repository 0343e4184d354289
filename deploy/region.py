"""The region of a deployment: the environment's, or the profile's. deploy/region.js finds the same region for osls."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

import botocore.session
from botocore.exceptions import ProfileNotFound

DEFAULT: Final = "us-east-1"


def region(environ: Mapping[str, str] = os.environ) -> str:
    """Return what osls finds: boto3 does not read AWS_REGION, and of two profiles it takes the other one."""
    if named := environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION"):
        return named
    profile = environ.get("AWS_PROFILE") or environ.get("AWS_DEFAULT_PROFILE") or None
    try:
        found = botocore.session.Session(profile=profile).get_scoped_config().get("region")
    except ProfileNotFound:  # the code that needs the credentials reports it
        found = None
    return str(found) if found else DEFAULT
