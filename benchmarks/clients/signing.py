"""A minimal Signature Version 4 for GET and HEAD, for the bare clients."""

from __future__ import annotations

import hashlib
import hmac
import time
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

EMPTY: Final = hashlib.sha256(b"").hexdigest()


@dataclass(slots=True)
class Credentials:
    """An access key for one region; the derived key is computed once a day."""

    access: str
    secret: str
    region: str
    _day: str = ""
    _key: bytes = field(default=b"", repr=False)

    def key(self, day: str) -> bytes:
        if day != self._day:
            key = f"AWS4{self.secret}".encode()
            for part in (day, self.region, "s3", "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._day, self._key = day, key
        return self._key


def sign(credentials: Credentials, method: str, host: str, path: str, query: str, now: float) -> dict[str, str]:
    """The headers to send. path, query: encoded; the query is sorted."""
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    day = moment[:8]
    scope = f"{day}/{credentials.region}/s3/aws4_request"
    signed = "host;x-amz-content-sha256;x-amz-date"
    headers = f"host:{host}\nx-amz-content-sha256:{EMPTY}\nx-amz-date:{moment}\n"
    canonical = f"{method}\n{path}\n{query}\n{headers}\n{signed}\n{EMPTY}"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    signature = hmac.digest(
        credentials.key(day), f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{digest}".encode(), "sha256"
    ).hex()
    return {
        "Host": host,
        "x-amz-content-sha256": EMPTY,
        "x-amz-date": moment,
        "Authorization": f"AWS4-HMAC-SHA256 Credential={credentials.access}/{scope}, SignedHeaders={signed},"
        f" Signature={signature}",
    }


def object_request(operation: str, bucket: str, key: str) -> tuple[str, str, str]:
    """Method, path and query of a HEAD or of GetObjectAcl."""
    path = f"/{bucket}/{quote(key)}"
    return ("HEAD", path, "") if operation == "head" else ("GET", path, "acl=")
