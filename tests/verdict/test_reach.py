"""Bucket policies: what parses, and what each statement allows and denies for one key."""

from __future__ import annotations

import json
from typing import Any

import pytest

from auditor.model.bucket import BucketFacts
from auditor.model.object import Skipped, Unread
from auditor.model.policy import MOST_CHARACTERS, parse
from auditor.verdict.principals import Principals
from auditor.verdict.reach import ALL_WAYS, NOTHING, READ, READ_ACP, WRITE_ACP, CompiledPolicy, Reach

OWNER = "a" * 64
OURS, THEIRS = "111122223333", "444455556666"
UNREAD = Unread("Operation", "AccessDenied")
GET, GET_VERSION = 0b01, 0b10


def insiders(*trusted: str, **facts: Any) -> Principals:
    values: dict[str, Any] = {
        "region": "eu-central-1",
        "owner": OWNER,
        "own_id": OWNER,
        "account": OURS,
        "ownership": "ObjectWriter",
        **dict.fromkeys(("public_access_block", "account_public_access_block", "acl", "policy_is_public"), UNREAD),
        **dict.fromkeys(("policy", "versioning", "encryption", "request_payer"), UNREAD),
    }
    return Principals(BucketFacts(bucket="bucket", **(values | facts)), frozenset(trusted))


def statement(effect: str = "Allow", **fields: Any) -> dict[str, Any]:
    """Everyone may read every object, unless said otherwise; an element given as None is left out."""
    whole = {"Effect": effect, "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::bucket/*"}
    return {name: value for name, value in (whole | fields).items() if value is not None}


def document(*statements: dict[str, Any], version: str = "2012-10-17") -> str:
    return json.dumps({"Version": version, "Id": "any", "Statement": list(statements)})


def reach(*statements: dict[str, Any], key: str = "a/b.txt", known: Principals | None = None) -> Reach:
    return CompiledPolicy(parse(document(*statements)), "bucket", known or insiders()).reach(key)


# ---- parsing


def test_no_policy_reaches_nothing() -> None:
    assert CompiledPolicy(parse(""), "bucket", insiders()).reach("key") is NOTHING


def test_a_single_statement_needs_no_list() -> None:
    text = json.dumps({"Version": "2012-10-17", "Statement": statement(Sid="one")})
    assert CompiledPolicy(parse(text), "bucket", insiders()).reach("key") == Reach(everyone=GET)


def test_an_empty_list_of_statements_is_a_policy_that_says_nothing() -> None:
    assert parse(document()).statements == ()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "not JSON"),
        (" ", "not JSON"),
        ("\ufeff{}", "not JSON"),
        ("[" * 50_000, "not JSON"),
        ('{"Statement":' + "[" * 20_000 + "]" * 20_000 + "}", "not JSON|not an object"),
        ("[]", "not a JSON object"),
        ("null", "not a JSON object"),
        ("9" * 5_000, "not JSON"),
        ("{}", "neither a list nor an object"),
        ('{"Statement": "x"}', "neither a list nor an object"),
        ('{"Statement": null}', "neither a list nor an object"),
        ('{"Statement": [1]}', "not an object"),
        ('{"statement": []}', "unknown element 'statement'"),
        ('{"Version": "2020-01-01", "Statement": []}', "Version"),
        ('{"Version": null, "Statement": []}', "Version"),
        ('{"Version": ["2012-10-17"], "Statement": []}', "Version"),
        ('{"Statement": [], "Statement": []}', "twice"),
        (" " * (MOST_CHARACTERS + 1), "longer than"),
    ],
)
def test_a_text_that_is_no_policy_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=rf"^(?=the policy|a statement).*({sentence})"):
        parse(text)


