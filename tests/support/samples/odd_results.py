"""Results of judging objects that are odd and possible: each value that a member of a line can have, and each mixture
of facts that were read and were not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle, product
from typing import Any, Final

from msgspec.structs import replace

from auditor.model.access import Audience, AudienceKind, ObjectAccess, Reason, ReasonCode, Verdict
from auditor.model.finding import Finding, Judgement, Severity
from auditor.model.object import (
    ALL_USERS,
    AUTHENTICATED_USERS,
    CUSTOMER_KEY,
    GROUP_OF,
    LOG_DELIVERY,
    NO_LEDGER,
    Acl,
    DormantAcl,
    Evidence,
    FactOrigin,
    Grant,
    Head,
    ObjectRef,
    PartialHead,
    ReadAt,
    Skipped,
    Unread,
)
from auditor.model.run_lines import Standing
from tests.support.odd_keys import ODD_KEYS

OWNER: Final = "a0" * 8
STRANGER: Final = "b1" * 8
WRITTEN: Final = "2026-01-02T03:04:05Z"
LAST: Final = 2**63 - 1
"""The largest size that a line can have."""


def _is_plain(key: str) -> bool:
    return key.isascii() and key.isprintable() and not re.search(r"[\"\\%<&/]", key)


KEYS: Final[Mapping[str, str]] = {
    **{name: key for name, key in ODD_KEYS.items() if not _is_plain(key)},
    "controls": "".join(map(chr, range(1, 32))),
    "c1 controls": "".join(map(chr, range(0x7F, 0xA0))),
    "null character": "a\x00b",
    "quotes and backslashes": '"\\"\\\\"\\u0041\\ud800"',
    "the begin of a line's results": '","outcome":"audited","changed":false',
    "the begin of another line": '{"key":"x","version_id":null,',
    "templates": "%s %(key)s %% {key} {0} {{}}",
    "paragraph separator": "a\u2029b",
    "last character of the bmp": "\uffff/\ufffe",
    "last character of unicode": "\U0010ffff",
    "four bytes each": "\U0001f512" * 256,
    "escaped in one kilobyte": '"' * 1024,
    "slash alone": "/",
    "prefix with a quote": 'a"b/c"d',
}
"""Keys by the name of their oddity, of 1,024 bytes in UTF-8 at most."""

SIZES: Final = (0, 1, 2**31, 2**32 + 1, 5 * 1024**4, 2**53 + 1, LAST)
ETAGS: Final = ("", "d41d8cd98f00b204e9800998ecf8427e", f"{'0a' * 16}-10000", 'W/"weak"', "%s \\ é \u2028")
CLASSES: Final = ("DEEP_ARCHIVE", "EXPRESS_ONEZONE", "", 'A "new" one %s')

SKIPPED: Final = Skipped("not needed")
PRIVATE: Final = Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"),))
ACLS: Final[Mapping[str, Acl | Unread | Skipped]] = {
    "private ACL": PRIVATE,
    "public ACL": Acl(STRANGER, (Grant(LOG_DELIVERY, "WRITE"), Grant(AUTHENTICATED_USERS, "READ_ACP"))),
    "ACL without grants": Acl("", ()),
    "unread ACL": Unread("GetObjectAcl", "AccessDenied"),
    "skipped ACL": Skipped("the bucket has ACLs disabled"),
}
DATES: Final = "2026-01-02T03:04:05Z"
FULL: Final = Head(
    etag="d41d8cd98f00b204e9800998ecf8427e",
    content_length=LAST,
    last_modified=DATES,
    content_type='text/html; charset="utf-8"',
    content_encoding="gzip, aws-chunked",
    content_disposition="attachment; filename*=UTF-8''%e2%82%ac%20rates",
    content_language="de-CH",
    cache_control="max-age=31536000, immutable",
    expires="Thu, 01 Dec 1994 16:00:00 GMT",
    metadata={"z-last": "1", "a-first": "é \u2028", 'quote"': "\\", "": "", "percent %s": "%", "\U0001f512": "\x01"},
    missing_meta=2,
    version_id="3/L4kqtJlcpXroDTDmJ+rmSpXd3dIbrHY+MTRCxf3vjVBH40Nr8X8gdRQBpUMLUo",
    storage_class="STANDARD_IA",
    server_side_encryption="aws:kms:dsse",
    sse_kms_key_id="arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d",
    bucket_key_enabled=True,
    sse_customer_algorithm="AES256",
    checksum_type="FULL_OBJECT",
    checksum_crc32="AAAAAA==",
    checksum_crc32c="4waSgw==",
    checksum_crc64nvme="AAAAAAAAAAA=",
    checksum_sha1="2jmj7l5rSw0yVb/vlWAYkK/YBwk=",
    checksum_sha256="47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
    checksum_sha512="z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
    checksum_md5="1B2M2Y8AsgTpgAmY7PhCfg==",
    checksum_xxhash64="70bbN1HYHpk=",
    checksum_xxhash3="LQaARVmcObo=",
    checksum_xxhash128="mQBoAWABgMlcWYoWuKVwCg==",
    website_redirect_location="/elsewhere?a=%20&b",
    replication_status="REPLICA",
    parts_count=10_000,
    tag_count=10,
    object_lock_mode="COMPLIANCE",
    object_lock_retain_until_date="2099-12-31T23:59:59Z",
    object_lock_legal_hold_status="ON",
    object_lock_event_hold="OFF",
    object_lock_event_hold_duration_days=36500,
    object_lock_event_hold_duration_years=100,
    restore='ongoing-request="false", expiry-date="Fri, 21 Dec 2012 00:00:00 GMT"',
    archive_status="DEEP_ARCHIVE_ACCESS",
    expiration='expiry-date="Fri, 21 Dec 2012 00:00:00 GMT", rule-id="a%20rule"',
)
SMALL: Final = Head("e" * 32, 0)
LISTED: Final = frozenset({"etag", "content_length", "last_modified", "storage_class", "server_side_encryption"})
"""The members of the partial HEAD that were read."""
PART: Final = PartialHead(
    "e" * 32,
    5 * 1024**4,
    DATES,
    storage_class="GLACIER",
    server_side_encryption="SSE-\u20ac",
    unread=frozenset(GROUP_OF) - LISTED,
)
HEADS: Final[Mapping[str, Head | Unread | Skipped]] = {
    "full HEAD": FULL,
    "small HEAD": SMALL,
    "partial HEAD": PART,
    "HEAD of a customer's key": CUSTOMER_KEY,
    "skipped HEAD": Skipped('no selected "rule" needs it'),
}

SINCE: Final = "2025-12-31T23:59:59Z"
STANDINGS: Final = (
    None,
    Standing(None, None),
    Standing(SINCE, False),
    Standing(WRITTEN, True, "0a1b2c3d4e5f"),
    Standing(SINCE, None, 'an "exception" \\ \U0001f512'),
)
HASHED: Final = (None, True, False)


@dataclass(frozen=True, slots=True)
class OddResult:
    """The result of judging one object, and all else that its lines tell.

    standing: the history of its verdict. finding: the history of each of its findings. The other fields are those of
    the encoder of lines.
    """

    name: str
    judgement: Judgement
    hashed: bool | None = None
    keep_metadata: bool = False
    standing: Standing | None = None
    finding: Standing | None = None


def odd_results() -> dict[str, list[OddResult]]:
    """Return the results in groups, by the part of a line that is odd in them."""
    return {
        "keys": list(_keys()),
        "entries": list(_entries()),
        "facts": list(_facts()),
        "verdicts": list(_verdicts()),
        "histories": list(_histories()),
        "findings": list(_findings()),
        "undecided": list(_undecided()),
    }


def _entry(key: str = "k", **changes: Any) -> ObjectRef:
    values: dict[str, Any] = {"key": key, "etag": "e" * 32, "size": 3, "last_modified": WRITTEN, "owner": OWNER}
    return ObjectRef(**{**values, **changes})


def _evidence(ref: ObjectRef, **changes: Any) -> Evidence:
    values: dict[str, Any] = {"acl": PRIVATE, "head": SKIPPED}
    return Evidence(ref, **{**values, **changes})


def _judged(
    evidence: Evidence,
    verdict: Verdict = Verdict.PRIVATE,
    findings: tuple[Finding, ...] = (),
    undecided: tuple[str, ...] = (),
) -> Judgement:
    return Judgement(evidence, None if evidence.vanished else ObjectAccess(verdict), findings, undecided)


def _finding(key: str | None, **changes: Any) -> Finding:
    values: dict[str, Any] = {
        "fingerprint": "f0" * 16,
        "rule": "O02",
        "severity": Severity.HIGH,
        "version_id": None,
        "grantee": ALL_USERS,
        "permission": "READ",
        "message": "its ACL lets anyone on the internet read it",
    }
    return Finding(key=key, **{**values, **changes})


def _keys() -> Iterator[OddResult]:
    for name, key in KEYS.items():
        found = (_finding(key, grantee=None, permission=None, message="found"),) if len(key) < 200 else ()
        evidence = _evidence(_entry(key, owner=None), acl=SKIPPED)
        yield OddResult(name, _judged(evidence, Verdict.EXPOSED, found), standing=STANDINGS[2])


def _entries() -> Iterator[OddResult]:
    changes: list[tuple[str, Any]] = [
        *(("size", size) for size in SIZES),
        *(("etag", etag) for etag in ETAGS),
        *(("storage_class", name) for name in CLASSES),
        ("last_modified", ""),
    ]
    for name, value in changes:
        ref = _entry(owner=None, **{name: value})
        yield OddResult(f"{name} {value}", _judged(_evidence(ref, acl=SKIPPED)))
    for version_id, latest in product((None, "null", '3/L4k+"\\%s'), (True, False)):
        found = (_finding("k", version_id=version_id),) if latest else ()
        evidence = _evidence(_entry(version_id=version_id, is_latest=latest), acl=SKIPPED)
        yield OddResult(f"version {version_id}, latest {latest}", _judged(evidence, findings=found))
    for owner, name in product((None, "é"), ("private ACL", "unread ACL", "skipped ACL")):
        yield OddResult(
            f"owner {owner} in the listing, {name}", _judged(_evidence(_entry(owner=owner), acl=ACLS[name]))
        )


def _facts() -> Iterator[OddResult]:
    hashed, standings = cycle(HASHED), cycle(STANDINGS)
    for (acl, head), changed in zip(product(ACLS, HEADS), cycle((False, True)), strict=False):
        evidence = _evidence(_entry(), acl=ACLS[acl], head=HEADS[head], changed=changed)
        if head != "full HEAD" or acl in ("unread ACL", "skipped ACL"):
            yield OddResult(f"{acl}, {head}", _judged(evidence), next(hashed), acl == "unread ACL", next(standings))
    for name in ("private ACL", "unread ACL"):
        evidence = _evidence(_entry(), acl=ACLS[name], head=Unread("HeadObject", "404"), vanished=True)
        yield OddResult(f"vanished, {name}", _judged(evidence), next(hashed))
    evidence = _evidence(_entry(), vanished=True)
    yield OddResult("vanished, with a verdict", Judgement(evidence, ObjectAccess(Verdict.EXPOSED), (), ()))


def _verdicts() -> Iterator[OddResult]:
    facts = _evidence(_entry(owner=None), acl=SKIPPED)

    def shown(name: str, verdict: Verdict, *said: Audience | Reason) -> OddResult:
        audience = tuple(one for one in said if isinstance(one, Audience))
        reasons = tuple(one for one in said if isinstance(one, Reason))
        return OddResult(name, Judgement(facts, ObjectAccess(verdict, audience, reasons), (), ()))

    for verdict in Verdict:
        yield shown(f"verdict {verdict}", verdict)
    for first in range(0, len(AudienceKind), 5):
        kinds = list(AudienceKind)[first : first + 5]
        named = [Audience(kind, None if kind.value.startswith("any") else f"the {kind}") for kind in kinds]
        fewer = [Audience(one.kind, one.name, 'header "X"') for one in named]
        yield shown(f"audiences from {kinds[0]} on", Verdict.EXPOSED, *named, *fewer)
    for first in range(0, len(ReasonCode), 7):
        codes = list(ReasonCode)[first : first + 7]
        reasons = [Reason(code, cause) for code in codes for cause in (None, 'a "cause" \\ %s: é')]
        yield shown(f"reasons from {codes[0]} on", Verdict.UNKNOWN, *reasons)
    accounts = [Audience(AudienceKind.ACCOUNT, f"{number:012}") for number in range(25, 0, -1)]
    networks = [Audience(AudienceKind.NETWORK, name) for name in ("203.0.113.0/24", "10.0.0.0/8", "2001:db8::/32")]
    limited = Audience(AudienceKind.ANYONE, through="network 203.0.113.0/24")
    yield shown("twenty audiences", Verdict.SHARED, *accounts[:20])
    yield shown("more audiences than are named", Verdict.SHARED, limited, *accounts, *networks)
    reason = Reason(ReasonCode.POLICY_ALLOW, "#1")
    yield shown("more audiences and a reason", Verdict.SHARED, *networks, *accounts[:19], reason)


def _histories() -> Iterator[OddResult]:
    judgement = _judged(_evidence(_entry()), Verdict.SHARED, (_finding("k"),))
    for number, standing in enumerate(STANDINGS):
        yield OddResult(f"history {number}", judgement, standing=standing, finding=standing)
    sources = ((None, None), *((SINCE, source) for source in (None, *FactOrigin)))
    for (acl_at, acl_from), (head_at, head_from) in product(sources, sources):
        read_at = ReadAt(acl_at, head_at, acl_from, head_from)
        name = f"ACL of {acl_at} from {acl_from}, HEAD of {head_at} from {head_from}"
        yield OddResult(name, _judged(_evidence(_entry(), acl=SKIPPED, read_at=read_at)))
    for number, acl in enumerate((Acl("", (Grant(ALL_USERS, "READ"),)), Acl(STRANGER, ()), PRIVATE)):
        dormant = DormantAcl(acl, WRITTEN)
        of_head = ReadAt(head=WRITTEN, head_from=FactOrigin.INVENTORY) if number == 1 else None
        evidence = _evidence(_entry(), dormant=dormant, read_at=of_head)
        yield OddResult(f"dormant ACL {number}", _judged(evidence, Verdict.DORMANT))


def _findings() -> Iterator[OddResult]:
    verdicts = cycle((*Verdict,))
    for severity in Severity:
        found = _finding("k", severity=severity, rule="M02", grantee=None, permission=None)
        yield OddResult(f"severity {severity}", _judged(_evidence(_entry()), next(verdicts), (found,)))
    twice = (_finding("k", rule="O08"), _finding("k", rule="E01"), _finding("k", rule="O08", grantee=STRANGER))
    yield OddResult("rules out of order and twice", _judged(_evidence(_entry()), Verdict.SHARED, twice))
    odd = _finding("k", grantee='"\\ \U0001f512', permission="", message="a message %s\n\u2028 \x7f \x00 \U0010ffff")
    yield OddResult("odd words", _judged(_evidence(_entry()), Verdict.EXPOSED, (odd,)), finding=STANDINGS[-1])
    bucket = (_finding(None, rule="B01"), _finding(None, rule="B03", grantee=None, permission=None, message=""))
    yield OddResult("findings on the bucket", _judged(_evidence(_entry(), vanished=True), findings=bucket))


def _undecided() -> Iterator[OddResult]:
    acls = {"ACL": ACLS["unread ACL"], "odd ACL": Unread("GetObjectAcl", '<b>"\\\n\u2028'), "no ACL": PRIVATE}
    heads = {"HEAD": Unread("HeadObject", "403"), "no HEAD": SMALL}
    for (acl, head), version_id in zip(product(acls, heads), cycle((None, "null", "v1")), strict=False):
        ref = _entry('undecided "\U0001f512"', version_id=version_id)
        evidence = _evidence(ref, acl=acls[acl], head=heads[head])
        judgement = _judged(evidence, Verdict.UNKNOWN, undecided=("O02", "E01", "O02"))
        yield OddResult(f"unread: {acl}, {head}", judgement)


def read_back(result: OddResult) -> Evidence:
    """Return the facts that a reader of the object's line has: those of the judgement that the line tells."""
    evidence = result.judgement.evidence
    owner = evidence.owner if isinstance(evidence.owner, str) else None
    return replace(evidence, ref=replace(evidence.ref, owner=owner), digests=NO_LEDGER)
