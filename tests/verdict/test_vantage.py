"""The ways of one concrete requester: equal to the oracle's answers to this requester's requests."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from auditor.offline.probe.vantage import Vantage, VantageJudge, WaysIn
from auditor.verdict.object_facts import EncryptionFacts
from auditor.verdict.ways import BYTES, WAYS
from tests.verdict.oracle.conditions import Values
from tests.verdict.oracle.generator import generate
from tests.verdict.oracle.recipe import PLAIN, Recipe
from tests.verdict.oracle.service import BY_VERSION, Request, World, allowed
from tests.verdict.oracle.statements import Identity, Memory
from tests.verdict.oracle.worlds import NOW, Case, worlds
from tests.verdict.test_large_policies import many_ways

ADDRESSES = ("198.51.100.7", "203.0.113.9", "2001:db8::7")
UNSIGNED: dict[str, Values] = {
    "aws:principalisawsservice": ("false",),
    "aws:viaawsservice": ("false",),
    "aws:principaltype": ("Anonymous",),
    "aws:userid": ("anonymous",),
}


def ways_of(case: Case, vantage: Vantage) -> WaysIn | None:
    judge = VantageJudge(case.facts, case.trusted, case.versions, datetime.fromisoformat(NOW))
    return judge.ways(vantage, case.ref, case.acl, case.head)


def answers(case: Case, address: str, way: str) -> Iterator[bool]:
    """The oracle's answers to an unsigned request by TLS, in each world and with each version of TLS."""
    for completed in worlds(case):
        world: World = completed.world
        for version in ("1.2", "1.3"):
            keys: dict[str, Values] = {
                **world.keys,
                **UNSIGNED,
                "aws:sourceip": (address,),
                "aws:securetransport": ("true",),
                "s3:tlsversion": (version,),
                "s3:versionid": ("v1",) if way in BY_VERSION else None,
            }
            request = Request(Identity(), True, keys)
            yield allowed(world, Memory(world.truth), request, [way])  # type: ignore[arg-type]


def differences(case: Case, address: str) -> Iterator[str]:
    found = ways_of(case, Vantage(address=address))
    if found is None:
        return
    encrypted = EncryptionFacts.of(case.head, case.facts.semantics) != EncryptionFacts()
    noncurrent = case.versions and not case.ref.is_latest
    for index, way in enumerate(WAYS):
        bit = 1 << index
        if (encrypted and bit & BYTES) or (noncurrent and way not in BY_VERSION):
            continue  # a HEAD tells nothing about the key
        said = set(answers(case, address, way))
        if bool(found.sure & bit) is not (said == {True}) or bool(found.possible & bit) is not (True in said):
            yield f"{way} from {address}: {found}, oracle: {said}"


def test_agrees_with_the_oracle() -> None:
    for seed in range(100):
        recipe = generate(seed)
        case = recipe.case()
        if "versionid" in repr(recipe).lower():
            continue  # the version that a question names is not known to the judge
        for address in ADDRESSES:
            for difference in differences(case, address):
                pytest.fail(f"case {seed}: {difference}\n{recipe}", pytrace=False)


def recipe(*statements: dict[str, Any], **fields: Any) -> Case:
    fixed = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::bucket/*"}
    return Recipe(statements=[{**fixed, **one} for one in statements], head=PLAIN, **fields).case()


def test_the_ways_of_one_requester() -> None:
    network, wide = ({"Condition": {"IpAddress": {"aws:SourceIp": one}}} for one in ("203.0.113.0/24", "128.0.0.0/1"))
    header = {"Condition": {"StringLike": {"aws:Referer": "https://example.com/*"}}}
    insecure = {"Effect": "Deny", "Condition": {"Bool": {"aws:SecureTransport": "false"}}}
    role = {"Condition": {"ArnLike": {"aws:PrincipalArn": "arn:aws:iam::*:role/x"}}}
    for name, case, vantage, found in (
        ("a network, from nowhere", recipe(network), Vantage(), WaysIn(placed=1, elsewhere=1)),
        ("a network, from there", recipe(network), Vantage(address="203.0.113.9"), WaysIn(1, 1, 1, 1, 1)),
        ("a wide network, from nowhere", recipe(wide), Vantage(), WaysIn(possible=1, placed=1, elsewhere=1)),
        ("a wide network, from another", recipe(wide), Vantage(address="9.9.9.9"), WaysIn(elsewhere=1)),
        ("a header is not sent", recipe(header), Vantage(), WaysIn(elsewhere=1)),
        ("TLS", recipe({}, insecure), Vantage(tls=True), WaysIn(1, 1, 0, 1)),
        ("no TLS", recipe({}, insecure), Vantage(tls=False), WaysIn(elsewhere=1)),
        ("a role", recipe(role), Vantage(signer="arn:aws:iam::999988887777:role/x"), WaysIn(1, 1, 0, 1)),
        ("another", recipe(role), Vantage(signer="arn:aws:iam::999988887777:role/y"), WaysIn(elsewhere=1)),
        ("a role, unsigned", recipe(role), Vantage(), WaysIn()),
        ("a policy that is too large", recipe(*many_ways(250)), Vantage(), None),
    ):
        assert ways_of(case, vantage) == found, name