@pytest.mark.parametrize(
    ("situation", "fields", "sentence"),
    [
        ("an effect in another case", {"Effect": "allow"}, "Effect"),
        ("no effect", {"Effect": None}, "Effect"),
        ("an effect that is a list", {"Effect": ["Allow"]}, "Effect"),
        ("no principal", {"Principal": None}, "Principal"),
        ("both principals", {"NotPrincipal": "*"}, "Principal"),
        ("a principal that is a name", {"Principal": "everyone"}, "Principal"),
        ("a principal of an unknown kind", {"Principal": {"Aws": "*"}}, "Principal"),
        ("a principal that is a list", {"Principal": ["*"]}, "Principal"),
        ("a principal that is a number", {"Principal": {"AWS": 111122223333}}, "Principal"),
        ("no action", {"Action": None}, "Action"),
        ("both actions", {"NotAction": "s3:*"}, "Action"),
        ("an action that is a number", {"Action": [1]}, "Action"),
        ("an action that is an object", {"Action": {"x": 1}}, "Action"),
        ("no resource", {"Resource": None}, "Resource"),
        ("a resource that is a list of lists", {"Resource": [["x"]]}, "Resource"),
        ("a misspelt condition", {"Conditions": {}}, "unknown element 'Conditions'"),
        ("a condition that is a list", {"Condition": []}, "Condition"),
        ("a condition whose operator holds text", {"Condition": {"Bool": "true"}}, "Condition"),
        ("a condition value that is an object", {"Condition": {"Bool": {"k": {}}}}, "condition"),
    ],
)
def test_a_statement_that_is_none_is_refused(situation: str, fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=rf"^(?=a statement|a condition).*({sentence})"):
        parse(document(statement(**fields)))


def test_a_name_that_stands_twice_is_refused_wherever_it_stands() -> None:
    text = document(statement()).replace('"Effect": "Allow"', '"Effect": "Deny", "Effect": "Allow"')
    with pytest.raises(ValueError, match="twice"):
        parse(text)


# ---- actions


@pytest.mark.parametrize(
    ("action", "ways"),
    [
        ("s3:GetObject", GET),
        ("S3:getOBJECT", GET),
        ("s3:GetObjectVersion", GET_VERSION),
        ("s3:GetObject*", READ | READ_ACP),
        ("s3:Get*", READ | READ_ACP),
        ("s3:GetObjec?", GET),
        ("s3:*Acl", READ_ACP | WRITE_ACP),
        ("s3:*Version*", 0b101010),
        ("s3:PutObjectAcl", 0b010000),
        ("s3:Put*", WRITE_ACP),
        ("s3:*", ALL_WAYS),
        ("*", ALL_WAYS),
        (["s3:ListBucket", "s3:GetObject"], GET),
        ("s3:ListBucket", 0),
        ("s3:GetObjectTagging", 0),
        ("s3:PutObject", 0),
        ("ec2:*", 0),
        ("s3:GetObject?", 0),
        ("s3:Get${*}", 0),
        ("", 0),
        ([], 0),
    ],
)
def test_actions_name_ways(action: str | list[str], ways: int) -> None:
    assert reach(statement(Action=action)) == Reach(everyone=ways)
    assert reach(statement("Deny", Action=action)) == Reach(denied=ways)


# ---- resources

YES, NO, MAYBE = Reach(everyone=GET), NOTHING, Reach(undecided=GET)


