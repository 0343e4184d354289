"""A small Security Hub, with the caller's identity: the calls of the auditor, by the limits of their reference."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.servers.world import ACCOUNT

Asff = dict[str, Any]


@dataclass
class HubWorld:
    """The state of the server. page: findings of one answer. throttle: number of calls to answer by 429. refuse: by the
    end of a finding's ID, the error code for it. disabled: Security Hub is not enabled. denied: the right is missing.
    """

    page: int = 100
    throttle: int = 0
    refuse: dict[str, str] = field(default_factory=dict)
    disabled: bool = False
    denied: bool = False
    findings: dict[str, Asff] = field(default_factory=dict)
    calls: list[tuple[str, int]] = field(default_factory=list)
    """The name of each answered call, and its number of findings."""
    url: str = ""

    def state(self, name: str = "ACTIVE") -> set[str]:
        """The IDs of the findings in this state."""
        return {key for key, one in self.findings.items() if one["RecordState"] == name}

    def of_kind(self, kind: str) -> list[Asff]:
        return [one for one in self.findings.values() if one["ProductFields"]["s3-auditor/kind"] == kind]

    def answer(self, path: str, body: bytes) -> tuple[int, str | None, Asff]:
        """The status, the error code and the document of an answer."""
        if self.throttle:
            self.throttle -= 1
            return 429, "LimitExceededException", {"Message": "slow down"}
        if self.disabled:
            return 401, "InvalidAccessException", {"Message": "not subscribed"}
        if self.denied:
            return 403, "AccessDeniedException", {"Message": "no"}
        asked = json.loads(body)
        return self._import(asked["Findings"], len(body)) if path == "/findings/import" else self._get(asked)

    def _import(self, found: list[Asff], size: int) -> tuple[int, str | None, Asff]:
        if not 1 <= len(found) <= 100 or size > 6_000_000:
            return 400, "InvalidInputException", {"Message": "too many"}
        self.calls.append(("BatchImportFindings", len(found)))
        failed = []
        for one in found:
            code = next((code for end, code in self.refuse.items() if one["Id"].endswith(end)), None)
            if one["AwsAccountId"] != ACCOUNT or f":{ACCOUNT}:product/{ACCOUNT}/default" not in one["ProductArn"]:
                code = "AccessDenied"
            if code:
                failed.append({"Id": one["Id"], "ErrorCode": code, "ErrorMessage": "refused"})
                continue
            added = {"aws/securityhub/ProductName": "s3-auditor", "aws/securityhub/FindingId": one["Id"]}
            self.findings[one["Id"]] = {
                **one,
                "Region": "us-east-1",
                "Workflow": {"Status": "NEW"},
                "CreatedAt": one["CreatedAt"].replace("Z", ".000Z"),
                "ProductFields": {**one["ProductFields"], **added},
            }
        done = len(found) - len(failed)
        return 200, None, {"FailedCount": len(failed), "SuccessCount": done, "FailedFindings": failed}

    def _get(self, asked: Asff) -> tuple[int, str | None, Asff]:
        start = int(asked.get("NextToken", 0))
        matching = [one for one in self.findings.values() if _matches(one, asked["Filters"])]
        end = start + min(self.page, asked["MaxResults"])
        self.calls.append(("GetFindings", len(matching[start:end])))
        token = {"NextToken": str(end)} if end < len(matching) else {}
        return 200, None, {"Findings": matching[start:end], **token}


def _matches(finding: Asff, filters: dict[str, list[dict[str, str]]]) -> bool:
    for name, (wanted,) in filters.items():
        value = str(finding[name])
        same = value == wanted["Value"] if wanted["Comparison"] == "EQUALS" else value.startswith(wanted["Value"])
        if not same:
            return False
    return True


@contextmanager
def security_hub() -> Iterator[HubWorld]:
    """Run the server on a free port of this machine."""
    world = HubWorld()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/":
                account = f"<GetCallerIdentityResult><Account>{ACCOUNT}</Account></GetCallerIdentityResult>"
                self._send(200, "text/xml", f"<GetCallerIdentityResponse>{account}</GetCallerIdentityResponse>", None)
                return
            status, code, document = world.answer(self.path, body)
            self._send(status, "application/json", json.dumps(document), code)

        def _send(self, status: int, kind: str, text: str, code: str | None) -> None:
            data = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            if code:
                self.send_header("x-amzn-ErrorType", code)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    world.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield world
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
