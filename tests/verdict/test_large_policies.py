"""Large policies: many statements of one form have one right answer, and what is too large says which number is."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from msgspec.structs import replace

from auditor.model.access import MOST_NAMED, ObjectAccess, ReasonCode, Verdict, listed
from auditor.model.bucket import AccessPoint, BucketFacts, PublicAccessBlock
from auditor.model.exception import ExceptionEntry, covers_verdict
from auditor.model.line_records import access_texts
from auditor.model.object import ALL_USERS, Acl, Grant, ObjectRef
from auditor.verdict.judge import VerdictJudge, access_of
from tests.verdict.case_files import bucket_facts
from tests.verdict.oracle.recipe import OTHER, OURS, OWN_ACL, OWNER, PLAIN

TOO_COMPLEX = re.compile(r"too-complex: [0-9,]+ [a-z ]+, at most [0-9,]+")
Statement = dict[str, Any]


def bucket(*statements: Statement, points: tuple[AccessPoint, ...] = ()) -> BucketFacts:
    policy = json.dumps({"Version": "2012-10-17", "Statement": statements})
    return replace(bucket_facts({"public": "unread", "policy": policy}), access_points=points)


def access(
    *statements: Statement,
    trusted: tuple[str, ...] = (),
    key: str = "dir/key",
    acl: Acl = OWN_ACL,
    points: tuple[AccessPoint, ...] = (),
) -> ObjectAccess:
    return access_of(bucket(*statements, points=points), acl=acl, head=PLAIN, key=key, trusted=trusted)


def allow(principal: Any = "*", resource: str = "*", **condition: Any) -> Statement:
    found = {"Effect": "Allow", "Principal": principal, "Action": "s3:GetObject"}
    return {**found, "Resource": f"arn:aws:s3:::bucket/{resource}", **({"Condition": condition} if condition else {})}


def account(number: int) -> str:
    return f"{444455550000 + number}"


def of_a_source(number: int) -> tuple[Statement, str]:
    source = f"arn:aws:cloudfront::{account(number)}:distribution/E{number}"
    asked = {"aws:SourceArn": source, "aws:SourceAccount": account(number)}
    return allow({"Service": "cloudfront.amazonaws.com"}, StringEquals=asked), source


def of_a_network(number: int) -> tuple[Statement, str]:
    network = f"203.0.{number}.0/24"
    asked: dict[str, Any] = {
        "IpAddress": {"aws:SourceIp": network},
        "StringEquals": {"aws:PrincipalOrgID": f"o-{number:06d}"},
    }
    return allow({"AWS": account(number)}, **asked), network


FORMS = [of_a_source, of_a_network]


def test_statements_of_one_form_have_one_answer() -> None:
    """Each statement is for one trusted party. The answer is the same for any number of them."""
    for form in FORMS:
        statements, trusted = zip(*map(form, range(20)), strict=True)
        assert access(*statements, trusted=trusted).verdict is Verdict.PRIVATE, form
        lacking = access(*statements, trusted=trusted[1:])
        assert (lacking.verdict, len(lacking.audience)) == (Verdict.SHARED, 1), form


def test_many_accounts_share_an_object_that_a_canonical_id_may_read() -> None:
    """The ID may be that of any of the accounts, which are trusted, but it need not be."""
    accounts = tuple(map(account, range(20)))
    found = access(allow({"AWS": list(accounts)}), trusted=accounts, acl=Acl(OWNER, (Grant(OTHER, "READ"),)))
    assert (found.verdict, [one.text for one in found.audience]) == (Verdict.SHARED, [f"canonical-id {OTHER}"])


def many_ways(number: int) -> list[Statement]:
    """Each pair of an endpoint and a VPC is a place of its own, and each is for an account of its own."""
    return [
        allow(
            {"AWS": account(i)},
            StringEquals={
                "aws:SourceVpce": f"vpce-{i}",
                "aws:SourceVpc": f"vpc-{i}",
                "aws:PrincipalOrgID": f"o-{i:06d}",
            },
            StringLike={"aws:PrincipalArn": f"arn:aws:iam::{account(i)}:role/*-{i}-*"},
        )
        for i in range(number)
    ]


def test_a_policy_that_is_too_large_is_unknown_for_each_object_and_says_the_number() -> None:
    judge = VerdictJudge(bucket(*many_ways(150)), ())
    public = Acl(OWNER, (Grant(ALL_USERS, "READ"),))
    for key, acl in (("a", OWN_ACL), ("b/c", public)):
        found = judge.access(ObjectRef(key, "e", 1, ""), acl, PLAIN)
        assert (found.verdict, found.audience) == (Verdict.UNKNOWN, ())
        assert [bool(TOO_COMPLEX.fullmatch(one.text)) for one in found.reasons] == [True]


def test_too_many_facts_that_are_not_known_are_too_complex_and_say_their_number() -> None:
    tags = [allow(StringEquals={f"s3:ExistingObjectTag/k{number}": "v"}) for number in range(10)]
    for statements in (tags, [allow(), *({**one, "Effect": "Deny"} for one in tags)]):
        found = access(*statements)
        (reason,) = (reason.text for reason in found.reasons)
        words = "1,024 completions of the facts that are not known, at most 512"
        assert (found.verdict, reason) == (Verdict.UNKNOWN, f"too-complex: {words}")
    assert ReasonCode.TOO_COMPLEX not in {reason.code for reason in access(*tags[:9]).reasons}


def test_the_steps_for_an_object_do_not_depend_on_the_objects_before() -> None:
    """Objects of several owners, under one policy: each has the same access whether it is judged first or last."""
    facts = bucket(*(of_a_network(number)[0] for number in range(15)), allow("*", "home/${aws:username}/*"))
    objects = [
        (f"home/{name}/x", Acl(OWNER, (Grant(digit * 64, "READ"),))) for name, digit in zip("abcd", "cdef", strict=True)
    ]

    def judged(order: list[tuple[str, Acl]]) -> dict[str, ObjectAccess]:
        judge = VerdictJudge(facts, ())
        return {key: judge.access(ObjectRef(key, "e", 1, ""), acl, PLAIN) for key, acl in order}

    assert judged(objects) == judged(objects[::-1])


def test_a_key_that_is_too_complex_leaves_other_statements_alone() -> None:
    patterns = [f"*{letter}{'?' * 9}{letter}*" for letter in "abcdefgh"]
    complex_ = [allow("*", "secret/*", StringLike={"aws:UserAgent": one}) for one in patterns]
    complex_.append(allow("*", "secret/*", StringNotLike={"aws:UserAgent": patterns}))
    found = access(*complex_, allow({"AWS": account(1)}, "dir/*"))
    assert (found.verdict, [one.text for one in found.audience]) == (Verdict.SHARED, [f"account {account(1)}"])


def test_a_name_in_a_key_is_known_by_each_of_its_beginnings() -> None:
    """A Deny of the user ada leaves a user a or ad, if the Allow has no slash; the one of a long name leaves nobody."""
    named = {"Principal": {"AWS": account(1)}, "Action": "s3:*", "Effect": "Deny"}
    deny = {**named, "Resource": "arn:aws:s3:::bucket/home/${aws:username}/*"}
    for end, verdict in (("*", Verdict.SHARED), ("/*", Verdict.MASKED)):
        found = access(allow({"AWS": account(1)}, f"home/${{aws:username}}{end}"), deny, key="home/ada/x")
        assert found.verdict is verdict
    name = "ab" * 20
    opened = allow({"AWS": account(1)}, "home/${aws:username}*", StringLike={"aws:username": "a?*"})
    deny = {**allow(StringLike={"aws:username": f"{name[:2]}*"}), "Effect": "Deny"}
    assert access(opened, deny, key=f"home/{name}").verdict is Verdict.MASKED


# ---- many access points

POINT: Final = AccessPoint(
    arn=f"arn:aws:s3:eu-central-1:{OURS}:accesspoint/q",
    account=OURS,
    public_access_block=PublicAccessBlock(),
    policy='{"Statement": {"Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": "*"}}',
    policy_is_public=True,
)
THROUGH: Final[dict[str, Any]] = {"StringEquals": {"s3:DataAccessPointAccount": OURS}}
NETWORKS: Final = [f"203.0.{number}.0/24" for number in range(20)]


def shut(number: int) -> list[AccessPoint]:
    return [replace(POINT, policy="", arn=f"{POINT.arn}{place}") for place in range(number)]


def test_too_many_access_points_and_networks_leave_open_who_gets_in() -> None:
    """The last access point alone lets requests in, and from the last network only."""
    statements = [allow(IpAddress={"aws:SourceIp": one}, **THROUGH) for one in NETWORKS]
    assert access(*statements, points=(*shut(59), POINT)).verdict is Verdict.SHARED
    found = access(*statements, points=(*shut(1999), POINT))
    assert [one.code for one in found.reasons] == [ReasonCode.TOO_COMPLEX]
    assert TOO_COMPLEX.fullmatch(found.reasons[0].text)
    assert access(*statements, allow(**THROUGH), points=(*shut(59), POINT)).verdict is Verdict.EXPOSED


def test_many_accounts_and_networks_are_told_apart_at_an_access_point() -> None:
    accounts = [f"4444555{number:05d}" for number in range(100)]
    named = {"Effect": "Allow", "Principal": {"AWS": accounts[0]}, "Action": "s3:*", "Resource": "*"}
    point = replace(POINT, policy=json.dumps({"Statement": named}), policy_is_public=False)
    found = access(allow({"AWS": accounts}, IpAddress={"aws:SourceIp": NETWORKS}, **THROUGH), points=(point,))
    assert (found.verdict, {one.name for one in found.audience}) == (Verdict.SHARED, {accounts[0]})


# ---- the names in a line


def shared(number: int) -> ObjectAccess:
    return access(
        *(allow({"AWS": account(i)}) for i in range(number)), allow(StringEquals={"aws:PrincipalOrgID": "o-1"})
    )


def test_a_line_names_the_widest_audiences_and_says_how_many_more() -> None:
    found = shared(30)
    assert (found.verdict, len(found.audience)) == (Verdict.SHARED, 31)
    _, audiences, reasons = access_texts(found)
    assert audiences == tuple(f"account {account(i)}" for i in range(MOST_NAMED))
    assert reasons[-1] == "more-audiences: 11"
    assert not any(reason.startswith("too-complex") for reason in reasons)
    assert listed(listed(found)) == listed(found)


def test_networks_are_listed_the_widest_first_and_limited_audiences_last() -> None:
    networks = [f"203.0.113.{8 * i}/29" for i in range(20)]
    ip = {"aws:SourceIp": [*networks, "198.51.100.0/24", "2001:db8::/32"]}
    found = access(allow(IpAddress=ip), allow({"AWS": account(1)}, StringEquals={"aws:SourceVpc": "vpc-1"}))
    names = [one.text for one in listed(found).audience]
    assert names[:2] == ["network 198.51.100.0/24", "network 203.0.113.0/29"]
    assert listed(found).more == 3
    assert found.audience[-1].text == f"account {account(1)} through vpc vpc-1"


def test_an_exception_covers_audiences_without_a_name_only_if_it_covers_all() -> None:
    found = shared(30)
    for audience, covered in ((None, True), ("anyone", True), ("any-account", False)):
        entry = ExceptionEntry(reason="r", owner="o", until="2026-12-31", verdict=Verdict.SHARED, audience=audience)
        assert covers_verdict(entry, "dir/key", found), "the judge knows all of them, and each is an account"
        assert covers_verdict(entry, "dir/key", listed(found)) is covered, audience
        assert not covers_verdict(replace(entry, audience=f"account {account(1)}"), "dir/key", found)