@pytest.mark.parametrize(
    ("situation", "resource", "key", "expected"),
    [
        ("every object of the bucket", "arn:aws:s3:::bucket/*", "a/b.txt", YES),
        ("everything", "*", "a", YES),
        ("every bucket", "arn:aws:s3:::*", "a", YES),
        ("a star across the slash after the bucket", "arn:aws:s3:::buck*", "a", YES),
        ("a star for the bucket", "arn:aws:s3:::*/secret", "secret", YES),
        ("a star for the bucket crosses slashes", "arn:aws:s3:::*/secret", "a/b/secret", YES),
        ("China", "arn:aws-cn:s3:::bucket/*", "a", YES),
        ("GovCloud", "arn:aws-us-gov:s3:::bucket/*", "a", YES),
        ("any partition", "arn:*:s3:::bucket/*", "a", YES),
        ("any region and account", "arn:aws:s3:*:*:bucket/*", "a", YES),
        ("a prefix", "arn:aws:s3:::bucket/public/*", "public/a/b", YES),
        ("a prefix's own folder object", "arn:aws:s3:::bucket/public/*", "public/", YES),
        ("outside the prefix", "arn:aws:s3:::bucket/public/*", "private/a", NO),
        ("a longer name than the prefix", "arn:aws:s3:::bucket/public/*", "public2/a", NO),
        ("the key in another case", "arn:aws:s3:::bucket/Public/*", "public/a", NO),
        ("one key", "arn:aws:s3:::bucket/a", "a", YES),
        ("one key, and one that goes on", "arn:aws:s3:::bucket/a", "ab", NO),
        ("a suffix", "arn:aws:s3:::bucket/*.jpg", "x/y.jpg", YES),
        ("a suffix, and a newline after it", "arn:aws:s3:::bucket/*.jpg", "x.jpg\n", NO),
        ("stars around a word", "arn:aws:s3:::bucket/*/public/*", "a/public/b", YES),
        ("a question mark", "arn:aws:s3:::bucket/a?c", "a/c", YES),
        ("a question mark stands for one", "arn:aws:s3:::bucket/a?c", "ac", NO),
        ("the bucket alone", "arn:aws:s3:::bucket", "a", NO),
        ("the bucket and a slash", "arn:aws:s3:::bucket/", "a", NO),
        ("another bucket", "arn:aws:s3:::other/*", "a", NO),
        ("a bucket whose name begins with ours", "arn:aws:s3:::bucket2/*", "a", NO),
        ("a bucket whose name ours begins with", "arn:aws:s3:::buck/*", "a", NO),
        ("another service", "arn:aws:sqs:::bucket/*", "a", NO),
        ("an access point", "arn:aws:s3:eu-central-1:111122223333:accesspoint/x/object/*", "a", NO),
        ("one of a list", ["arn:aws:s3:::bucket", "arn:aws:s3:::bucket/*"], "a", YES),
        ("an empty list", [], "a", NO),
        ("a key with a leading slash", "arn:aws:s3:::bucket//*", "/a", YES),
        ("a key with a leading slash, not meant", "arn:aws:s3:::bucket/a", "/a", NO),
        ("a key with colons", "arn:aws:s3:::bucket/a:b:*", "a:b:c:d", YES),
        ("a key with a star in it, not meant", "arn:aws:s3:::bucket/ab", "*", NO),
        ("a key with a star in it, meant", "arn:aws:s3:::bucket/${*}", "*", YES),
        ("a starred pattern without its star", "arn:aws:s3:::bucket/${*}", "a", NO),
        ("a key with a question mark in it", "arn:aws:s3:::bucket/a${?}b", "a?b", YES),
        ("a key with a dollar in it", "arn:aws:s3:::bucket/${$}{x}", "${x}", YES),
        ("a plus is a plus", "arn:aws:s3:::bucket/a+b", "a b", NO),
        ("percents are not decoded", "arn:aws:s3:::bucket/%41", "A", NO),
        ("letters beyond ASCII", "arn:aws:s3:::bucket/ключ/*", "ключ/🗝️", YES),
        ("letters composed another way", "arn:aws:s3:::bucket/\u00e9*", "e\u0301", NO),
        ("a variable that may be this", "arn:aws:s3:::bucket/home/${aws:username}/*", "home/ada/x", MAYBE),
        ("a variable that cannot be this", "arn:aws:s3:::bucket/home/${aws:username}/*", "public/x", NO),
        ("a variable for the bucket", "arn:aws:s3:::${aws:username}/a", "a", MAYBE),
        ("a variable, and another pattern without", ["arn:aws:s3:::bucket/${x:y}", "arn:aws:s3:::*"], "a", YES),
        ("a variable in front", "arn:${a:b}:s3:::bucket/*", "a", MAYBE),
        ("a region", "arn:aws:s3:eu-central-1::bucket/*", "a", MAYBE),
        ("a tenant", "arn:aws:s3::tenant:bucket/*", "a", MAYBE),
        ("a tenant of one letter", "arn:aws:s3::X:bucket/*", "a", MAYBE),
        ("a service with a wildcard", "arn:aws:s?:::bucket/*", "a", MAYBE),
        ("too few parts", "arn:aws:s3:*", "a", MAYBE),
        ("no ARN", "bucket/*", "a", MAYBE),
        ("an empty text", "", "a", MAYBE),
    ],
)
def test_resources_cover_keys(situation: str, resource: str | list[str], key: str, expected: Reach) -> None:
    assert reach(statement(Resource=resource), key=key) == expected, situation
    denied = Reach(denied=GET) if expected == YES else NOTHING
    assert reach(statement("Deny", Resource=resource), key=key) == denied, f"{situation}, denied"


