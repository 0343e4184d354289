"""The judge on the facts of one object, and the laws of its verdicts; the case files have the situations."""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from auditor.model.access import Verdict
from auditor.model.bucket import BUCKET_OWNER_ENFORCED, BucketFacts, Encryption, PublicAccessBlock, Semantics
from auditor.model.object import (
    ALL_USERS,
    LOG_DELIVERY,
    Acl,
    Grant,
    Head,
    ObjectRef,
    Skipped,
    Unread,
)
from auditor.verdict.judge import VerdictJudge, verdict_of
from tests.verdict.case_files import bucket_facts
from tests.verdict.oracle.generator import generate
from tests.verdict.oracle.recipe import CURRENT, DENIED, FRIEND, FRIENDS, OTHER, OURS, OWNER, PLAIN, THEIRS, Recipe
from tests.verdict.oracle.worlds import NOW

TRUSTED = frozenset({FRIEND, FRIENDS})
UNASKED = Skipped("no selected rule needs it")
EXPOSED, UNKNOWN, SHARED, MASKED, _, PRIVATE = Verdict
NONCURRENT = replace(CURRENT, version_id="v1", is_latest=False)
KMS = replace(PLAIN, server_side_encryption="aws:kms")


def facts(**changes: Any) -> BucketFacts:
    """A bucket of ours with ACLs in use, and neither a policy nor a public access block."""
    # IsPublic, were it false, would settle each statement with a condition.
    return replace(bucket_facts({}), **{"policy_is_public": UNASKED, **changes})


def acl(*grants: tuple[str, str], owner: str = OWNER) -> Acl:
    """An ACL with the owner's own grant first, as S3 writes it."""
    return Acl(owner, (Grant(owner, "FULL_CONTROL"), *(Grant(*grant) for grant in grants)))


