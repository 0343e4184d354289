"""Call DynamoDB without the SDK's layers, which takes a third of the CPU.

A call is one attempt. If it fails, the caller repeats it through the SDK, which has retries and error texts. Therefore
every call must be repeatable. FirstCallGate does not guard these calls. So the first call of a client has to end before
others begin; the ledger sees to that when it is opened.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
import zlib
from functools import lru_cache
from json import JSONDecodeError
from typing import Any, Final
from urllib.parse import urlsplit

from botocore.awsrequest import AWSPreparedRequest, HeadersDict
from botocore.exceptions import BotoCoreError, ConnectTimeoutError

from auditor.aws.first_call import full_patience
from auditor.errors import CallFailed
from auditor.model.version import VERSION

_CONTENT_TYPE: Final = "application/x-amz-json-1.0"
_ANSWERS: Final = frozenset({"ConditionalCheckFailedException", "TransactionCanceledException"})
"""Errors that are answers to a call, and that no repetition changes."""


class JsonCalls:
    """Makes calls without the SDK's layers, over the connections and with the credentials of an SDK client."""

    def __init__(self, client: Any, session: Any, target: str) -> None:
        """session: the client's boto3 session. target: the prefix of x-amz-target, such as DynamoDB_20120810."""
        self._url: str = client.meta.endpoint_url.rstrip("/") + "/"
        self._host = urlsplit(self._url).netloc
        self._plain = urlsplit(self._url).path == "/"
        self._scope = client.meta.region_name, client.meta.service_model.signing_name
        self._target = target
        self._http = client._endpoint.http_session
        self._client, self._answered = client, False
        self._session = session

    def send(self, operation: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Make one call, and return its answer; None if the SDK has to repeat it. Raises CallFailed for _ANSWERS, and
        for a first call whose connection is not made in time.
        """
        credentials = self._session.get_credentials() if self._plain else None
        if credentials is None:
            return None
        body = json.dumps(arguments).encode()
        try:
            frozen = credentials.get_frozen_credentials()
            headers = self._signed(operation, body, frozen.access_key, frozen.secret_key, frozen.token)
            answer = self._http.send(AWSPreparedRequest("POST", self._url, headers, body, False))
            content: bytes = answer.content
            found = json.loads(content)
        except ConnectTimeoutError as error:
            if self._answered:
                return None
            raise CallFailed(operation, "ConnectionError", message=str(error)[:500]) from error
        except (BotoCoreError, JSONDecodeError, UnicodeDecodeError):
            return None
        if not self._answered:
            self._answered = True
            full_patience(self._client)
        crc = zlib.crc32(content)
        if not isinstance(found, dict) or answer.headers.get("x-amz-crc32", f"{crc}") != f"{crc}":
            return None
        code = str(found.get("__type", "")).rpartition("#")[2]
        if answer.status_code == 400 and code in _ANSWERS:
            raise CallFailed(operation, code, 400, str(found.get("message") or found.get("Message") or "")[:500])
        return found if answer.status_code == 200 else None

    def _signed(self, operation: str, body: bytes, access: str, secret: str, token: str | None) -> HeadersDict:
        """Return the headers of a call, with its signature (AWS Signature Version 4)."""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        region, service = self._scope
        signed = {"host": self._host, "x-amz-date": stamp, "x-amz-target": f"{self._target}.{operation}"}
        if token:
            signed["x-amz-security-token"] = token
        names = ";".join(sorted(signed))
        lines = "".join(f"{name}:{signed[name]}\n" for name in sorted(signed))
        canonical = f"POST\n/\n\n{lines}\n{names}\n{hashlib.sha256(body).hexdigest()}"
        scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        key = _signing_key(secret, stamp[:8], region, service)
        signature = hmac.digest(key, text.encode(), "sha256").hex()
        authorization = f"AWS4-HMAC-SHA256 Credential={access}/{scope}, SignedHeaders={names}, Signature={signature}"
        rest = {"content-type": _CONTENT_TYPE, "user-agent": f"s3-auditor/{VERSION}", "authorization": authorization}
        return HeadersDict({**signed, **rest})


@lru_cache(maxsize=4)
def _signing_key(secret: str, *parts: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (*parts, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