def test_policies_of_2008_know_no_variables() -> None:
    text = document(statement(Resource="arn:aws:s3:::bucket/${aws:username}"), version="2008-10-17")
    compiled = CompiledPolicy(parse(text), "bucket", insiders())
    assert compiled.reach("ada") == NOTHING
    assert compiled.reach("${aws:username}") == YES


def test_a_policy_without_a_version_is_one_of_2008() -> None:
    assert not parse(json.dumps({"Statement": []})).variables


def test_a_wildcard_that_invites_backtracking_is_answered() -> None:
    assert reach(statement(Resource="arn:aws:s3:::bucket/" + "*a" * 400 + "*b"), key="a" * 1024) == NOTHING


# ---- principals

ALL, OTHER, OWN, OPEN = Reach(everyone=GET), Reach(others=GET), NOTHING, Reach(undecided=GET)


@pytest.mark.parametrize(
    ("situation", "principal", "expected"),
    [
        ("everyone", "*", ALL),
        ("everyone, the long way", {"AWS": "*"}, ALL),
        ("everyone in a list", {"AWS": ["*"]}, ALL),
        ("our account's number", {"AWS": OURS}, OWN),
        ("our account's root", {"AWS": f"arn:aws:iam::{OURS}:root"}, OWN),
        ("our role", {"AWS": f"arn:aws:iam::{OURS}:role/path/name"}, OWN),
        ("our role, assumed", {"AWS": f"arn:aws:sts::{OURS}:assumed-role/name/session"}, OWN),
        ("our root in China", {"AWS": f"arn:aws-cn:iam::{OURS}:root"}, OWN),
        ("another account's number", {"AWS": THEIRS}, OTHER),
        ("another account's root", {"AWS": f"arn:aws:iam::{THEIRS}:root"}, OTHER),
        ("another account's user", {"AWS": f"arn:aws:iam::{THEIRS}:user/{OURS}"}, OTHER),
        ("ours and another", {"AWS": [OURS, THEIRS]}, OTHER),
        ("a unique id", {"AWS": "AIDACKCEVSQ6C2EXAMPLE"}, OPEN),
        ("eleven digits", {"AWS": OURS[:-1]}, OPEN),
        ("twelve digits of another script", {"AWS": "١" * 12}, OPEN),
        ("a star within a principal", {"AWS": f"arn:aws:iam::{OURS}:*"}, OPEN),
        ("a question mark within a principal", {"AWS": f"arn:aws:iam::{OURS[:-1]}?:root"}, OPEN),
        ("question marks for a canonical ID", {"CanonicalUser": "?" * 64}, OPEN),
        ("an ARN of another service", {"AWS": f"arn:aws:s3::{OURS}:x"}, OPEN),
        ("a CloudFront origin access identity", {"AWS": "arn:aws:iam::cloudfront:user/CloudFront X E1"}, OTHER),
        ("a Ceph user", {"AWS": "arn:aws:iam:::user/else"}, OTHER),
        ("the Ceph user who owns the bucket", {"AWS": f"arn:aws:iam:::user/{OWNER}"}, OWN),
        ("a tenant's user of the owner's name", {"AWS": f"arn:aws:iam::tenant:user/{OWNER}"}, OTHER),
        ("a Ceph tenant", {"AWS": "arn:aws:iam::tenant:root"}, OTHER),
        ("the owner's canonical ID", {"CanonicalUser": OWNER}, OWN),
        ("another canonical ID", {"CanonicalUser": "b" * 64}, OTHER),
        ("a star for a canonical ID", {"CanonicalUser": "*"}, OPEN),
        ("a service", {"Service": "cloudfront.amazonaws.com"}, OTHER),
        ("a federation", {"Federated": "accounts.google.com"}, OTHER),
        ("nobody", {"AWS": []}, OWN),
        ("no kind at all", {}, OWN),
    ],
)
def test_principals(situation: str, principal: Any, expected: Reach) -> None:
    assert reach(statement(Principal=principal)) == expected, situation
    denied = Reach(denied=GET) if expected == ALL else NOTHING
    assert reach(statement("Deny", Principal=principal)) == denied, f"{situation}, denied"


