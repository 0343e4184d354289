"""S3 Access Grants: read where S3 Control answers, page by page, and never called absent if they were not read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest
from msgspec.structs import replace

from auditor.model.bucket import AccessGrant, AccessGrants, BucketFacts, GranteeType, GrantPermission
from auditor.model.object import Unread
from auditor.model.target import Target
from auditor.reports.summary import not_looked_at
from auditor.s3.access_points import MOST_GRANTS as MOST
from auditor.s3.access_points import MOST_LISTED, MOST_PAGES
from tests.s3.answers import ACCOUNT, ANOTHERS, Answers, failed, read, reader
from tests.support.asked_by import asked_by as asked_by
from tests.support.asked_by import reader_for
from tests.support.fakes.caller import FakeTime, make_caller
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.world import Odd, StubBucket, StubGrants

INSTANCE: Final = f"arn:aws:s3:us-east-1:{ACCOUNT}:access-grants/default"
USER: Final = "a1b2c3d4-5678-90ab-cdef-EXAMPLE11111"
ROLE: Final = "arn:aws:iam::444455556666:role/reader"
POLICY: Final = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": {
            "Effect": "Allow",
            "Principal": {"AWS": "444455556666"},
            "Action": ["s3:GetDataAccess", "s3:ListAccessGrants"],
            "Resource": INSTANCE,
        },
    }
)


def grant(id: str = "g-1", scope: str = f"s3://{BUCKET}/*", **fields: Any) -> AccessGrant:  # noqa: A002
    given = {"grantee_type": GranteeType.IAM, "grantee": ROLE, "permission": GrantPermission.READ}
    return AccessGrant(id=id, scope=scope, **(given | fields))


def to_user(id: str = "g-1", **fields: Any) -> AccessGrant:  # noqa: A002
    return grant(id, grantee_type=GranteeType.DIRECTORY_USER, grantee=USER, **fields)


def listed(id: str = "g-1", **changes: Any) -> dict[str, Any]:  # noqa: A002
    """One entry of ListAccessGrants."""
    entry = {
        "AccessGrantId": id,
        "Grantee": {"GranteeType": "IAM", "GranteeIdentifier": ROLE},
        "Permission": "READ",
        "GrantScope": "s3://b/*",
    }
    return {name: value for name, value in (entry | changes).items() if value is not None}


def instance(*grants: AccessGrant, policy: str = "", page: int = 1000) -> StubGrants:
    """The stub's instance with these grants."""
    entries = [
        listed(
            one.id,
            Grantee={"GranteeType": one.grantee_type.value, "GranteeIdentifier": one.grantee},
            Permission=one.permission.value,
            GrantScope=one.scope,
            ApplicationArn=one.application,
        )
        for one in grants
    ]
    return StubGrants(instance=INSTANCE, grants=entries, policy=policy, page=page)


ANSWERS: Final[Mapping[str, Any]] = {
    "ListAccessGrantsInstances": {"AccessGrantsInstancesList": [{"AccessGrantsInstanceArn": INSTANCE}]},
    "ListAccessGrants": {"AccessGrantsList": [listed()]},
    "GetAccessGrantsInstanceResourcePolicy": {"Policy": POLICY},
}


async def grants(**changes: Any) -> object:
    return (await read(Answers(**{**ANSWERS, **changes}))).access_grants


# ---- at the stub, by each way of asking


