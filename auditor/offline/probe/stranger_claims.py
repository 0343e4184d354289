"""Name the claims that a verdict makes about a stranger, as questions to S3: pure rules, without a call.

A verdict says of each stranger that the object is open to it or closed. HEAD answers for the ways to the bytes, and
GetObjectAcl for those to the ACL. Other ways are not tried: they write, or they read a body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from auditor.model.access import AudienceKind, Verdict, known_audiences
from auditor.model.bucket import BucketFacts, Semantics
from auditor.model.object import Evidence, Head, Unread
from auditor.offline.probe.vantage import Vantage, WaysIn
from auditor.s3.storage_class import ARCHIVED_CLASSES
from auditor.verdict.object_facts import EncryptionFacts
from auditor.verdict.ways import READ, READ_ACP, VERSION_WAYS


class Asked(StrEnum):
    """The call of a question."""

    HEAD = "HeadObject"
    ACL = "GetObjectAcl"


class NotTried(StrEnum):
    """The reason why a claim is not tried."""

    VANTAGE = "vantage not known"
    CONDITION = "a condition excludes the vantage"
    WRITES = "open in a way that the probe does not try"
    ANY_ACCOUNT = "any AWS account, without --as"
    NAMED = "shared with named parties"
    REQUESTER_PAYS = "Requester Pays"
    CUSTOMER_KEY = "SSE-C"
    KMS_KEY = "KMS key"
    ARCHIVED = "archived"
    UNKNOWN = "the verdict is unknown"
    TOO_COMPLEX = "policy too complex"
    UNREAD = "ACL or HEAD not readable"


class Question(Struct, frozen=True):
    """One question to S3. version_id: the version that it names; None for the current one. signed: True if the foreign
    account signs it. opens: True if the verdict says that S3 answers it.
    """

    asked: Asked
    version_id: str | None
    signed: bool
    opens: bool


class StrangerClaims(NamedTuple):
    """The claims of one verdict. left_out: the causes for which claims are not tried. either: those of the questions of
    which one has to agree: the verdict says that the object is open, and the facts name no way that is.
    """

    questions: tuple[Question, ...] = ()
    left_out: tuple[NotTried, ...] = ()
    either: tuple[Question, ...] = ()


PARTS: Final = ((Asked.HEAD, READ), (Asked.ACL, READ_ACP))
"""The calls, each with the ways for which it answers."""
_READS: Final = READ | READ_ACP


def claims_of(
    verdict: Verdict | None,
    audience: Sequence[str],
    evidence: Evidence,
    strangers: Mapping[Vantage, WaysIn | None],
    bucket: BucketFacts,
) -> StrangerClaims:
    """Return the claims of an object's verdict about the unsigned stranger, and about the signed one if there is one.

    verdict: None for an object that was gone. audience: in the form of Audience.text. evidence, bucket: the facts of
    the object and of its bucket as they are now. strangers: who they are, with the ways by which they reach the object;
    None if the policies are too complex to tell.
    """
    if verdict in (Verdict.UNKNOWN, None):
        return StrangerClaims(left_out=(NotTried.UNKNOWN,))
    if bucket.request_payer == "Requester":
        return StrangerClaims(left_out=(NotTried.REQUESTER_PAYS,))
    kinds = frozenset(one.kind for one in known_audiences(audience))
    asked = {vantage.signer is not None: (vantage, ways) for vantage, ways in strangers.items()}
    found = [_of_stranger(verdict, kinds, evidence, *one, bucket.semantics) for one in asked.values()]
    left_out = [cause for one in found for cause in one.left_out]
    if verdict is Verdict.EXPOSED and AudienceKind.ANY_ACCOUNT in kinds and True not in asked:
        left_out.append(NotTried.ANY_ACCOUNT)
    questions = tuple(question for one in found for question in one.questions)
    either = tuple(question for one in found for question in one.either)
    return StrangerClaims(questions, tuple(dict.fromkeys(left_out)), either)


def _of_stranger(
    verdict: Verdict,
    kinds: frozenset[AudienceKind],
    evidence: Evidence,
    vantage: Vantage,
    ways: WaysIn | None,
    semantics: Semantics,
) -> StrangerClaims:
    if ways is None:
        return StrangerClaims(left_out=(NotTried.TOO_COMPLEX,))
    opened = verdict is Verdict.EXPOSED and AudienceKind.ANYONE in kinds
    if vantage.signer is not None:
        if opened:
            return StrangerClaims()  # the unsigned stranger tries it
        if verdict is Verdict.SHARED or (verdict is Verdict.EXPOSED and AudienceKind.ANY_ACCOUNT not in kinds):
            return StrangerClaims(left_out=(NotTried.NAMED,))
        opened = verdict is Verdict.EXPOSED
    # The vantage is in a network that gets in. An exposed object names no networks, only the strangers that get in.
    inside = verdict is Verdict.EXPOSED or (verdict is Verdict.SHARED and AudienceKind.NETWORK in kinds)
    closed = _claims(evidence, vantage, ways, semantics, opened=False)
    if opened or (inside and ways.inside & _READS):
        return _opened(evidence, vantage, ways, semantics, closed)
    return closed


def _opened(
    evidence: Evidence, vantage: Vantage, ways: WaysIn, semantics: Semantics, closed: StrangerClaims
) -> StrangerClaims:
    """Return the claims of a verdict that says that the object is open to the stranger. closed: those of a verdict that
    says that it is closed.
    """
    found = _claims(evidence, vantage, ways, semantics, opened=True)
    if found != StrangerClaims():
        return found
    anywhere = ways.possible | ways.placed | ways.elsewhere
    if anywhere & _READS:
        rests = vantage.address is None and ways.placed & _READS
        return StrangerClaims(left_out=(NotTried.VANTAGE if rests else NotTried.CONDITION,))
    if anywhere:
        return StrangerClaims(left_out=(NotTried.WRITES,))
    questions = tuple(replace(one, opens=True) for one in closed.questions)
    return StrangerClaims(questions, closed.left_out, questions)


def _claims(
    evidence: Evidence, vantage: Vantage, ways: WaysIn, semantics: Semantics, *, opened: bool
) -> StrangerClaims:
    """Return the claims of a verdict that says of each call that it is open, as far as a way surely is, or closed."""
    questions: list[Question] = []
    left_out: list[NotTried] = []
    for asked, part in PARTS:
        named = _version(evidence, part & ways.sure if opened else part)
        if named is None:
            continue
        doubtful = named.way & ~ways.sure
        if asked is Asked.HEAD and (cause := _head_cause(evidence, semantics, opened=opened)):
            left_out.append(cause)
        elif vantage.address is None and doubtful & ways.placed:
            left_out.append(NotTried.VANTAGE)
        elif doubtful & ways.possible:
            left_out.append(NotTried.CONDITION)
        else:
            questions.append(Question(asked, named.version_id, vantage.signer is not None, opened))
    return StrangerClaims(tuple(questions), tuple(left_out))


class _Named(NamedTuple):
    """The version that a question names, and the way for which S3's answer counts."""

    version_id: str | None
    way: int


