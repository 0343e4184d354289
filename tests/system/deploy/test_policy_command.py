"""`auditor policy --role`: statement for statement what the packaged role of that function and level has."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from auditor.cli.main import main
from auditor.offline.iam import roles
from deploy.resolving import ACCOUNT, Stack
from tests.system.deploy.checks.packaged import needs_osls, of_level
from tests.system.deploy.checks.sources import LEVELS, as_list, parameters, read

pytestmark = needs_osls
REGION = "eu-west-1"
TARGETS = ("s3://photos", "s3://archive/2024/")
KEY, OTHER = (f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{number}" for number in (1, 2))
TOPIC, CHAT = (f"arn:aws:sns:{REGION}:{ACCOUNT}:{name}" for name in ("ours", "chat"))
FILES = f"arn:aws:elasticfilesystem:{REGION}:{ACCOUNT}:access-point/fsap-0a1b"
BUS = f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/ours"
CHANNELS = ("--topic", TOPIC, "--chat-topic", CHAT, "--event-bus", BUS)

PLAIN: tuple[dict[str, str], tuple[str, ...]] = ({}, ())
WHOLE = (
    {
        "KmsKeyArn": KEY,
        "AuditedKeyArns": f"{KEY},{OTHER}",
        "TopicArn": TOPIC,
        "ChatTopicArn": CHAT,
        "EventBusArn": BUS,
        "SubnetIds": "subnet-1",
        "SecurityGroupIds": "sg-1",
        "FileSystemArn": FILES,
        "InventoryBucketName": "inventories",
        "InventoryPrefix": "night/",
        "InventoryKeyArn": OTHER,
    },
    (
        *f"--reports-key {KEY} --audited-keys {KEY},{OTHER} --vpc --file-system {FILES}".split(),
        *f"--inventory s3://inventories/night --inventory-key {OTHER}".split(),
        *CHANNELS,
    ),
)
"""What the stack is given, and how the command is told of it: nothing, and all that roles follow from."""
ON_FILES: tuple[dict[str, str], tuple[str, ...]] = (
    {**WHOLE[0], "ReportsPath": "/mnt/reports/audits"},
    (*WHOLE[1], "--out", "/mnt/reports/audits"),
)
"""The same, with the run folders on the file system."""

CASES = [
    *((role, level) for role in ("audit", "renew") for level in LEVELS),
    ("hashing", "fixity"),
    ("verify", "fixity"),
]


def flat(statements: Sequence[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """Statements in one form; the command knows names only, so that region and account are any."""
    for one in statements:
        yield (
            one["Sid"],
            one["Effect"],
            *(
                (name, frozenset(as_list(one.get(name, []))))
                for name in ("Action", "NotAction", "Resource", "NotResource")
            ),
            json.dumps(one.get("Condition")),
        )


def anywhere(role: dict[str, Any]) -> list[dict[str, Any]]:
    """The one policy's statements; ARNs that were given are the same on both sides."""
    (policy,) = role["Properties"]["Policies"]
    text = json.dumps(policy["PolicyDocument"]["Statement"])
    for given in (KEY, OTHER, TOPIC, CHAT, BUS, FILES):
        text = text.replace(given, given.replace(f"{REGION}:{ACCOUNT}", "<given>"))
    text = text.replace(f":{REGION}:{ACCOUNT}:", ":*:*:").replace("<given>", f"{REGION}:{ACCOUNT}")
    found: list[dict[str, Any]] = json.loads(text)
    return found


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main(["policy", *TARGETS, "--region", REGION, *arguments]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["Statement"]
    return found


@pytest.mark.parametrize(("role", "level"), CASES, ids=lambda value: str(value))
@pytest.mark.parametrize(("given", "told"), [PLAIN, WHOLE, ON_FILES], ids=["plain", "whole", "on files"])
def test_it_prints_what_the_packaged_role_has(
    role: str, level: str, given: dict[str, str], told: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    keys_read = level != "exposure"
    given = {**given, **({"KeyPolicies": "true"} if keys_read and given else {})}
    told = (*told, *(["--key-policies"] if keys_read and told else []))
    made = of_level(level, *(["renew=true"] if role == "renew" else []))
    stack = Stack(made, region=REGION, parameters={**given, "ReportsBucketName": "reports"})
    packaged = anywhere(stack.resources()[f"{role.title()}Role"])
    ledger = f"dynamodb:{stack.resolve({'Ref': 'Ledger'})}" if level == "fixity" else "sqlite:x"
    places = ("--out", "s3://reports/audits", "--ledger", ledger)
    found = printed(capsys, "--role", role, "--level", level, *places, *told)
    assert [one["Sid"] for one in found] == [one["Sid"] for one in packaged]
    assert list(flat(found)) == list(flat(packaged))


def test_what_it_takes_for_granted_is_what_a_deployment_does() -> None:
    service = read("serverless.yml")
    assert (service["service"], service["provider"]["stage"]) == (roles.SERVICE, roles.STAGE)
    assert parameters()["default"]["level"] == roles.LEVEL


def test_the_stage_and_a_ledgers_arn_are_in_the_names(capsys: pytest.CaptureFixture[str]) -> None:
    arn = f"arn:aws:dynamodb:{REGION}:999988887777:table/digests"
    places = ("--level", "fixity", "--out", "s3://r", "--ledger", f"dynamodb:{arn}")
    text = json.dumps(printed(capsys, "--role", "audit", *places, "--stage", "trial"))
    assert "s3-auditor-trial-audit" in text
    assert "s3-auditor-prod" not in text
    found = printed(capsys, "--role", "hashing", "--ledger", f"dynamodb:{arn}")
    assert [one["Resource"] for one in found if one["Sid"] == "Ledger"] == [[arn]]