def test_a_star_beside_another_account_is_everyone_and_the_other() -> None:
    both = {"AWS": [f"arn:aws:iam::{THEIRS}:root", "*"]}
    assert reach(statement(Principal=both)) == Reach(everyone=GET, others=GET)
    assert reach(statement("Deny", Principal=both)) == Reach(denied=GET)


def test_kinds_of_principals_add_up() -> None:
    principal = {"AWS": ["*", "AIDAX"], "CanonicalUser": "b" * 64}
    assert reach(statement(Principal=principal)) == Reach(everyone=GET, others=GET, undecided=GET)


@pytest.mark.parametrize(
    ("trusted", "principal", "expected"),
    [
        (THEIRS, {"AWS": f"arn:aws:iam::{THEIRS}:role/x"}, OWN),
        (THEIRS, {"AWS": THEIRS}, OWN),
        (f"arn:aws:iam::{THEIRS}:role/x", {"AWS": f"arn:aws:iam::{THEIRS}:role/x"}, OWN),
        (f"arn:aws:iam::{THEIRS}:role/x", {"AWS": f"arn:aws:iam::{THEIRS}:role/y"}, OTHER),
        ("b" * 64, {"CanonicalUser": "b" * 64}, OWN),
        ("backup", {"AWS": "arn:aws:iam:::user/backup"}, OWN),
        ("backup", {"AWS": "arn:aws:iam::evil:user/backup"}, OTHER),
        ("tenant$backup", {"AWS": "arn:aws:iam::tenant:user/backup"}, OWN),
        ("AIDAX", {"AWS": "AIDAX"}, OWN),
        ("*", "*", ALL),
        ("*", {"AWS": "*"}, ALL),
    ],
)
def test_whom_the_configuration_trusts(trusted: str, principal: Any, expected: Reach) -> None:
    assert reach(statement(Principal=principal), known=insiders(trusted)) == expected


@pytest.mark.parametrize("missing", [UNREAD, Skipped("no account there"), "not-a-number", ""])
@pytest.mark.parametrize("account", [OURS, THEIRS, f"arn:aws:iam::{OURS}:root"])
def test_account_unknown_leaves_accounts_undecided(missing: object, account: str) -> None:
    assert reach(statement(Principal={"AWS": account}), known=insiders(account=missing)) == OPEN


def test_account_unknown_and_trusted_is_decided() -> None:
    assert reach(statement(Principal={"AWS": THEIRS}), known=insiders(THEIRS, account=UNREAD)) == OWN


@pytest.mark.parametrize("facts", [{"own_id": "c" * 64}, {"own_id": UNREAD}, {"owner": UNREAD}])
@pytest.mark.parametrize("account", [OURS, THEIRS])
def test_the_caller_is_not_known_to_own_the_bucket_so_its_account_may_be_another(
    account: str, facts: dict[str, Any]
) -> None:
    assert reach(statement(Principal={"AWS": account}), known=insiders(**facts)) == OPEN


