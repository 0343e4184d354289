"""The verifying function as deployed: it finds the bit that flipped behind S3's back, and tells of it."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from http.client import HTTPResponse
from typing import Any, Final
from urllib.parse import unquote

from tests.support.servers.forwarding import Forwarding
from tests.system.e2e.queues import message
from tests.system.e2e.system import VERIFY, Make, System, expected, heard
from tests.system.e2e.test_new_objects import publish_deletion

MIB = 1024 * 1024
EVERYTHING = {"max_age": "1d"}
"""In a night of one there is nothing that waits for another."""


PIECE: Final = 64 * 1024


class Damaging(Forwarding):
    """Returns other bytes than were written, under the old ETag.

    flipped: the place in an object of its one wrong bit, by `/bucket/key`.

    pace: of bodies above 1 MiB, bytes a second. reads: the ranges that were asked of an object; "" for the whole.
    """

    def __init__(self, behind: str, flipped: dict[str, int], *, pace: float | None = None) -> None:
        super().__init__(behind)
        self.reads: dict[str, list[str]] = {}
        self._flipped = flipped
        self._pace = pace

    def asked(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        if method == "GET":
            self.reads.setdefault(path_of(target), []).append(headers.get("range", ""))

    def given(self, target: str, answer: HTTPResponse) -> bytes:
        body = bytearray(answer.read())
        place = self._flipped.get(path_of(target))
        if place is None or answer.status not in (200, 206):
            return bytes(body)
        found = re.match(r"bytes (\d+)-", answer.headers["Content-Range"] or "")
        place -= int(found[1]) if found else 0
        if 0 <= place < len(body):
            body[place] ^= 1
        return bytes(body)

    def send(self, output: Any, body: bytes) -> None:
        if self._pace is None or len(body) <= 1024 * 1024:
            output.write(body)
            return
        for start in range(0, len(body), PIECE):
            output.write(body[start : start + PIECE])
            time.sleep(PIECE / self._pace)


class Killing(Damaging):
    """Kills the function once, in the middle of the second read of a large object."""

    kill: Callable[[], object] = staticmethod(lambda: None)
    large = 0

    def send(self, output: Any, body: bytes) -> None:
        self.large += len(body) > MIB
        if self.large == 2:
            self.large += 1
            threading.Timer(1.0, self.kill).start()
        super().send(output, body)


def path_of(target: str) -> str:
    return unquote(target.partition("?")[0])


def record(system: System, bucket: str, objects: dict[str, bytes]) -> None:
    """The objects in the bucket, and their digests in the ledger, by the worker."""
    system.send("HashQueueUrl", message(bucket, *system.put(bucket, objects)))
    system.poller.drain()
    assert system.digests(bucket) == expected(objects)


def metrics(system: System, name: str) -> list[float]:
    """The values of a metric, in the order in which the function gave them."""
    lines = [line for line in system.local.logs(VERIFY).splitlines() if '"_aws"' in line]
    return [found[name] for found in map(json.loads, lines) if name in found]


def outcomes(system: System, summary: dict[str, Any]) -> dict[str, str]:
    """Of each key, by the parts of a verification's report; no key twice."""
    report = system.report(summary["target"]["bucket"])
    start = f"verify={summary['verify']}/combined-"
    parts = [gzip.decompress(body) for name, body in report.items() if name.startswith(start)]
    lines = [json.loads(line) for part in parts for line in part.splitlines()]
    found = {line["key"]: line["outcome"] for line in lines}
    assert len(found) == len(lines)
    return found


def counted(summary: dict[str, Any]) -> dict[str, int]:
    return {name: count for name, count in summary["outcomes"].items() if count}


def test_a_flipped_byte_is_found_and_told_of_and_the_record_stays(make: Make, bucket: str, alerts: str) -> None:
    system = make()
    objects = {f"key {number:02}+%.bin": bytes([number]) * 1000 for number in range(30)}
    record(system, bucket, objects)
    with Damaging(system.deployment.url, {f"/{bucket}/key 17+%.bin": 321}) as damaging:
        system = make(verify={"variables": {"AWS_ENDPOINT_URL_S3": damaging.url}})
        system.fire({"bucket": bucket} | EVERYTHING, VERIFY)
    (summary,) = system.summaries(VERIFY)
    assert summary["complete"]
    assert counted(summary) == {"match": 29, "mismatch": 1}
    found = outcomes(system, summary)
    assert [key for key, outcome in found.items() if outcome == "mismatch"] == ["key 17+%.bin"]
    assert found.keys() == objects.keys()
    assert (metrics(system, "Mismatches"), metrics(system, "Verified")) == ([1], [30])
    (alert,) = heard(system, alerts)
    assert f"s3://{bucket}/ found 1 mismatch" in alert
    assert "key 17" not in alert
    assert system.digests(bucket) == expected(objects)

    system = make()
    system.fire({"bucket": bucket} | EVERYTHING, VERIFY)
    assert counted(system.summaries(VERIFY)[0]) == {"match": 30}
    assert heard(system, alerts) == []


