"""Read the case files of the verdict: the facts of a bucket and an object, and the access that they must come to.

A file is TOML. Each header names the situation, such as `[["idiom 4"]]`, and has any number of cases. A case has a
title, the expected `verdict`, the `audience` texts and the `reasons`; `judge_only` leaves it to the judge where the
oracle lacks the fact. All other fields are facts; a fact that the case leaves out is that of a private object in a
bucket of its own: ACLs in use, no policy, no public access block. docs/verdict.md shows the first case of each idiom,
and those that are `shown`.

Words stand for long values. `owner` owns the bucket, `anonymous` is S3's owner of unsigned uploads, `stranger` and
`friend` are two more canonical IDs; a grant is written "stranger READ". A statement of a policy has its own field
names; by default it allows everybody s3:GetObject on each object of the bucket. `unread` in place of a fact is a fact
that could not be read.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from auditor.model.access import ReasonCode, Verdict
from auditor.model.bucket import (
    NOT_GIVEN,
    AccessGrant,
    AccessGrants,
    AccessPoint,
    BucketFacts,
    Encryption,
    GranteeType,
    GrantPermission,
    PublicAccessBlock,
    Semantics,
)
from auditor.model.object import (
    ALL_USERS,
    ANONYMOUS_OWNER,
    AUTHENTICATED_USERS,
    LOG_DELIVERY,
    Acl,
    Grant,
    Head,
    ObjectRef,
    Skipped,
    Unread,
)

NOT_TESTED: Final = Skipped("no statement of the bucket policy asks for a tag of the bucket")
FOLDER: Final = Path(__file__).parent / "cases"
OWN_ACCOUNT: Final = "111122223333"
INSTANCE: Final = f"arn:aws:s3:eu-central-1:{OWN_ACCOUNT}:access-grants/default"
WORDS: Final = {
    "owner": "a" * 64,
    "stranger": "b" * 64,
    "friend": "c" * 64,
    "identity": "d" * 96,  # the length of the canonical ID of an origin access identity
    "anonymous": ANONYMOUS_OWNER,
    "AllUsers": ALL_USERS,
    "AuthenticatedUsers": AUTHENTICATED_USERS,
    "LogDelivery": LOG_DELIVERY,
}
FACTS: Final = frozenset(
    {
        *("semantics", "bucket_owner", "own_id", "account", "ownership", "block", "account_block", "public"),
        *("statements", "version", "policy", "payer", "trusted", "abac", "tags", "access_points", "access_grants"),
        *("key_policies", "acl", "head", "key", "owner", "latest"),
    }
)
SAID: Final = frozenset({"title", "verdict", "audience", "reasons", "shown", "judge_only"})


@dataclass(frozen=True, slots=True)
class Case:
    """verdicts: the verdict, or each that is right. audience: None if the case does not say. reasons: codes, or whole
    texts, that must be among the object's reasons. judged_twice: the oracle knows the facts of the case, too.
    """

    of: str
    title: str
    bucket: BucketFacts
    trusted: frozenset[str]
    versions: bool
    ref: ObjectRef
    acl: Acl | Unread | Skipped
    head: Head | Unread | Skipped
    verdicts: frozenset[Verdict]
    audience: frozenset[str] | None
    reasons: tuple[str, ...]
    judged_twice: bool

    @property
    def name(self) -> str:
        return f"{self.of}, {self.title}"


def read_cases() -> dict[str, list[Case]]:
    """The cases of each file. Raises ValueError for a field, a verdict or a reason that does not exist."""
    files = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.toml"))}
    return {name: [_case(of, written) for of in file for written in file[of]] for name, file in files.items()}


def _case(of: str, written: Mapping[str, Any]) -> Case:
    if unknown := set(written) - FACTS - SAID:
        raise ValueError(f"{of}, {written.get('title')}: no field is called {sorted(unknown)}")
    verdicts = written["verdict"] if isinstance(written["verdict"], list) else [written["verdict"]]
    audience = written.get("audience")
    reasons = tuple(written.get("reasons", ()))
    for reason in reasons:
        ReasonCode(reason.partition(": ")[0])
    bucket = bucket_facts(written)
    return Case(
        of,
        written["title"],
        bucket,
        frozenset(map(word, written.get("trusted", ()))),
        not written.get("latest", True),
        _ref(written),
        _acl(written.get("acl", [])),
        _head(written.get("head", {})),
        frozenset(map(Verdict, verdicts)),
        None if audience is None else frozenset(_words(text) for text in audience),
        tuple(_words(reason) for reason in reasons),
        not (written.get("judge_only") or "access_grants" in written or bucket.semantics is Semantics.CEPH),
    )


def bucket_facts(written: Mapping[str, Any]) -> BucketFacts:
    """The facts of the bucket, as a run reads them on AWS."""
    return BucketFacts(
        bucket="bucket",
        region="eu-central-1",
        owner=_or_unread(word(written.get("bucket_owner", "owner")), "GetBucketAcl"),
        own_id=_or_unread(word(written.get("own_id", written.get("bucket_owner", "owner"))), "ListBuckets"),
        account=_or_unread(written.get("account", OWN_ACCOUNT), "GetCallerIdentity"),
        ownership=written.get("ownership", "ObjectWriter"),
        public_access_block=_block(written.get("block", [])),
        account_public_access_block=_block(written.get("account_block", [])),
        acl=_acl([]),
        policy_is_public=_or_unread(written.get("public", False), "GetBucketPolicyStatus"),
        policy=_policy(written),
        versioning="Enabled",
        encryption=Encryption("AES256"),
        request_payer=written.get("payer", "BucketOwner"),
        semantics=Semantics(written.get("semantics", "aws")),
        abac=_or_unread(written.get("abac", NOT_TESTED), "GetBucketAbac"),
        tags=_tags(written.get("tags", NOT_TESTED)),
        access_points=_access_points(written.get("access_points", [])),
        access_grants=_access_grants(written.get("access_grants")),
        key_policies={name: _key_policy(policy) for name, policy in written.get("key_policies", {}).items()},
    )


def document(statements: Sequence[Mapping[str, Any]], version: str = "2012-10-17") -> str:
    """The policy of `statements` as JSON text, each with the defaults of a case."""
    return json.dumps({"Version": version, "Statement": [_statement(written) for written in statements]})


def _statement(written: Mapping[str, Any]) -> dict[str, Any]:
    whole = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::bucket/*"}
    for name in written:
        whole.pop(name.removeprefix("Not"), None)
    return whole | {name: _canonical(value) if name.endswith("Principal") else value for name, value in written.items()}


def _canonical(principal: Any) -> Any:
    """A principal with the words of its canonical IDs replaced."""
    if not isinstance(principal, dict) or "CanonicalUser" not in principal:
        return principal
    named = principal["CanonicalUser"]
    return principal | {"CanonicalUser": word(named) if isinstance(named, str) else list(map(word, named))}


def word(text: str) -> str:
    return WORDS.get(text, text)


def _words(text: str) -> str:
    """`text` with each word in it replaced."""
    return " ".join(word(part) for part in text.split(" "))


def _policy(written: Mapping[str, Any]) -> str | Unread:
    if "policy" in written:
        return Unread("GetBucketPolicy", "AccessDenied") if written["policy"] == "unread" else str(written["policy"])
    return document(written["statements"], written.get("version", "2012-10-17")) if "statements" in written else ""


def _key_policy(written: Any) -> str | Unread:
    return Unread("GetKeyPolicy", "AccessDenied") if written == "unread" else document(written)


def _or_unread(written: Any, action: str) -> Any:
    return Unread(action, "AccessDenied") if written == "unread" else written


def _block(on: Any) -> Any:
    return _or_unread(on, "GetPublicAccessBlock") if on == "unread" else PublicAccessBlock(**dict.fromkeys(on, True))


def _tags(written: Any) -> Any:
    """The tags of the bucket by their keys; false is a tag that the bucket does not have."""
    if not isinstance(written, dict):
        return _or_unread(written, "GetBucketTagging")
    return {key: value or None for key, value in written.items()}


def _access_points(written: Any) -> tuple[AccessPoint, ...] | Unread | Skipped:
    if written == "skipped":
        return Skipped("no statement delegates to access points")
    if written == "unread":
        return Unread("ListAccessPoints", "AccessDenied")
    return tuple(_access_point(point) for point in written)


def _access_grants(written: Any) -> AccessGrants | Unread | Skipped:
    """The grants by their IDs, in the order of the case: g-1, g-2."""
    if written is None:
        return NOT_GIVEN
    if written == "unread":
        return Unread("ListAccessGrants", "AccessDenied")
    grants = tuple(access_grant(f"g-{number}", one) for number, one in enumerate(written, 1))
    return AccessGrants(account=OWN_ACCOUNT, instance=INSTANCE, grants=grants)


def access_grant(name: str, written: Mapping[str, str]) -> AccessGrant:
    """A grant on every object, to read, unless it says otherwise. `to`: an ARN, `user UUID` or `group UUID`."""
    kind, _, grantee = written["to"].rpartition(" ")
    types = {"": GranteeType.IAM, "user": GranteeType.DIRECTORY_USER, "group": GranteeType.DIRECTORY_GROUP}
    return AccessGrant(
        id=name,
        grantee_type=types[kind],
        grantee=grantee,
        permission=GrantPermission(written.get("permission", "READ")),
        scope=written.get("scope", "s3://bucket/*"),
    )


def _access_point(written: Mapping[str, Any]) -> AccessPoint:
    arn = f"arn:aws:s3:eu-central-1:{OWN_ACCOUNT}:accesspoint/{written['name']}"
    statements = [{"Resource": f"{arn}/object/*", **statement} for statement in written.get("statements", [])]
    return AccessPoint(
        arn=arn,
        account=OWN_ACCOUNT,
        vpc=written.get("vpc"),
        public_access_block=_block(written.get("block", [])),
        policy=_policy({**written, "statements": statements} if statements else written),
        policy_is_public=_or_unread(written.get("public", False), "GetAccessPointPolicyStatus"),
    )


def _ref(written: Mapping[str, Any]) -> ObjectRef:
    latest = written.get("latest", True)
    owner = written.get("owner", "owner")
    return ObjectRef(
        written.get("key", "dir/key"),
        etag="e",
        size=1,
        last_modified="2026-01-02T03:04:05Z",
        version_id=None if latest else "v1",
        owner=word(owner) or None,
        is_latest=latest,
    )


def _acl(written: Any) -> Acl | Unread | Skipped:
    """The ACL: a list of grants, after the owner's own; a table if the owner is another; or "unread" or "skipped"."""
    if written == "unread":
        return Unread("GetObjectAcl", "AccessDenied")
    if written == "skipped":
        return Skipped("no selected rule needs it")
    owner, grants = ("owner", written) if isinstance(written, list) else (written["owner"], written.get("grants", []))
    pairs = (grant.split() for grant in [f"{owner} FULL_CONTROL", *grants])
    return Acl(word(owner), tuple(Grant(word(grantee), permission) for grantee, permission in pairs))


def _head(written: Any) -> Head | Unread | Skipped:
    if isinstance(written, str):
        return Unread("HeadObject", written)
    plain: dict[str, Any] = {"etag": "e", "content_length": 1}
    if "sse_customer_algorithm" not in written:
        plain["server_side_encryption"] = "AES256"
    return Head(**plain | written)