@pytest.mark.parametrize("missing", [UNREAD, ""])
@pytest.mark.parametrize("principal", [{"CanonicalUser": "b" * 64}, {"AWS": "arn:aws:iam:::user/x"}])
def test_owner_unknown_leaves_canonical_ids_and_names_undecided(principal: Any, missing: object) -> None:
    assert reach(statement(Principal=principal), known=insiders(owner=missing)) == OPEN


# ---- conditions and negations


@pytest.mark.parametrize(
    ("situation", "condition", "decided"),
    [
        ("TLS", {"Bool": {"aws:SecureTransport": "true"}}, True),
        ("TLS as a boolean", {"Bool": {"aws:SecureTransport": True}}, True),
        ("TLS in a list, in other letters", {"Bool": {"AWS:securetransport": ["TRUE"]}}, True),
        ("TLS, if it is said", {"BoolIfExists": {"aws:SecureTransport": "true"}}, True),
        ("a version of TLS", {"NumericGreaterThanEquals": {"s3:TlsVersion": "1.2"}}, True),
        ("a version of TLS as a number", {"NumericGreaterThanEquals": {"s3:TlsVersion": 1.2}}, True),
        ("a version of TLS as a whole number", {"NumericGreaterThanEquals": {"s3:TlsVersion": 1}}, True),
        (
            "both",
            {"Bool": {"aws:SecureTransport": "true"}, "NumericGreaterThanEquals": {"s3:TlsVersion": ["1.3"]}},
            True,
        ),
        ("one of several versions", {"NumericGreaterThanEquals": {"s3:TlsVersion": ["9", "1.2"]}}, True),
        ("with TLS or without", {"Bool": {"aws:SecureTransport": ["false", "true"]}}, True),
        ("no condition in the object", {}, True),
        ("a TLS that nobody speaks", {"NumericGreaterThanEquals": {"s3:TlsVersion": "9"}}, False),
        ("a version that is no number", {"NumericGreaterThanEquals": {"s3:TlsVersion": "nan"}}, False),
        ("without TLS", {"Bool": {"aws:SecureTransport": "false"}}, False),
        ("an operator without keys", {"Bool": {}}, False),
        ("no values", {"Bool": {"aws:SecureTransport": []}}, False),
        ("another boolean", {"Bool": {"aws:MultiFactorAuthPresent": "true"}}, False),
        ("an address", {"IpAddress": {"aws:SourceIp": "0.0.0.0/0"}}, False),
        ("an organisation", {"StringEquals": {"aws:PrincipalOrgID": "o-x"}}, False),
        ("an operator over sets", {"ForAnyValue:Bool": {"aws:SecureTransport": "true"}}, False),
        (
            "TLS and an address",
            {"Bool": {"aws:SecureTransport": "true"}, "IpAddress": {"aws:SourceIp": "10.0.0.0/8"}},
            False,
        ),
        ("TLS and another boolean", {"Bool": {"aws:SecureTransport": "true", "aws:ViaAWSService": "true"}}, False),
    ],
)
def test_conditions_of_an_allow(situation: str, condition: Any, decided: bool) -> None:
    assert reach(statement(Condition=condition)) == (ALL if decided else OPEN), situation
    assert reach(statement(Principal={"AWS": THEIRS}, Condition=condition)) == (OTHER if decided else OPEN), situation
    assert reach(statement(Principal={"AWS": OURS}, Condition=condition)) == OWN, situation


@pytest.mark.parametrize(
    "condition", [{"Bool": {"aws:SecureTransport": "false"}}, {"Bool": {"aws:SecureTransport": "true"}}, {"Bool": {}}]
)
def test_a_conditional_deny_changes_nothing(condition: Any) -> None:
    assert reach(statement("Deny", Action="s3:*", Condition=condition)) is NOTHING


