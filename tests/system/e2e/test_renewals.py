"""S3's events on the queue of renewals: the packaged function reads what they name, and the next night has it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from auditor.runs.renewals import RenewedObject, read_renewals
from auditor.runs.stores.local import LocalStore
from tests.support.audit_runs import Result, read_back
from tests.support.object_events import event_bridge, expose, notification
from tests.support.servers.stub import StubServer
from tests.system.e2e.deployment import AUDITED
from tests.system.e2e.system import Make, System
from tests.system.e2e.test_new_objects import put_event

NAMED: Final = ("by the rule", "caf\u00e9/100%+ by S3", "a//b\nby EventBridge")
QUIET: Final = tuple(f"without an event {number}" for number in range(12))
"""Keys whose ACLs change, too. Each is due in one night of 90: that all of them are, in the same one, cannot be."""
LETTERS: Final = "RenewDeadLetterQueueUrl"


def renewing(make: Make, stub: StubServer, out: Path) -> System:
    """The audited bucket is the stub's, where an ACL changes without anything else; the ACLs of a night are kept."""
    stub.world.add(AUDITED)
    variables = {"AUDITOR_ENDPOINT_URL": stub.url, "AUDITOR_OUT": str(out), "AUDITOR_MAX_RATE": "500"}
    plain = {"AUDITOR_LEDGER": "", "AUDITOR_QUEUE": "", "AUDITOR_LEVEL": "metadata", "AUDITOR_KEEP": "acl=90d"}
    return make(
        renews=True,
        audit={"timeout": 120.0, "variables": variables | plain},
        renew={"variables": variables},
    )


def night(system: System) -> Result:
    system.fire({"bucket": AUDITED})
    return read_back(system.summaries()[-1])


def renewed(out: Path, bucket: str) -> dict[str, RenewedObject]:
    """What the renewals have, by key."""
    return {key: one for (key, _), one in (read_renewals(LocalStore(out), bucket, "") or {}).items()}


def exposed(run: Result) -> set[str]:
    """The keys with a finding that everyone can read the object."""
    return {line["key"] for line in run.findings if line["rule"] == "O02"}


def letters(system: System) -> list[tuple[str, str | None]]:
    return system.queues.letters(system.deployment.outputs()[LETTERS])


def test_what_events_name_is_read_and_the_next_night_has_it(make: Make, stub: StubServer, tmp_path: Path) -> None:
    system = renewing(make, stub, tmp_path)
    for key in (*NAMED, *QUIET):
        stub.put(AUDITED, key, b"x")
    first = night(system)
    for key in (*NAMED, *QUIET):
        expose(stub.world.buckets[AUDITED], key)
    put_event(system, AUDITED, {"key": NAMED[0], "etag": "e", "version-id": ""}, "Object ACL Updated", {})
    assert system.waiting("RenewQueueUrl") == 1, "the rule passes it on"
    for body in (notification(NAMED[1], bucket=AUDITED), *[event_bridge(NAMED[2], AUDITED)] * 2):
        system.send("RenewQueueUrl", body)
    system.poller.drain()
    found = renewed(tmp_path, AUDITED)
    assert {key: one.line.verdict for key, one in found.items()} == dict.fromkeys(NAMED, "exposed")
    assert all("O02" in {line.rule for line in one.findings} for one in found.values())
    second = night(system)
    assert (exposed(first), exposed(second) & set(NAMED)) == (set(), set(NAMED))
    assert not exposed(second) >= set(QUIET), "without an event it is seen when it is due"
    assert letters(system) == []
