"""A probe against a server that answers strangers by ACL and policy: it agrees, finds planted lies, tells all apart."""

from __future__ import annotations

import json
from typing import Any

import pytest

from auditor.errors import UsageError
from auditor.model.object import ALL_USERS, ANONYMOUS_OWNER, AUTHENTICATED_USERS, Grant
from auditor.offline.probe.probe_result import ObjectResult, ProbeResult
from auditor.offline.probe.probe_run import ProbeOrder
from tests.offline.probe.conftest import Probing
from tests.support.odd_keys import ODD_KEYS
from tests.support.schemas import valid
from tests.support.servers.clients import BUCKET
from tests.support.servers.strangers import signer_of
from tests.support.servers.stub_calls import Reply
from tests.support.servers.world import OWNER, STRANGER

FULL = Grant(OWNER, "FULL_CONTROL")
ELSEWHERE = "203.0.113.0/24"
HERE = "198.51.100.0/24"


def policy(*statements: dict[str, Any]) -> str:
    fixed = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{BUCKET}/*"}
    return json.dumps({"Version": "2012-10-17", "Statement": [{**fixed, **one} for one in statements]})


def network(cidr: str, prefix: str = "*") -> dict[str, Any]:
    return {
        "Resource": f"arn:aws:s3:::{BUCKET}/{prefix}",
        "Condition": {"IpAddress": {"aws:SourceIp": cidr}},
    }


def counts(found: ProbeResult) -> dict[str, int]:
    return {result.value: found.number(result) for result in ObjectResult if found.number(result)}


def left_out(found: ProbeResult) -> dict[str, int]:
    return dict(found.left_out)


async def test_agrees_on_objects_of_each_kind(probing: Probing) -> None:
    probing.put("private")
    probing.put("public", acl="public-read")
    probing.put("everything", grants=(FULL, Grant(ALL_USERS, "FULL_CONTROL")))
    probing.put("acl-alone", grants=(FULL, Grant(ALL_USERS, "READ_ACP")))
    probing.put("named", grants=(FULL, Grant(STRANGER, "READ")))
    probing.put("anonymous", owner=ANONYMOUS_OWNER)
    probing.put("policy/object")
    probing.put("denied/public", acl="public-read")
    deny = {"Effect": "Deny", "Action": "s3:GetObject*", "Resource": f"arn:aws:s3:::{BUCKET}/denied/*"}
    probing.bucket.policy = policy({"Resource": f"arn:aws:s3:::{BUCKET}/policy/*"}, deny)
    found = await probing.probe()
    assert (found.exit_code, found.disagreements) == (0, [])
    assert found.results[ObjectResult.AGREED] == {"exposed": 5, "private": 1, "shared": 1, "masked": 1}
    calls = [(call.key, call.operation) for call in probing.server.asked]
    assert ("acl-alone", "HeadObject") not in calls
    assert ("acl-alone", "GetObjectAcl") in calls
    assert {call.operation for call in probing.server.asked} == {"HeadObject", "GetObjectAcl"}
    assert probing.server.count("GetObject") == 0
    assert {call.method for call in probing.server.calls} <= {"GET", "HEAD", "POST"}


async def test_a_planted_wrong_verdict_is_found(probing: Probing) -> None:
    probing.put("public", acl="public-read")
    probing.put("closed")
    probing.put("right")
    await probing.audit()
    probing.plant("public", verdict="private", audience=[], reasons=[])
    probing.plant("closed", verdict="exposed", audience=["anyone"], reasons=[])
    found = await probing.probe()
    assert found.exit_code == 3
    assert counts(found) == {"agreed": 1, "disagreed": 2}
    lines = [line for line in found.text().splitlines() if line.startswith("DISAGREES")]
    assert sorted(lines) == [
        "DISAGREES closed is exposed: unsigned GetObjectAcl has to be answered, and got 403 and 403",
        "DISAGREES closed is exposed: unsigned HeadObject has to be answered, and got 403 and 403",
        "DISAGREES public is private: unsigned HeadObject has to be refused, and got 200 and 200",
    ]


async def test_a_server_that_answers_otherwise_than_the_facts_say_is_found(probing: Probing) -> None:
    probing.put("public", acl="public-read")
    await probing.audit()
    lies: Any
    for lies, said in (
        (lambda call, nth: 403 if nth == 1 else None, (4, {"not_compared": 1}, 1)),
        (lambda call, nth: 403, (3, {"disagreed": 1}, 0)),
        (lambda call, nth: 404, (4, {"deleted": 1}, 0)),
        (lambda call, nth: 405, (4, {"deleted": 1}, 0)),
        (lambda call, nth: 403 if nth == 1 else 404, (4, {"deleted": 1}, 0)),
        (lambda call, nth: 403 if nth == 1 else 503, (4, {"not_compared": 1}, 1)),
    ):
        probing.server.lies = lies
        found = await probing.probe()
        assert (found.exit_code, counts(found), found.unsteady) == said


async def test_an_answer_that_is_not_of_s3_proves_nothing(probing: Probing) -> None:
    probing.put("private")
    await probing.audit()
    answer = probing.server.hook
    probing.server.hook = lambda call: answer(call) if signer_of(call) else Reply(200, {}, b"<html>sign in</html>")
    found = await probing.probe()
    assert (found.exit_code, counts(found), found.unsteady) == (4, {"not_compared": 1}, 1)


async def test_a_failed_request_is_repeated_once(probing: Probing) -> None:
    probing.put("private")
    probing.server.lies = lambda call, nth: 503
    found = await probing.probe()
    assert (found.exit_code, counts(found), found.unsteady) == (4, {"not_compared": 1}, 1)
    assert found.to_dict()["answers"] == {"unsigned": {"503": 2}}
    assert len(probing.server.asked) == 4
    assert "the probe sends 2 unsigned requests" in probing.told[0]
    assert "for each answer that contradicts a verdict and for each request that fails:" in probing.told[0]


async def test_deleted_and_changed_objects_are_counted_apart(probing: Probing) -> None:
    for key in ("deleted", "rewritten", "other-acl", "same"):
        probing.put(key, body=b"first")
    await probing.audit()
    probing.bucket.delete("deleted")
    probing.put("rewritten", body=b"second", acl="public-read")
    probing.put("other-acl", body=b"first", acl="public-read")
    found = await probing.probe()
    assert counts(found) == {"agreed": 1, "deleted": 1, "changed": 2}
    assert {call.key for call in probing.server.asked} == {"same"}


async def test_a_bucket_whose_policy_changed_since_compares_nothing(probing: Probing) -> None:
    probing.put("a")
    await probing.audit()
    probing.bucket.policy = policy({})
    found = await probing.probe()
    assert (found.exit_code, counts(found)) == (4, {"changed": 1})
    assert probing.server.asked == []


async def test_objects_that_are_left_out(probing: Probing) -> None:
    probing.put("acl-writable", grants=(FULL, Grant(ALL_USERS, "WRITE_ACP")))
    probing.put("any account", grants=(FULL, Grant(AUTHENTICATED_USERS, "READ")))
    probing.put("customer", acl="public-read", sse_c=True)
    probing.put("kms", acl="public-read", sse="aws:kms", kms_key="arn:aws:kms:us-east-1:111122223333:key/k")
    probing.put("archived", acl="public-read", storage_class="GLACIER")
    probing.put("archived-private", storage_class="GLACIER")
    probing.put("restored", acl="public-read", storage_class="GLACIER", restored=True)
    found = await probing.probe()
    assert left_out(found) == {
        "open in a way that the probe does not try": 1,
        "any AWS account, without --as": 1,
        "SSE-C": 1,
        "KMS key": 1,
        "archived": 1,
    }
    # Of masked objects the ACL is asked; of the archived open one nothing is left to ask.
    assert (found.exit_code, counts(found)) == (0, {"agreed": 5, "not_compared": 2})
    operations = {call.operation for call in probing.server.asked if call.key == "any account"}
    assert operations == {"HeadObject", "GetObjectAcl"}


async def test_objects_that_rest_on_networks(probing: Probing) -> None:
    probing.put("here/a")
    probing.put("elsewhere/a")
    probing.put("other/a")
    probing.bucket.policy = policy(network(HERE, "here/*"), network(ELSEWHERE, "elsewhere/*"))
    without = await probing.probe()
    assert left_out(without) == {"vantage not known": 2}
    assert (without.exit_code, counts(without)) == (0, {"agreed": 3})  # their ACLs rest on no network
    placed = await probing.probe(ProbeOrder(address="198.51.100.7"))
    assert (placed.exit_code, left_out(placed), counts(placed)) == (0, {}, {"agreed": 3})
    answered = {call.key for call in probing.server.asked[-6:] if call.operation == "HeadObject"}
    assert answered == {"here/a", "elsewhere/a", "other/a"}


async def test_conditions_that_exclude_the_vantage(probing: Probing) -> None:
    header = {"Condition": {"StringLike": {"aws:Referer": "https://example.com/*"}}}
    wide = network("128.0.0.0/1", "wide/*")
    probing.put("header/a")
    probing.put("wide/a")
    probing.bucket.policy = policy({"Resource": f"arn:aws:s3:::{BUCKET}/header/*", **header}, wide)
    probing.bucket.policy_is_public = True
    run = await probing.audit()
    assert {line["verdict"] for line in run.objects} == {"exposed"}
    assert left_out(await probing.probe()) == {"a condition excludes the vantage": 1, "vantage not known": 1}
    probing.server.address = "9.9.9.9"
    outside = await probing.probe(ProbeOrder(address="9.9.9.9"))
    assert (left_out(outside), outside.exit_code) == ({"a condition excludes the vantage": 2}, 4)
    probing.server.address = "198.51.100.7"
    inside = await probing.probe(ProbeOrder(address="198.51.100.7"))
    assert (left_out(inside), counts(inside)["agreed"]) == ({"a condition excludes the vantage": 1}, 1)


async def test_who_may_not_order_it_and_from_where(probing: Probing) -> None:
    probing.put("a")
    await probing.audit(trusted=frozenset({HERE}))
    for address, words in (
        ("198.51.100.7", r"the vantage is an insider: --vantage 198\.51\.100\.7"),
        ("::ffff:198.51.100.7", r"the vantage is an insider: --vantage 198\.51\.100\.7"),
        ("here", "--vantage 'here' is not an IP address"),
    ):
        with pytest.raises(UsageError, match=words):
            await probing.probe(ProbeOrder(address=address))
    probing.bucket.owner = STRANGER
    await probing.audit()
    with pytest.raises(UsageError, match="only the owner of audited may start a probe"):
        await probing.probe()
    assert probing.server.asked == []


async def test_versions_are_asked_by_their_ids(probing: Probing) -> None:
    probing.bucket.versioning = "Enabled"
    probing.put("a", body=b"old", acl="public-read")
    probing.put("a", body=b"new")
    probing.put("gone", acl="public-read")
    probing.bucket.delete("gone")
    run = await probing.audit(versions=True)
    assert len(run.objects) == 3
    found = await probing.probe()
    assert (found.exit_code, counts(found)) == (0, {"agreed": 3})
    asked = {call.version_id for call in probing.server.asked}
    assert asked == {line["version_id"] for line in run.objects}


async def test_an_object_open_by_its_version_alone_is_asked_so(probing: Probing) -> None:
    probing.put("a", acl="public-read")
    probing.bucket.policy = policy({"Effect": "Deny"})
    assert (await probing.audit()).line("a")["verdict"] == "exposed"
    found = await probing.probe()
    assert (found.exit_code, counts(found)) == (0, {"agreed": 1})
    assert [call.version_id for call in probing.server.asked] == ["null"]


async def test_requester_pays(probing: Probing) -> None:
    probing.bucket.request_payer = "Requester"
    probing.put("a", acl="public-read")
    await probing.audit(requester_pays=True)
    found = await probing.probe(requester_pays=True)
    assert (found.exit_code, left_out(found)) == (4, {"Requester Pays": 1})
    assert probing.server.asked == []


async def test_unknown_verdicts_are_not_compared(probing: Probing) -> None:
    probing.put("a")
    probing.bucket.policy = policy({"Condition": {"StringEquals": {"s3:ExistingObjectTag/x": "y"}}})
    found = await probing.probe()
    assert (found.exit_code, left_out(found)) == (4, {"the verdict is unknown": 1})


async def test_the_json_names_nothing(probing: Probing) -> None:
    for number, key in enumerate(ODD_KEYS.values()):
        probing.put(key, acl="public-read" if number % 2 else None)
    await probing.audit()
    for key in ODD_KEYS.values():
        probing.plant(key, verdict="private", audience=[], reasons=[])
    found = await probing.probe(ProbeOrder(sample=1000, most=1000))
    assert found.number(ObjectResult.AGREED, ObjectResult.DISAGREED) == len(ODD_KEYS)
    assert found.number(ObjectResult.DISAGREED) == len(ODD_KEYS) // 2
    valid("probe", found.to_dict())
    text = json.dumps(found.to_dict())
    assert BUCKET not in text
    assert not any(word in text for word in ("111122223333", OWNER, "arn:"))
    assert found.to_dict()["disagreements"][0] == {
        "verdict": "private", "call": "HeadObject", "signed": False, "open": False, "answers": ["200", "200"],
    }  # fmt: skip
    assert all(line.isprintable() for line in found.text().split("\n"))


async def test_the_sample_is_bounded_and_the_first_sentence_says_how_many_requests_follow(probing: Probing) -> None:
    for number in range(30):
        probing.put(f"a/{number:02}", acl="public-read")
        probing.put(f"b/{number:02}")
    found = await probing.probe(ProbeOrder(sample=5, most=8))
    asked = {call.key for call in probing.server.asked}
    assert len({key for key in asked if key.startswith("a/")}) == 4, "the groups take turns"
    assert (found.sampled, found.groups, counts(found)) == (8, 2, {"agreed": 8})
    (told,) = probing.told
    assert told.startswith("the probe sends 12 unsigned requests, 10 a second")
    assert "the owner of audited" in told
    assert len(probing.server.asked) == 12
    await probing.probe(ProbeOrder(sample=5, most=8))
    assert {call.key for call in probing.server.asked} == asked, "the sample of a run is the same each time"
    await probing.probe(ProbeOrder(sample=5, most=1))
    assert probing.server.asked[24:]
    assert {call.key[:2] for call in probing.server.asked[24:]} == {"a/"}, "the worst group comes first"
