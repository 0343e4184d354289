"""Find out whose rules of access a server follows: those of AWS, those of the Ceph object gateway (RGW), or its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from auditor.model.bucket import Semantics

DNS_SUFFIXES: Final = (
    "amazonaws.com",
    "api.aws",
    "amazonaws.com.cn",
    "api.amazonwebservices.com.cn",
    "amazonaws.eu",
    "api.amazonwebservices.eu",
    "c2s.ic.gov",
    "api.aws.ic.gov",
    "sc2s.sgov.gov",
    "api.aws.scloud",
    "cloud.adc-e.uk",
    "api.cloud-aws.adc-e.uk",
    "csp.hci.ic.gov",
    "api.aws.hci.ic.gov",
)
"""The ends of the host names of AWS's partitions (partitions.json of botocore)."""

_RGW_REQUEST: Final = re.compile(r"tx[0-9a-f]+-[0-9a-f]{10}-[0-9a-f]+-\S+")
"""The form of RGW's request IDs, such as tx00000e0f3d410cc037725-006b03debd-1017-default. OpenStack Swift's IDs have a
similar form; Swift also sends its ID as x-trans-id."""


def semantics_of(endpoint: str | None, headers: Mapping[str, str]) -> Semantics:
    """Return the kind of server: AWS, Ceph or another.

    endpoint: the URL that the user set; None for AWS's own. headers: those of the answer to HeadBucket, even of a
    refusal, by lower-case name. A server behind a custom endpoint that says `Server: AmazonS3` is taken for a way to
    AWS, or for a copy of it.
    """
    if endpoint is None or _is_at_aws(urlsplit(endpoint).hostname or ""):
        return Semantics.AWS
    server = headers.get("server", "")
    if server == "AmazonS3":
        return Semantics.AWS
    by_rgw = "x-trans-id" not in headers and _RGW_REQUEST.fullmatch(headers.get("x-amz-request-id", ""))
    if by_rgw or server.startswith("Ceph Object Gateway") or any(name.startswith("x-rgw-") for name in headers):
        return Semantics.CEPH
    return Semantics.OTHER


def _is_at_aws(host: str) -> bool:
    return f".{host.rstrip('.').lower()}".endswith(tuple(f".{suffix}" for suffix in DNS_SUFFIXES))
