"""The calls of one audit to the bucket of its run folder."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

from auditor.lambdas.audit import AuditFunction
from auditor.s3.http.base import Request, Response
from benchmarks.server.files import Files
from tests.lambdas.test_event import SCHEDULE
from tests.support.function_account import Account
from tests.support.servers.stub import StubServer

WRITES = (
    *(".auditor-probe", "00000.json", "00000.json", "findings", "index.html", "latest.json", "objects", "report.html"),
    *("lease.json", "lease.json", "rollups.json", "run.json", "seal.json", "state.json", "state.json", "summary.json"),
)
READS = ("latest.json", "latest.json", "latest.json", "lease.json", "rollups.json", "state.json", "summary.json")
DELETES = ("00000.json",)
"""The checkpoint."""
READS_OF_LAST_RUN = (
    *("", "run.json", "findings", "objects", "seal.json", "rollups.json"),
    *("summary.json", "summary.json", "summary.json"),
)
"""The reading of the last run, with which the next night compares its own; an empty name lists its files."""


class Calls:
    """A transport to a bucket in memory. made: method and name of each call; a part has the name of its folder."""

    def __init__(self) -> None:
        self._files = Files()
        self.made: list[tuple[str, str]] = []

    def __call__(self, server: object) -> Calls:
        return self

    def send(self, request: Request, content: object = None) -> Response:
        where = urlsplit(request.target)
        *_, folder, name = where.path.split("/")
        name = "state.json" if name.endswith("-state.json") else name
        self.made.append((request.method, folder if name.startswith("part-") else name))
        if where.path.strip("/").count("/") == 0:
            return Response(200, "", {}, self._files.listing(dict(parse_qsl(where.query)).get("prefix", "")))
        headers = {name.encode(): value.encode() for name, value in request.headers}
        body = request.body if content is None else content.read()  # type: ignore[attr-defined]
        path = where.path.removeprefix("/run-folders/")
        status, etag, found = self._files.answer(request.method, path, headers, body)
        if code := {404: b"NoSuchKey", 412: b"PreconditionFailed"}.get(status):
            found = b"<Error><Code>%b</Code></Error>" % code
        return Response(status, "", {b"etag": etag}, found)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


async def test_an_audit_sends_its_run_folder_in_few_calls(stub: StubServer) -> None:
    """The second night finds the first one's files."""
    stub.put("audited", "k", b"x", acl="public-read")
    calls = Calls()
    settings = {"AUDITOR_BUCKETS": "audited", "AUDITOR_ENDPOINT_URL": stub.url, "AUDITOR_OUT": "s3://run-folders/runs"}
    service = AuditFunction(settings, kept=calls)  # type: ignore[arg-type]
    for night, more in (("2026-01-02T03:04:05Z", ()), ("2026-01-03T03:04:05Z", READS_OF_LAST_RUN)):
        (summary,) = (await service.handle({**SCHEDULE, "time": night}, Account().around()))["runs"]
        assert (summary["complete"], summary["findings"]["high"] > 0) == (True, True)
        for method, names in (("PUT", WRITES), ("GET", (*READS, *more)), ("DELETE", DELETES)):
            assert sorted(name for made, name in calls.made if made == method) == sorted(names)
        calls.made.clear()
