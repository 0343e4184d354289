"""A Region that refuses a long timeout: a sentence names our parameters. A stub answers in place of CloudFormation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.servers.forwarding import Forwarding
from tests.system.deploy.checks.packaged import given as params
from tests.system.deploy.checks.packaged import needs_osls, refusal

pytestmark = needs_osls
KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_REGION": "eu-west-1"}
REFUSED = "Value '1800' at 'timeout' failed to satisfy constraint: Member must have value less than or equal to 900"
OTHER = "User is not authorized to perform: cloudformation:DescribeStackResource"


class Refusing(Forwarding):
    """Refuses every request, those below /refused for a timeout."""

    def refused(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        words = REFUSED if target.startswith("/refused") else OTHER
        error = f"<Error><Type>Sender</Type><Code>AccessDenied</Code><Message>{words}</Message></Error>"
        return 403, f"<ErrorResponse>{error}</ErrorResponse>".encode()


@pytest.fixture
def stub() -> Iterator[str]:
    with Refusing("http://127.0.0.1:9") as server:
        yield server.url


@pytest.mark.parametrize(
    ("answer", "given", "said"),
    [
        ("refused", ["auditTimeout=1800", "hashingTimeout=901"], "give 900 for auditTimeout and hashingTimeout"),
        ("refused", [], None),
        ("other", ["auditTimeout=1800"], None),
    ],
    ids=["a region that refuses", "no long timeout", "another error"],
)
def test_a_refused_timeout_is_explained(
    stub: str, tmp_path: Path, answer: str, given: list[str], said: str | None
) -> None:
    environ = {**KEYS, "AWS_ENDPOINT_URL": f"{stub}/{answer}"}
    arguments = ("--stage", "prod", *params("buckets=photos", *given))
    found = refusal(tmp_path, *arguments, command="deploy", plugin="timeouts.js", **environ)
    words = " ".join(found.split())
    assert (REFUSED if answer == "refused" else OTHER) in words
    sentence = "eu-west-1 refuses functions of more than 900 seconds: "
    assert (f"{sentence}{said}" in words) if said else ("refuses functions" not in words)