def test_of_three_invocations_one_is_killed_in_mid_object_and_it_adds_up(make: Make, bucket: str, alerts: str) -> None:
    system = make()
    large = b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(10 * MIB // 32))
    objects = {f"key-{number:02}": b"%d" % number for number in range(20)} | {"large": large, "then": b"then"}
    record(system, bucket, objects)
    flipped = {f"/{bucket}/large": len(large) - 1, f"/{bucket}/key-03": 0}
    with Killing(system.deployment.url, flipped, pace=MIB) as damaging:
        variables = {"AWS_ENDPOINT_URL_S3": damaging.url, "AUDITOR_CONCURRENCY": "1"}
        system = make(verify={"timeout": 8.0, "variables": variables})
        damaging.kill = lambda: system.local.kill(bucket)
        (end,) = system.fire({"bucket": bucket} | EVERYTHING, VERIFY)
    assert end["status"] == "SUCCEEDED", (end.get("error"), end.get("cause"))
    assert len(system.local.invoked) > 2
    assert [one.answer.error is None for one in system.local.invoked].count(False) == 1
    *parts, last = system.summaries(VERIFY)
    assert {part["verify"] for part in parts} == {last["verify"]}
    assert [part["complete"] for part in (*parts, last)] == [*(False for _ in parts), True]
    assert json.loads(end["output"])["runs"] == [last]
    assert counted(last) == {"match": 20, "mismatch": 2}
    found = outcomes(system, last)
    assert {key for key, outcome in found.items() if outcome == "mismatch"} == {"key-03", "large"}
    first, *more = damaging.reads[f"/{bucket}/large"]
    assert first in ("", "bytes=0-")
    assert len(more) > 1
    assert all(int(asked.removeprefix("bytes=").partition("-")[0]) >= MIB for asked in more), "not from its start again"
    assert metrics(system, "Mismatches") == [2]
    assert len(heard(system, alerts)) == 1


def test_deleted_objects_are_told_from_missing_ones_because_the_rule_passes_their_events_on(
    make: Make, audited: str, alerts: str
) -> None:
    system = make()
    objects = {name: name.encode() for name in ("deleted", "kept", "missing")}
    record(system, audited, objects)
    s3 = system.deployment.client("s3")
    for key in ("deleted", "missing"):
        s3.delete_object(Bucket=audited, Key=key)
    publish_deletion(system, audited, "deleted")
    system.poller.drain()
    assert system.letters() == []
    time.sleep(1.1)  # what was recorded in the second in which a verification begins is in flight
    system.fire({"bucket": audited, "grace": "0s"} | EVERYTHING, VERIFY)
    (summary,) = system.summaries(VERIFY)
    assert outcomes(system, summary) == {"deleted": "deleted", "kept": "match", "missing": "missing"}
    assert metrics(system, "Missing") == [1]
    (alert,) = heard(system, alerts)
    assert "found 1 missing" in alert
    assert summary["complete"]


def test_the_schedules_event_verifies_the_configured_bucket(make: Make, audited: str) -> None:
    system = make()
    objects = {f"key-{number}": b"data" for number in range(5)}
    record(system, audited, objects)
    system.fire(system.deployment.schedules_input("VerifySchedule"), VERIFY)
    (summary,) = system.summaries(VERIFY)
    assert (summary["target"]["bucket"], summary["listed"], summary["complete"]) == (audited, len(objects), True)
    assert summary["due"].startswith("not read for 90 days")
    assert set(counted(summary)) <= {"match", "not_due"}


def test_the_event_of_a_verification_that_fails_is_kept_with_its_error(make: Make, bucket: str) -> None:
    system = make()
    event = {"bucket": f"{bucket}-none"}
    system.fire(event, VERIFY)
    (letter,) = (json.loads(body) for body in system.queues.taken(system.deployment.failure_queue()))
    assert letter["requestPayload"] == event
    assert f"{bucket}-none" in letter["responsePayload"]["errorMessage"]
    assert metrics(system, "VerificationsFailed") == [1]
