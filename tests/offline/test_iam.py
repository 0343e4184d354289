"""The printed IAM policy: exactly the actions of the calls that such an audit makes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from auditor.aws.client import ThreadedClient
from auditor.cli.commands.policy import access_of
from auditor.cli.main import main
from auditor.config.settings import Settings
from auditor.ledger.base import Entry, Event, Expectation, Notice
from auditor.ledger.dynamodb.ledger import DynamoLedger
from auditor.ledger.leases import Lease, Work
from auditor.model.object import ObjectRef
from auditor.model.target import Target
from auditor.offline.iam.actions import BUCKET_CALLS, LEDGER_READS, LEDGER_WRITES, VERIFY_READS
from auditor.offline.iam.policy import Access, audit_policy, every_bucket
from auditor.offline.iam.roles import Deployment
from auditor.s3.bucket_settings import ABAC, SETTINGS, TAGS

access = partial(Access, acl=True, head=True)
WRITES = re.compile(r":(Put|Delete|Create|Update|Restore|Replicate|Bypass|Abort)")


def actions(policy: dict[str, Any], resource: str | None = None) -> set[str]:
    return {
        action
        for statement in policy["Statement"]
        if resource is None or resource in statement["Resource"]
        for action in statement["Action"]
    }


def test_every_bucket_call_has_its_action_and_no_other() -> None:
    assert {question.action for question in (*SETTINGS, ABAC, TAGS)} | {"HeadBucket"} == BUCKET_CALLS.keys()


def test_nothing_in_the_audited_bucket_can_be_written() -> None:
    queue = "https://sqs.eu-west-1.amazonaws.com/123456789012/hash"
    wanted = access(out="s3://reports/runs", ledger="dynamodb:digests", queue=queue, hash=True)
    policy = audit_policy([Target("audited")], wanted, "aws")
    for statement in policy["Statement"]:
        if any("audited" in resource for resource in statement["Resource"]):
            assert not [action for action in statement["Action"] if WRITES.search(action)]
    assert "*" not in actions(policy)
    others = {action for action in actions(policy) if not action.startswith("s3:")}
    assert others == {"sqs:SendMessage", *LEDGER_READS, *LEDGER_WRITES}


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ({"O02"}, (True, False)),
        ({"E01"}, (False, True)),
        ({"K01", "B01"}, (False, False)),
        ({"O10"}, (True, False)),
    ],
)
def test_what_no_rule_needs_is_not_granted(only: set[str], expected: tuple[bool, bool]) -> None:
    found = access_of(Settings(only=tuple(only)), Deployment())
    assert (found.acl, found.head) == expected


ARN = "arn:aws:sns:eu-west-1:123456789012:alert"
KEYS = tuple(f"arn:aws:kms:eu-west-1:123456789012:key/{number}" for number in (1, 2))


def test_manifests_for_batch_operations_are_written_where_they_go() -> None:
    wanted = access(ledger="sqlite:l.db", manifests="s3://manifests/m")
    policy = audit_policy([Target("b")], wanted, "aws")
    assert actions(policy, "arn:aws:s3:::manifests/m/*") == {"s3:PutObject", "s3:GetObject", "s3:DeleteObject"}
    assert actions(policy, "arn:aws:s3:::manifests") == {"s3:ListBucket"}
    local = audit_policy([Target("b")], access(manifests="./manifests"), "aws")
    assert not [resource for one in local["Statement"] for resource in one["Resource"] if "manifests" in resource]


Printed = Callable[..., tuple[int, dict[str, Any], str]]


@pytest.fixture
def printed_all(capsys: pytest.CaptureFixture[str]) -> Printed:
    """Runs `auditor policy`; its exit code, its document and what it said on stderr."""

    def run(*arguments: str) -> tuple[int, dict[str, Any], str]:
        code = main(["policy", *arguments])
        said = capsys.readouterr()
        return code, json.loads(said.out or "{}"), said.err

    return run


@pytest.fixture
def printed(printed_all: Printed) -> Printed:
    """Runs `auditor policy s3://photos`."""
    return partial(printed_all, "s3://photos")


def test_at_level_exposure_no_object_is_read(printed: Printed) -> None:
    _, found, _ = printed("--level", "exposure")
    assert actions(found, "arn:aws:s3:::photos/*") == {"s3:GetObjectAcl"}
    _, found, _ = printed("--level", "metadata")
    assert actions(found, "arn:aws:s3:::photos/*") == {"s3:GetObjectAcl", "s3:GetObject"}


def test_hashing_without_keys_is_told_that_it_may_need_some(printed: Printed) -> None:
    hashing = ("--hash", "--ledger", "dynamodb:digests")
    code, _, said = printed(*hashing)
    assert (code, "objects under SSE-KMS are hashed only with kms:Decrypt" in said) == (0, True)
    code, found, said = printed(*hashing, "--audited-keys", ",".join(KEYS))
    assert (code, said) == (0, "")
    assert [one["Resource"] for one in found["Statement"] if "kms:Decrypt" in one["Action"]] == [list(KEYS)]
    code, found, said = printed("--audited-keys", KEYS[0])
    assert (code, "kms:Decrypt" in actions(found)) == (0, False)
    assert "--audited-keys adds nothing here" in said


def test_the_audit_role_reads_key_policies_only_where_they_are_wanted(printed: Printed) -> None:
    role = ("--role", "audit", "--out", "s3://reports/audits")
    _, found, said = printed(*role, "--key-policies")
    assert actions(found, "*") >= {"kms:GetKeyPolicy"}
    assert "every key: name the objects' keys with --audited-keys" in said
    _, found, said = printed(*role, "--key-policies", "--audited-keys", KEYS[0])
    assert (said, actions(found, KEYS[0])) == ("", {"kms:GetKeyPolicy"})
    _, found, _ = printed(*role)
    assert not {one for one in actions(found) if one.startswith("kms:")}


def test_the_exposure_role_is_told_where_its_reads_are_allowed(printed: Printed) -> None:
    code, _, said = printed("--role", "audit", "--level", "exposure", "--out", "s3://reports/audits")
    assert (code, "through the policies of the reports bucket and its key" in said) == (0, True)


def test_the_renewing_role_writes_renewals_alone(printed: Printed) -> None:
    code, found, said = printed("--role", "renew", "--out", "s3://reports/night*ly")
    assert (code, said) == (0, "")
    assert actions(found, "arn:aws:s3:::reports/night${*}ly/bucket=*/renewals/*") == {"s3:PutObject"}
    assert actions(found, "arn:aws:s3:::reports/night${*}ly/*") == {"s3:GetObject"}
    written = {one for one in actions(found) if one.startswith(("s3:Put", "s3:Delete"))}
    assert written == {"s3:PutObject"}


WRONG: list[tuple[tuple[str, ...], str]] = [
    (("--audited-keys", "alias/mine"), "not the ARN of a KMS key"),
    (("--audited-keys", "arn:aws:kms:*:*:key/*"), "not the ARN of a KMS key"),
    (("--reports-key", "1234"), "not the ARN of a KMS key"),
    (("--topic", "alerts"), "--topic is 'alerts': give the ARN of an SNS topic"),
    (("--topic", f"{ARN}s", "--chat-topic", f"{ARN}s"), "are the same topic"),
    (("--event-bus", "a bus"), "give the name or the ARN of an event bus"),
    (("--role", "audit", "--stage", "*"), "is not a stage name"),
    (("--vpc",), "add --role audit"),
    (("--file-system", "fs-1"), "add --role audit"),
    (("--role", "audit", "--file-system", "fs-1"), "is not the ARN of an EFS access point"),
    (("--role", "audit", "--out", "/mnt/reports"), "--file-system ARN"),
    (("--role", "audit"), "name it with --out s3://"),
    (("--role", "renew"), "name it with --out s3://"),
    (("--role", "renew", "--out", "/mnt/reports"), "--file-system ARN"),
    (("--role", "renew", "--level", "exposure", "--out", "s3://r", "--key-policies"), "--level metadata or fixity"),
    (("--role", "audit", "--level", "exposure", "--out", "s3://r", "--key-policies"), "--level metadata or fixity"),
    (("--role", "audit", "--level", "fixity", "--out", "s3://reports"), "name it with --ledger dynamodb:TABLE"),
    (("--role", "hashing", "--ledger", "sqlite:digests"), "name it with --ledger dynamodb:TABLE"),
    (("--role", "hashing", "--level", "exposure"), "there is no hashing worker at level exposure"),
]


def test_arguments_of_a_wrong_policy_are_refused(printed: Printed) -> None:
    failures: list[object] = []
    for given, word in WRONG:
        code, found, said = printed(*given)
        if (code, found, word in said) != (2, {}, True):
            failures.append((given, code, said))
    assert not failures, failures


async def test_the_ledger_makes_the_calls_that_the_policy_allows_and_no_others() -> None:
    sent: list[str] = []

    class Client(ThreadedClient):
        region = "eu-west-1"

        def __init__(self) -> None:
            """Holds nothing."""

        async def call(self, operation: str, **arguments: Any) -> dict[str, Any]:
            # A transaction takes the actions of its parts (DynamoDB developer guide, "Using IAM with transactions").
            sent.append(f"dynamodb:{operation}".replace("TransactWriteItems", "UpdateItem"))
            return {"Items": [], "Responses": {}}

    ledger = DynamoLedger("digests", Client())
    await ledger.probe()  # as opening the ledger does
    await ledger.known("b", [ObjectRef("key", "etag", 1, "2026-01-02T03:04:05Z")], ["sha256"])
    assert set(sent) == {*LEDGER_READS, "dynamodb:Scan"}  # a new table is looked into
    await ledger.record(
        Entry(bucket="b", key="key", version_id=None, etag="etag", size=1, digests={"sha256": "00"}, hashed_at="")
    )
    assert set(sent) == {*LEDGER_READS, *LEDGER_WRITES}
    work = Work(bucket="b", key="key", version_id=None, etag="etag", algorithms=("sha256",))
    lease = await ledger.claim(work, "me", 60.0)
    assert isinstance(lease, Lease)
    await ledger.release(await ledger.renew(lease, 60.0, {"bytes": 64}), done=True)
    await ledger.note("b", [Event(key="key", at="", what="verified", etag="etag", detail={"algorithm": "sha256"})])
    await ledger.arrived("b", Notice(key="key", sequencer="01", deleted=False, at="", etag="etag"))
    await ledger.expect(
        "b", [Expectation(key="key", algorithm="sha256", digest="00", origin="manifest", imported_at="")]
    )
    await ledger.history("b", "key")
    await ledger.subject("b", "key")
    assert set(sent) == {*LEDGER_READS, *LEDGER_WRITES}
    assert [one async for one in ledger.subjects("b")] == []
    assert set(sent) == {*LEDGER_READS, *LEDGER_WRITES, *VERIFY_READS}


def test_topics_and_bus_are_allowed_where_they_are_named_alone(printed: Printed) -> None:
    _, found, _ = printed()
    assert {one["Sid"] for one in found["Statement"]}.isdisjoint({"Alerts", "Events"})
    _, found, _ = printed("--topic", ARN, "--chat-topic", f"{ARN}s", "--event-bus", "ours")
    assert [(one["Sid"], one["Action"], one["Resource"]) for one in found["Statement"][-2:]] == [
        ("Alerts", ["sns:Publish"], [ARN, f"{ARN}s"]),
        ("Events", ["events:PutEvents"], ["arn:aws:events:*:*:event-bus/ours"]),
    ]


def test_every_bucket_of_the_account(printed_all: Printed) -> None:
    """The same actions as for one bucket, on all of them: s3:ListAllMyBuckets is among both."""
    code, policy, _ = printed_all("--all-buckets")
    assert code == 0
    one = audit_policy([Target("photos")], access(), "aws")
    every = audit_policy([every_bucket()], access(), "aws")
    assert actions(every) == actions(one)
    assert actions(policy) == actions(one)
    assert "s3:ListAllMyBuckets" in actions(policy)
    resources = {resource for found in policy["Statement"] for resource in found["Resource"]}
    assert resources == {"*", "arn:aws:s3:::*", "arn:aws:s3:::*/*"}


def test_estate_needs_its_roles_and_nothing_else(printed_all: Printed, tmp_path: Path) -> None:
    roles = [f"arn:aws:iam::{number}:role/auditor" for number in ("111122223333", "222233334444")]
    file = tmp_path / "estate.toml"
    file.write_text("".join(f'[[accounts]]\nrole = "{role}"\n' for role in roles))
    code, policy, err = printed_all("--estate", str(file))
    assert code == 0
    assert policy["Statement"] == [{"Sid": "Roles", "Effect": "Allow", "Action": ["sts:AssumeRole"], "Resource": roles}]
    assert "2 roles: each needs, in its account, the policy of `auditor policy --all-buckets`" in err
    _, policy, _ = printed_all("--estate", str(file), "--out", "s3://reports/audits")
    assert actions(policy, "arn:aws:s3:::reports/audits/*") == {"s3:GetObject", "s3:PutObject", "s3:DeleteObject"}
    file.write_text(f'{file.read_text()}[[accounts]]\nid = "333344445555"\nown_credentials = true\n')
    _, policy, _ = printed_all("--estate", str(file))
    assert actions(policy, roles[0]) == {"sts:AssumeRole"}
    assert "s3:ListBucket" in actions(policy, "arn:aws:s3:::*")


def test_policy_for_two_kinds_of_objects_is_refused(printed_all: Printed) -> None:
    for given in (
        ("s3://photos", "--all-buckets"),
        ("--all-buckets", "--estate", "e"),
        ("--estate", "e", "--role", "audit"),
    ):
        assert printed_all(*given)[0] == 2, given