@pytest.fixture
def control(stub: StubServer, asked_by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3_CONTROL", stub.url)


async def read_from(stub: StubServer) -> BucketFacts:
    given = {"bucket": BUCKET, "endpoint_url": stub.url, "region": "us-east-1"}
    async with reader_for(make_caller(FakeTime()), **given) as opened:
        facts: BucketFacts = await opened.read("us-east-1")
    return facts


async def test_the_grants_on_the_bucket_are_read(stub: StubServer, bucket: StubBucket, control: None) -> None:
    here = (
        grant("a", application="arn:aws:sso::111122223333:application/ssoins-1/apl-1"),
        to_user("b", scope=f"s3://{BUCKET}/p&<*", permission=GrantPermission.READWRITE),
        grant("c", grantee_type=GranteeType.DIRECTORY_GROUP, grantee=USER, scope="s3://*"),
        grant("d", scope=f"s3://{BUCKET}/one", permission=GrantPermission.WRITE),
        grant("e", scope=f"s3://{BUCKET}"),
        grant("f", scope=f"s3://{BUCKET[:-1]}*"),
    )
    same_id = grant("a", scope=f"s3://{BUCKET}/another-of-the-same-id")
    elsewhere = (
        grant("g", scope=f"s3://{BUCKET}-2/*"),
        grant("h", scope=f"s3://{BUCKET}2"),
        grant("i", grantee=f"arn:aws:iam::{ACCOUNT}:role/own"),
    )
    stub.world.grants = instance(*elsewhere, *here, same_id, policy=POLICY, page=2)
    facts = await read_from(stub)
    assert facts.access_grants == AccessGrants(
        account=ACCOUNT, instance=INSTANCE, grants=(here[0], same_id, *here[1:]), policy=POLICY
    )
    assert stub.count("ListAccessGrantsInstances") == stub.count("GetAccessGrantsInstanceResourcePolicy") == 1
    assert stub.count("ListAccessGrants") == 5  # of two each
    assert not any(words.startswith("S3 Access Grants") for words in not_looked_at(facts, Target(BUCKET)))


async def test_an_account_without_an_instance_has_no_grants_and_an_instance_may_have_no_policy(
    stub: StubServer, bucket: StubBucket, control: None
) -> None:
    assert (await read_from(stub)).access_grants == AccessGrants(account=ACCOUNT)
    assert stub.count("ListAccessGrants") == stub.count("GetAccessGrantsInstanceResourcePolicy") == 0
    stub.world.grants = instance()
    assert (await read_from(stub)).access_grants == AccessGrants(account=ACCOUNT, instance=INSTANCE)


READ: Final = AccessGrants(account=ACCOUNT, instance=INSTANCE, grants=(grant(),))
ODD: Final = {Odd.DENIED: "AccessDenied", Odd.EMPTY: "Malformed", Odd.MALFORMED: "Malformed"}


async def test_grants_and_a_policy_that_cannot_be_read_are_named(
    stub: StubServer, bucket: StubBucket, control: None
) -> None:
    policy_of = "GetAccessGrantsInstanceResourcePolicy"
    stub.world.grants = instance(grant())
    for action in ("ListAccessGrantsInstances", "ListAccessGrants", policy_of):
        for odd, code in ODD.items():
            stub.world.odd = {action: odd}
            facts = await read_from(stub)
            unread, subject = Unread(action, code), "S3 Access Grants"
            if action == policy_of:
                subject = "policy of the S3 Access Grants instance"
                assert facts.access_grants == replace(READ, policy=unread)
            else:
                assert facts.access_grants == unread
            assert f"{subject}, which could not be read: {action} {code}" in not_looked_at(facts, Target(BUCKET))


# ---- answers that S3 does not give


async def test_no_call_is_made_where_the_account_may_be_another() -> None:
    cases: dict[str, tuple[Mapping[str, Any], str]] = {
        action: ({action: failed(action, "AccessDenied")}, "AccessDenied")
        for action in ("ListBuckets", "GetCallerIdentity")
    }
    cases["ListAccessGrantsInstances"] = ANOTHERS, "ForeignAccount"
    for action, (changes, code) in cases.items():
        answers = Answers(**{**ANSWERS, **changes})
        assert (await read(answers)).access_grants == Unread(action, code)
        assert answers.accounts == []


async def test_no_call_is_made_where_the_region_or_s3_control_is_not_known() -> None:
    region = Unread("HeadBucket", "403")
    answers = Answers(**ANSWERS)
    assert (await reader(answers).read(region)).access_grants == region
    assert len(answers.accounts) == 1  # the account's public access block
    for code in ("Timeout", "ConnectionError"):
        silent = failed("GetPublicAccessBlock", code, 0)
        assert await grants(Account=silent) == Unread("GetPublicAccessBlock", code)


async def test_an_instance_that_has_gone_meanwhile_has_no_grants() -> None:
    gone = failed("ListAccessGrants", "AccessGrantsInstanceNotExistsError", 404)
    assert await grants(ListAccessGrants=gone) == AccessGrants(account=ACCOUNT)


UNJUDGED: Final = (
    listed("../x"),
    listed("x" * 65),
    *(
        listed(Grantee=grantee)
        for grantee in (
            None,
            {"GranteeType": "IAM"},
            {"GranteeType": "IAM", "GranteeIdentifier": ""},
            {"GranteeType": "ROBOT", "GranteeIdentifier": ROLE},
            {"GranteeType": "IAM", "GranteeIdentifier": "x" * 2049},
        )
    ),
    *(listed(Permission=permission) for permission in ("ALL", None)),
    *(listed(GrantScope=scope) for scope in (None, "b/*", "https://b/*", "s3://" + "x" * 2044)),
    listed(ApplicationArn="x" * 2049),
)
UNNAMED: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"AccessGrantsInstancesList": [{}]},
    {"AccessGrantsInstancesList": [{"AccessGrantsInstanceArn": "arn:aws:s3:us-east-1:1:access-grants/default"}]},
    {"AccessGrantsInstancesList": [], "NextToken": "again"},
)


async def test_a_grant_or_an_instance_that_cannot_be_judged_makes_all_of_them_unread() -> None:
    for entry in UNJUDGED:
        answer = {"AccessGrantsList": [listed("good"), entry]}
        assert await grants(ListAccessGrants=answer) == Unread("ListAccessGrants", "Malformed"), entry
    for answer in UNNAMED:
        found = await grants(ListAccessGrantsInstances=answer)
        assert found == Unread("ListAccessGrantsInstances", "Malformed"), answer


def pages(entries: Callable[[int], list[dict[str, Any]]], asked: list[int]) -> Callable[..., Mapping[str, Any]]:
    """A listing without an end. entries: of the page with this number. asked: gets the number of each page."""

    def page(arguments: dict[str, str]) -> Mapping[str, Any]:
        number = int(arguments.get("NextToken", "0"))
        asked.append(number)
        return {"AccessGrantsList": entries(number), "NextToken": str(number + 1)}

    return page


def page_of(scope: str) -> Callable[[int], list[dict[str, Any]]]:
    return lambda number: [listed(f"g-{number}-{one}", GrantScope=scope) for one in range(1000)]


async def test_a_listing_without_an_end_or_that_goes_round_is_unread() -> None:
    for entries, read_pages in (
        (lambda number: [], MOST_PAGES),
        (page_of("s3://another/*"), MOST_LISTED // 1000 + 1),
        (page_of("s3://b/*"), MOST // 1000 + 1),
    ):
        asked: list[int] = []
        assert await grants(ListAccessGrants=pages(entries, asked)) == Unread("ListAccessGrants", "TooMany")
        assert len(asked) == read_pages
    answer = {"AccessGrantsList": [listed()], "NextToken": "again"}
    assert await grants(ListAccessGrants=answer) == Unread("ListAccessGrants", "Malformed")


async def test_a_policy_that_is_none_is_unread() -> None:
    for answer in ({"Policy": "{"}, {}, failed("x", "AccessDenied")):
        found = await grants(GetAccessGrantsInstanceResourcePolicy=answer)
        assert isinstance(found, AccessGrants)
        assert isinstance(found.policy, Unread)
