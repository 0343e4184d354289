"""The calls of one audit to the bucket of its run folder: which there are, and which wait for which."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Condition
from urllib.parse import parse_qsl, urlsplit

from auditor.lambdas.audit import AuditFunction
from auditor.s3.http.base import Request, Response
from benchmarks.server.files import Files
from tests.lambdas.test_event import SCHEDULE
from tests.lambdas.test_handover import Account
from tests.support.servers.stub import StubServer

NIGHT = [
    {"GET running.json"},
    {"PUT running.json"},
    {"GET latest.json"},
    {"PUT .auditor-probe"},
    {"PUT state.json", "PUT bucket.json"},
    {"PUT findings", "PUT report.html", "PUT rollups.json"},
    {"PUT objects"},
    {"PUT state.json"},
    {"PUT parts.json"},
    {"PUT summary.json"},
    {"PUT latest.json"},
    {"PUT running.json"},
    {"GET latest.json"},
    {"GET summary.json"},
    {"GET rollups.json"},
    {"PUT index.html"},
]
LAST_RUN = [
    {*(f"GET {name}.json" for name in ("summary", "bucket", "rollups", "parts", "state")), "GET "},
    {"GET findings"},
    {"GET objects"},
]
"""The reading of the last run, with which the next night compares its own; "GET " lists its files."""
NEXT_NIGHT = [
    *NIGHT[:5],
    *LAST_RUN,
    *(call | {"GET summary.json"} if "PUT report.html" in call else call for call in NIGHT[5:]),
]
"""Each set of calls is under way at once, and begins when the set before it is answered."""


class Rounds:
    """A transport to a bucket in memory. It answers a call when all calls of its round have come."""

    def __init__(self, rounds: Sequence[set[str]]) -> None:
        self._files = Files()
        self._rounds = [*rounds, set()]
        self._now = 0
        self._come: set[str] = set()
        self._turn = Condition()

    @property
    def left(self) -> Sequence[set[str]]:
        return self._rounds[self._now : -1]

    def __call__(self, server: object) -> Rounds:
        return self

    def send(self, request: Request, content: object = None) -> Response:
        where = urlsplit(request.target)
        self._wait(request.method, where.path)
        if where.path.strip("/").count("/") == 0:
            return Response(200, "", {}, self._files.listing(dict(parse_qsl(where.query)).get("prefix", "")))
        headers = {name.encode(): value.encode() for name, value in request.headers}
        body = request.body if content is None else content.read()  # type: ignore[attr-defined]
        status, etag, found = self._files.answer(
            request.method, where.path.removeprefix("/run-folders/"), headers, body
        )
        code = {404: b"NoSuchKey", 412: b"PreconditionFailed"}.get(status)
        return Response(
            status, "", {b"etag": etag}, found if code is None else b"<Error><Code>%b</Code></Error>" % code
        )

    def _wait(self, method: str, path: str) -> None:
        *_, folder, name = path.split("/")
        call = f"{method} {folder if name.startswith('part-') else name}"
        with self._turn:
            if call not in self._rounds[self._now] - self._come:
                raise AssertionError(f"{call} in round {self._now}: {self._rounds[self._now]}")
            self._come.add(call)
            if self._come == self._rounds[self._now]:
                self._now, self._come = self._now + 1, set()
                self._turn.notify_all()
            elif not self._turn.wait_for(lambda: call not in self._come, timeout=30):
                raise AssertionError(f"{call} was alone in {self._rounds[self._now]}")

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


async def test_an_audit_sends_its_run_folder_in_few_rounds(stub: StubServer) -> None:
    """The second night finds the first one's files."""
    stub.put("audited", "k", b"x", acl="public-read")
    rounds = Rounds([*NIGHT, *NEXT_NIGHT])
    settings = {"AUDITOR_BUCKETS": "audited", "AUDITOR_ENDPOINT_URL": stub.url, "AUDITOR_OUT": "s3://run-folders/runs"}
    service = AuditFunction(settings, kept=rounds)  # type: ignore[arg-type]
    for night in ("2026-01-02T03:04:05Z", "2026-01-03T03:04:05Z"):
        (summary,) = (await service.handle({**SCHEDULE, "time": night}, Account().around()))["runs"]
        assert summary["complete"]
        assert summary["findings"]["high"]
    assert not rounds.left