def allow(**fields: Any) -> dict[str, Any]:
    whole = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::bucket/*"}
    return whole | fields


def deny(**fields: Any) -> dict[str, Any]:
    return allow(**({"Effect": "Deny", "Action": "s3:*"} | fields))


def policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def judged(
    object_acl: Acl | Unread | Skipped,
    head: Head | Unread | Skipped = UNASKED,
    ref: ObjectRef = CURRENT,
    **changes: Any,
) -> Verdict:
    """The object's verdict; the run lists versions if the object is not the latest."""
    return VerdictJudge(facts(**changes), TRUSTED, versions=not ref.is_latest).access(ref, object_acl, head).verdict


OWN = acl()
PUBLIC_READ = acl((ALL_USERS, "READ"))
CROSS = {"AWS": f"arn:aws:iam::{THEIRS}:root"}


def test_an_object_of_a_run_without_versions_is_the_latest() -> None:
    judge = VerdictJudge(facts(policy=policy(allow())), TRUSTED)
    assert judge.access(NONCURRENT, OWN, PLAIN).verdict is EXPOSED


def test_a_trusted_group_is_no_way_to_hide_a_public_grant() -> None:
    judge = VerdictJudge(facts(), frozenset({ALL_USERS, "*"}), versions=False)
    assert judge.access(CURRENT, PUBLIC_READ, PLAIN).verdict is EXPOSED


@pytest.mark.parametrize("unknown", [DENIED, UNASKED])
def test_facts_that_are_not_there(unknown: Unread | Skipped) -> None:
    assert judged(OWN, owner=unknown) is UNKNOWN
    assert judged(acl((OTHER, "READ")), owner=unknown) is SHARED  # one of the two does not own the bucket
    assert judged(acl((LOG_DELIVERY, "READ"), owner=FRIEND), owner=unknown) is SHARED
    assert judged(Acl("", ()), ref=replace(CURRENT, owner=None)) is UNKNOWN  # the owner may be the bucket's
    assert judged(unknown) is judged(unknown, policy=policy(allow(Principal=CROSS))) is UNKNOWN
    assert judged(unknown, policy=policy(allow())) is EXPOSED
    assert judged(unknown, policy=policy(allow(), deny())) is MASKED
    assert judged(unknown, ownership=BUCKET_OWNER_ENFORCED) is PRIVATE
    assert judged(Skipped(BUCKET_OWNER_ENFORCED)) is UNKNOWN  # the reason claims what the bucket does not
    assert judged(OWN, policy=unknown) is judged(acl((OTHER, "READ")), policy=unknown) is UNKNOWN
    assert judged(OWN, policy=policy(allow(Principal={"AWS": OURS})), account=unknown) is UNKNOWN


def test_a_permission_that_is_not_known() -> None:
    assert judged(acl((OTHER, "READ_EVERYTHING"))) is UNKNOWN
    assert judged(acl(("http://example.com/groups/new", "READ"))) is SHARED


def test_the_policy_of_an_objects_own_key_is_the_only_one_that_matters_to_it() -> None:
    admits = {"Effect": "Allow", "Principal": {"AWS": THEIRS}, "Action": "kms:Decrypt", "Resource": "*"}
    policies: dict[str, str | Unread] = {"open": policy(admits), "closed": policy(), "unread": DENIED}
    judge = VerdictJudge(facts(policy=policy(allow()), key_policies=policies), (), versions=False)

    def seen(key: str) -> tuple[Verdict, list[str]]:
        head = replace(KMS, sse_kms_key_id=key)
        found = judge.access(CURRENT, OWN, head)
        alone = VerdictJudge(facts(policy=policy(allow()), key_policies={key: policies[key]}), (), versions=False)
        assert found == alone.access(CURRENT, OWN, head)
        return found.verdict, [reason.text for reason in found.reasons]

    assert seen("open")[0] is SHARED
    assert seen("closed") == (MASKED, ["policy-allow: #1", "kms-key: closed"])
    assert "kms-key-unread: unread" in seen("unread")[1]
    policies["later"] = policy(admits)
    assert seen("later")[0] is SHARED
    assert judge.access(CURRENT, OWN, PLAIN).verdict is EXPOSED


@pytest.mark.parametrize("name", ["AROAEXAMPLE:*", "AROAEXAMPLE:session"])
def test_restrict_public_buckets_does_not_surely_hide_what_one_role_is_allowed(name: str) -> None:
    """The guide leaves open if all sessions of a role make a policy public; S3's own word decides, if it was read."""
    text = policy(allow(Condition={"StringLike": {"aws:userid": name}}))
    assert judged(OWN, policy=text, public_access_block=PublicAccessBlock(restrict_public_buckets=True)) is UNKNOWN
    assert (
        judged(
            OWN, policy=text, public_access_block=PublicAccessBlock(restrict_public_buckets=True), policy_is_public=True
        )
        is MASKED
    )


@pytest.mark.parametrize("head", [DENIED, UNASKED, PLAIN, replace(PLAIN, server_side_encryption=None)])
def test_encryption_not_known_to_be_kms_masks_nothing(head: Head | Unread | Skipped) -> None:
    assert judged(PUBLIC_READ, head, encryption=Encryption("aws:kms")) is EXPOSED


def test_the_default_of_a_variable_lets_in_who_has_no_value() -> None:
    for resource, semantics, expected in (
        ("${aws:username, 'dir'}/*", Semantics.AWS, EXPOSED),
        ("${aws:username, 'dir'}/*", Semantics.CEPH, UNKNOWN),
        ("${aws:username, 'dir'}/${aws:userid, 'key'}", Semantics.AWS, UNKNOWN),
    ):
        unsigned = {"StringEquals": {"aws:PrincipalType": "Anonymous"}}
        text = policy(allow(Resource=f"arn:aws:s3:::bucket/{resource}", Condition=unsigned))
        assert judged(OWN, PLAIN, policy=text, semantics=semantics) is expected, (resource, semantics)


def test_objects_of_one_kind_have_the_same_access() -> None:
    judge = VerdictJudge(facts(), TRUSTED)
    other = replace(CURRENT, key="dir/other", etag="f", size=2)
    assert judge.kind(CURRENT, PUBLIC_READ, PLAIN) == judge.kind(other, PUBLIC_READ, replace(PLAIN, content_length=2))
    assert judge.kind(CURRENT, PUBLIC_READ, PLAIN) != judge.kind(CURRENT, OWN, PLAIN)
    assert judge.kind(CURRENT, PUBLIC_READ, PLAIN) != judge.kind(CURRENT, PUBLIC_READ, KMS)


def test_facts_that_a_program_gives() -> None:
    crossing, public = policy(allow(Principal=CROSS)), policy(allow(Resource="arn:aws:s3:::bucket/public/*"))
    assert verdict_of(facts(), acl=OWN) is PRIVATE
    assert verdict_of(facts()) is UNKNOWN
    assert verdict_of(facts(), acl=Acl("", ()), owner=OTHER) is SHARED
    assert verdict_of(facts(), acl=Acl("", ()), owner=OWNER) is PRIVATE
    assert verdict_of(facts(policy=crossing), acl=OWN) is SHARED
    assert verdict_of(facts(policy=crossing), acl=OWN, policy="") is PRIVATE
    assert verdict_of(facts(policy=crossing), acl=OWN, trusted=[THEIRS]) is PRIVATE
    assert verdict_of(facts(), acl=OWN, policy=public, key="public/a") is EXPOSED
    assert verdict_of(facts(), acl=OWN, policy=public, key="a") is PRIVATE
    assert verdict_of(facts(), acl=OWN, policy=policy(allow(Resource="arn:aws:s3:::bucket/?*"))) is PRIVATE
    assert verdict_of(facts(), acl=PUBLIC_READ, head=KMS) is MASKED
    assert verdict_of(facts(), acl=PUBLIC_READ) is EXPOSED


# ---- laws, on the random cases of the oracle

# Shared and unknown are equal here: of two accounts one of which owns the bucket, the other is an outsider for sure.
STRENGTH = {EXPOSED: 3, UNKNOWN: 2, SHARED: 2, MASKED: 1, PRIVATE: 0}
RECIPES = [generate(seed) for seed in range(100)]
BUCKET_FACTS = ("owner", "own_id", "account", "ownership", "public_access_block", "account_public_access_block")
INSIDERS = (OTHER, FRIEND, THEIRS, FRIENDS, "o-1", "vpce-1")
ONE_ACCOUNT = allow(Principal={"AWS": "222233334444"})


def verdict(recipe: Recipe, *insiders: str, **changes: Any) -> Verdict:
    """The verdict of the case with these changes, and more trusted entries."""
    case = dataclasses.replace(recipe, **changes).case()
    judge = VerdictJudge(case.facts, (*case.trusted, *insiders), case.versions, datetime.fromisoformat(NOW))
    return judge.access(case.ref, case.acl, case.head).verdict


def test_private_means_that_it_was_looked_at() -> None:
    for seed, recipe in enumerate(RECIPES):
        for given in (recipe, dataclasses.replace(recipe, statements=None), dataclasses.replace(recipe, acl=DENIED)):
            found, enforced = verdict(given), given.facts.get("ownership") == BUCKET_OWNER_ENFORCED
            if found in (PRIVATE, MASKED):
                # An Allow does not reach the object of another owner, so that its policy decides nothing there.
                foreign = isinstance(given.acl, Acl) and given.acl.owner != given.facts.get("owner", OWNER)
                assert given.statements is not None or foreign, seed
                assert isinstance(given.acl, Acl) or enforced or found is MASKED, seed


def test_a_fact_unread_never_makes_an_object_look_better() -> None:
    """The lost fact may be the one that exposed the object; then the verdict is unknown, and nothing less."""
    lost: list[dict[str, Any]] = [{"acl": DENIED}, {"head": DENIED}, {"statements": None}]
    for seed, recipe in enumerate(RECIPES[:50]):
        least = min(STRENGTH[verdict(recipe)], STRENGTH[UNKNOWN])
        for change in (*lost, *({"facts": {**recipe.facts, name: DENIED}} for name in BUCKET_FACTS)):
            assert STRENGTH[verdict(recipe, **change)] >= least, (seed, change)


def test_an_acl_that_was_read_shows_that_acls_count() -> None:
    for seed, recipe in enumerate(RECIPES):
        if isinstance(recipe.acl, Acl):
            unread, counts = ({**recipe.facts, "ownership": one} for one in (DENIED, "ObjectWriter"))
            assert verdict(recipe, facts=unread) is verdict(recipe, facts=counts), seed


def test_more_denies_and_trust_never_open_and_more_allows_and_grants_never_close() -> None:
    for seed, recipe in enumerate(RECIPES[:50]):
        before, some = verdict(recipe), recipe.statements
        if some is not None:
            closed, opened = [{**ONE_ACCOUNT, "Effect": "Deny"}, *some], [*some, ONE_ACCOUNT]
            assert STRENGTH[verdict(recipe, statements=closed)] <= STRENGTH[before], seed
            assert STRENGTH[verdict(recipe, statements=opened)] >= STRENGTH[before], seed
        if isinstance(recipe.acl, Acl):
            more = Acl(recipe.acl.owner, (*recipe.acl.grants, Grant(ALL_USERS, "READ")))
            assert STRENGTH[verdict(recipe, acl=more)] >= STRENGTH[before], seed
        trusting = verdict(recipe, *INSIDERS)
        assert STRENGTH[trusting] <= STRENGTH[before], seed
        assert (trusting is EXPOSED) == (before is EXPOSED), seed