def negated(effect: str = "Allow", **fields: Any) -> dict[str, Any]:
    """A statement with `NotX` in place of `X`."""
    replaced: dict[str, Any] = {name.removeprefix("Not"): None for name in fields if name.startswith("Not")}
    return statement(effect, **fields, **replaced)


@pytest.mark.parametrize(
    ("situation", "fields", "expected"),
    [
        ("all but one principal", {"NotPrincipal": {"AWS": OURS}}, OPEN),
        ("all but everyone", {"NotPrincipal": "*"}, OPEN),
        ("all but other principals, for a bucket's action", {"NotPrincipal": "*", "Action": "s3:ListBucket"}, OWN),
        ("all but deleting", {"NotAction": "s3:DeleteObject"}, Reach(undecided=ALL_WAYS)),
        ("all but reading", {"NotAction": "s3:GetObject*"}, Reach(undecided=WRITE_ACP)),
        ("all but everything of S3", {"NotAction": "s3:*"}, OWN),
        ("all but deleting, for us", {"NotAction": "s3:DeleteObject", "Principal": {"AWS": OURS}}, OWN),
        ("all but deleting, elsewhere", {"NotAction": "s3:Del*", "Resource": "arn:aws:s3:::bucket/x"}, OWN),
        ("all but another key", {"NotResource": "arn:aws:s3:::bucket/x"}, OPEN),
        ("all but this key", {"NotResource": "arn:aws:s3:::bucket/a/*"}, OWN),
        ("all but the whole bucket", {"NotResource": "arn:aws:s3:::bucket/*"}, OWN),
        ("all but the bucket itself", {"NotResource": "arn:aws:s3:::bucket"}, OPEN),
        ("all but another bucket", {"NotResource": "arn:aws:s3:::other/*"}, OPEN),
        ("all but a variable", {"NotResource": "arn:aws:s3:::bucket/${aws:username}/*"}, OPEN),
        ("all but everything", {"NotResource": "*"}, OWN),
    ],
)
def test_negations(situation: str, fields: dict[str, Any], expected: Reach) -> None:
    assert reach(negated(**fields)) == expected, situation
    assert reach(negated("Deny", **fields)) is NOTHING, f"{situation}, denied"


# ---- statements together


def test_statements_add_up_for_each_key() -> None:
    compiled = CompiledPolicy(
        parse(
            document(
                statement(Resource="arn:aws:s3:::bucket/public/*"),
                statement(Principal={"AWS": THEIRS}, Action="s3:GetObjectAcl"),
                statement("Deny", Action="s3:*", Resource="arn:aws:s3:::bucket/public/not/*"),
            )
        ),
        "bucket",
        insiders(),
    )
    other = Reach(others=0b000100)
    assert compiled.reach("private") == other
    assert compiled.reach("public/a") == other.with_(Reach(everyone=GET))
    assert compiled.reach("public/not/a") == other.with_(Reach(everyone=GET, denied=ALL_WAYS))


def test_statements_that_concern_no_object_of_the_bucket_cost_nothing_for_each_key() -> None:
    policy = parse(
        document(
            statement(Action="s3:ListBucket"),
            statement(Resource="arn:aws:s3:::bucket"),
            statement(Resource="arn:aws:s3:::other/*"),
            statement(Principal={"AWS": OURS}),
            statement("Deny", Principal={"AWS": THEIRS}),
            statement("Deny", Condition={"Bool": {"aws:SecureTransport": "false"}}),
        )
    )
    assert CompiledPolicy(policy, "bucket", insiders()).reach("key") is NOTHING


def test_statements_for_every_object_cost_nothing_for_each_key() -> None:
    whole = document(statement(), statement(Principal={"AWS": THEIRS}, Resource=["arn:aws:s3:::other/*", "*"]))
    compiled = CompiledPolicy(parse(whole), "bucket", insiders())
    assert compiled.reach("a") is compiled.reach("b")