def _version(evidence: Evidence, ways: int) -> _Named | None:
    """Return how to ask for these ways to the bytes, or to the ACL; None if they reach no such version.

    A run of versions asks by the VersionId, another run by the key alone. Each asks the other way if only that is open.
    """
    ref, head = evidence.ref, evidence.head
    plain, versioned = ways & ~VERSION_WAYS, ways & VERSION_WAYS
    known = ref.version_id or (head.version_id if isinstance(head, Head) else None) or "null"
    by_id = _Named(known, versioned) if versioned else None
    by_key = _Named(None, plain) if plain and ref.is_latest else None
    return (by_id or by_key) if ref.version_id is not None else (by_key or by_id)


def _head_cause(evidence: Evidence, semantics: Semantics, *, opened: bool) -> NotTried | None:
    """Return the reason why a HEAD tells nothing about the bytes; None if it does."""
    head = evidence.head
    key = EncryptionFacts.of(head, semantics)
    if key.customer:
        return NotTried.CUSTOMER_KEY
    if isinstance(head, Unread):
        return NotTried.UNREAD
    if key.kms is not None:
        return NotTried.KMS_KEY
    if opened and isinstance(head, Head) and _is_archived(evidence.ref.storage_class, head):
        return NotTried.ARCHIVED
    return None


def _is_archived(storage_class: str, head: Head) -> bool:
    """True if nobody can read the bytes until the object is restored."""
    archived = (head.storage_class or storage_class) in ARCHIVED_CLASSES or head.archive_status is not None
    return archived and not head.restored
