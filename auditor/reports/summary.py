"""Derive from the summary of a run the result in one sentence, the exit code and the holes; make the parts of a
summary, and add up the summaries of several targets.

The parts are the counts of audiences, digests and kept facts, and the list of things not looked at. A hole is something
that the run was to look at and could not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import asdict, replace

from auditor.model.access import Verdict
from auditor.model.bucket import NOT_OURS, AccessGrants, BucketFacts, Encryption, Semantics
from auditor.model.dates import seconds_in_utc
from auditor.model.finding import FailOn, Severity
from auditor.model.object import Skipped, Unread
from auditor.model.rollup import TrendNight
from auditor.model.summary import (
    AcceptedHoles,
    Amount,
    CallCounts,
    ChangeKind,
    Changes,
    Coverage,
    ExceptedCounts,
    HashingSummary,
    KeptFact,
    KeptFacts,
    Summary,
)
from auditor.model.target import NOTHING_LISTED, Target
from auditor.runs.tally import OTHERS, Tally
from auditor.s3.access_points import NOT_DELEGATED
from auditor.s3.bucket_settings import ABAC, ABAC_IS_OFF, MAY_BE_TESTED, NOT_TESTED, SETTINGS, TAGS
from auditor.text import counted, tallied, visible

_FACTS: Final = {
    "region": "region",
    "owner": "owner",
    "ownership": "object ownership",
    "public_access_block": "public access block of the bucket",
    "account_public_access_block": "public access block of the account",
    "acl": "ACL of the bucket",
    "policy_is_public": "policy status of the bucket",
    "policy": "policy of the bucket",
    "versioning": "versioning",
    "encryption": "default encryption of the bucket",
    "request_payer": "request payer",
    "access_points": "access points of the bucket",
    "abac": "ABAC of the bucket",
    "tags": "tags of the bucket",
    "access_grants": "S3 Access Grants",
}
"""The bucket facts that the summary names if they are missing, in the user's words."""

_SEMANTICS: Final = {
    Semantics.CEPH: "access rules other than those of the Ceph object gateway (--semantics ceph)",
    Semantics.OTHER: "access rules of this server that AWS does not have (--semantics other)",
}
_NOT_NEEDED: Final = (NOT_DELEGATED, NOT_TESTED, MAY_BE_TESTED, ABAC_IS_OFF)
"""Facts that are missing because no verdict of the run depends on them, or on their policy first."""

_ACTIONS: Final = {setting.action: _FACTS[setting.fact] for setting in (*SETTINGS, ABAC, TAGS)}
"""By call on a bucket's setting: the setting in the user's words."""

KEY_POLICIES: Final = "policies and grants of KMS keys"
KEY_GRANTS: Final = "grants of KMS keys"
"""Stands for KEY_POLICIES in a run with --key-policies."""

BLOCK_UNTOLD: Final = (
    "whether uploads under a customer's key (SSE-C) are blocked: the default encryption does not say, as for buckets"
    " from before April 2026"
)
"""Stands in not_looked_at for the fact of rule B08 that a bucket does not tell."""

NEVER: Final = (
    "IAM users and roles of the bucket's own account: their own policies can let them read",
    "access points of other accounts, multi-region access points and Object Lambda access points, which have their own"
    " policies",
    "CloudFront, presigned URLs, and readers who pass the bytes on",
    KEY_POLICIES,
    "object tags",
    "object annotations, which have permissions of their own (s3:GetObjectAnnotation)",
    "control policies of the organization (SCP, RCP)",
)
"""Things that no run looks at, whatever its settings."""


FRESH: Final = (ChangeKind.NEW, ChangeKind.WORSENED, ChangeKind.DECIDED, ChangeKind.UNCOVERED)
"""The kinds of changes after which a run has a finding that the last run did not have, could not tell, or excepted."""
UNDECIDED: Final = "undecided"
UNCHECKED: Final = "could not be checked"
"""The word for an object that is undecided, for a person who reads it first."""

_NOWHERE: Final = Target("several")
_NO_COVERAGE: Final = Coverage(**dict.fromkeys(Coverage.__struct_fields__, 0))
_NO_CALLS: Final = CallCounts(**dict.fromkeys(CallCounts.__struct_fields__, 0))
T = TypeVar("T", bound=Struct)


def audiences_of(tally: Tally) -> dict[str, dict[str, int]]:
    """Return the number of objects by verdict and by audience, the largest number first and the others last."""
    found: dict[str, dict[str, int]] = {}
    for verdict in Verdict:
        start = f"{verdict.value} "
        counts = {name.removeprefix(start): n for name, n in tally.audiences.items() if name.startswith(start)}
        order = sorted(counts.items(), key=lambda item: (item[0] == OTHERS, -item[1], item[0]))
        if counts:
            found[verdict.value] = dict(order)
    return found


def hashing_of(tally: Tally, algorithms: Sequence[str]) -> HashingSummary:
    """Return the counts of the hashing. algorithms: the wanted digests."""
    left = {name: Amount(number, tally.left_bytes[name]) for name, number in sorted(tally.left_objects.items())}
    return HashingSummary(
        algorithms=tuple(algorithms),
        **tally.hashing,
        left_for_cost=left,
        routed=Amount(**tally.routed),
        failed=largest_first(tally.failed),
    )


def largest_first(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts in the order of their numbers, the largest first, and then of their names."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def kept_of(tally: Tally) -> KeptFacts:
    """Return the counts of the facts that the run took from an earlier source."""
    return KeptFacts(acl=_kept_fact(tally, "acl"), head=_kept_fact(tally, "head"))


def _kept_fact(tally: Tally, fact: str) -> KeptFact:
    at = tally.oldest.get(fact)
    oldest = None if at is None else seconds_in_utc(datetime.fromtimestamp(at, UTC))
    return KeptFact(tally.kept.get(f"{fact} run", 0), tally.kept.get(f"{fact} inventory", 0), oldest)


def kept_words(kept: KeptFacts) -> list[str]:
    """Return phrases on what happened since the kept facts were read; [] if there are none."""
    facts = (("ACLs", kept.acl), ("HEADs (metadata, headers, encryption)", kept.head))
    return [
        f"changes to the kept {what} since they were read: {kept_fact(fact)} (read_at says when)"
        for what, fact in facts
        if fact.oldest is not None
    ]


def kept_fact(fact: KeptFact) -> str:
    """Return how many objects have a fact of an earlier source, and of when the oldest is."""
    sources = ((fact.run, "an earlier run"), (fact.inventory, "S3 Inventory"))
    each = " and ".join(f"{number:,} from {source}" for number, source in sources if number)
    return f"{each}, the oldest of {fact.oldest}"


def exit_code(summary: Summary, fail_on: Severity | FailOn | None) -> int:
    """Return the exit code of an audit: 4, 3 or 0.

    4: there is a hole (something that could not be read) that auditor.toml does not accept. 3: there is no such hole,
    but a finding at or above the severity `fail_on` that no exception covers. 0: neither. fail_on: None if findings do
    not change the exit code.
    If it asks for new findings, and nothing was compared with an earlier run, every finding counts.
    """
    if holes(summary):
        return 4
    if fail_on is None:
        return 0
    wanted = fail_on if isinstance(fail_on, FailOn) else FailOn(fail_on)
    new = new_findings(summary.changes) if wanted.new and summary.changes.against is not None else None
    worst = [severity for severity in Severity if severity.at_least(wanted.severity)]
    return 3 if any(counting(summary, one) if new is None else new.get(one, 0) for one in worst) else 0


def new_findings(changes: Changes) -> dict[str, int]:
    """Return the number of findings by severity that the last run did not have, could not tell, or knew as excepted."""
    return {severity: sum(kinds.get(kind, 0) for kind in FRESH) for severity, kinds in changes.findings.items()}


def exposed(summary: Summary) -> int:
    """Return the number of exposed objects that no exception covers."""
    return summary.verdicts[Verdict.EXPOSED] - summary.excepted.verdicts.get(Verdict.EXPOSED, 0)


def counting(summary: Summary, severity: Severity) -> int:
    """Return the number of findings of this severity that no exception covers."""
    return summary.findings[severity] - summary.excepted.findings.get(severity, 0)


def holes(summary: Summary, unread: str = UNDECIDED) -> list[str]:
    """Return the unaccepted holes in words, safe to print: an incomplete or empty listing, undecided objects and rules,
    objects that could not be hashed. unread: the words for undecided objects and rules, UNDECIDED or UNCHECKED.
    """
    objects = summary.coverage.undecided - summary.accepted.undecided
    rules = len(summary.rules_undecided) - summary.accepted.rules
    failed = dict(Counter(failed_of(summary)) - Counter(summary.accepted.hashing))
    listing = [] if summary.complete else ["the listing did not reach its end"]
    listing += [NOTHING_LISTED] if summary.nothing_listed else []
    return [*listing, *_undecided(objects, rules, unread), *not_hashed(failed)]


def accepted(summary: Summary, unread: str = UNDECIDED) -> list[str]:
    """Return the holes that auditor.toml accepts, in words; an empty list if there is none. unread: as in holes()."""
    known = summary.accepted
    return [*_undecided(known.undecided, known.rules, unread), *not_hashed(known.hashing)]


def not_hashed(failed: Mapping[str, int]) -> list[str]:
    """Return the phrase, safe to print, on the objects that could not be hashed; [] if there are none. failed: numbers
    by code.
    """
    return [f"{counted(sum(failed.values()), 'object')} not hashed ({tallied(failed)})"] if failed else []


def failed_of(summary: Summary) -> Mapping[str, int]:
    """Return the numbers of objects that the run could not hash, by code."""
    return {} if summary.hashing is None else summary.hashing.failed


def _undecided(objects: int, rules: int, unread: str) -> list[str]:
    counts = ((objects, "object"), (rules, "rule"))
    return [f"{counted(number, noun)} {unread}" for number, noun in counts if number > 0]


def aside(hashing: HashingSummary) -> list[str]:
    """Return phrases, safe to print, on the objects that were not hashed on purpose: because reading them costs extra,
    or because S3 Batch Operations is to hash them. [] if there are none.
    """
    words = []
    if hashing.left_for_cost:
        each = ", ".join(
            f"{visible(name)} {amount(left.objects, left.bytes)}" for name, left in hashing.left_for_cost.items()
        )
        words.append(f"left, because reading them costs money: {each}; --accept-cost hashes them")
    if hashing.routed.objects:
        routed = amount(hashing.routed.objects, hashing.routed.bytes)
        words.append(f"left to S3 Batch Operations: {routed}; the jobs are in the run folder, batch/")
    return words


def amount(objects: int, size: int) -> str:
    """Return a number of objects and the sum of their sizes. size: in bytes."""
    return f"{counted(objects, 'object')} of {size:,} bytes"


def alarming(summary: Summary) -> bool:
    """True if an object is exposed or a finding is critical or high, and no exception covers it: a report must not show
    this run in green.
    """
    return bool(exposed(summary) or counting(summary, Severity.CRITICAL) or counting(summary, Severity.HIGH))


def has_hole(summary: Summary) -> bool:
    """True if the run did not look at everything, holes that the configuration accepts included."""
    unseen = not summary.complete or summary.nothing_listed
    undecided = summary.coverage.undecided > 0 or bool(summary.rules_undecided)
    return unseen or undecided or bool(failed_of(summary))


def completeness(summary: Summary) -> str:
    """Return how far the run got: `complete` only if it also looked at everything that it listed."""
    if not summary.complete:
        return "NOT COMPLETE"
    return "listing complete" if has_hole(summary) else "complete"


def not_looked_at(
    facts: BucketFacts | None, target: Target, acl: Skipped | None = None, head: Skipped | None = None
) -> list[str]:
    """Return phrases, safe to print, for the things that the run did not look at: the verdict `private` says nothing
    about them.

    facts: None if no fact of the bucket was read. acl, head: why the run read no ACL or no HEAD; None if it read them.
    """
    read = facts is not None and not isinstance(facts.key_policies, Skipped)
    never = [KEY_GRANTS if read and item == KEY_POLICIES else item for item in NEVER]
    return [*never, *_unlisted(target), *_unasked(facts, acl, head)]


def _unlisted(target: Target) -> list[str]:
    ends = (
        ("keys that do not begin with", target.prefix or None),
        ("keys up to and including", target.start_after),
        ("keys after", target.stop_at),
    )
    others = [] if target.versions else ["versions other than the current one (--versions audits them)"]
    return [*others, *(f"{words} {visible(end)}" for words, end in ends if end is not None)]


def _unasked(facts: BucketFacts | None, acl: Skipped | None, head: Skipped | None) -> list[str]:
    skipped = (("ACLs", acl), ("metadata, headers and encryption", head))
    words = [f"{what} of the objects: {visible(one.reason)}" for what, one in skipped if one is not None]
    if facts is None:
        return [*words, "the bucket's own settings"]
    if facts.semantics in _SEMANTICS:
        words.append(_SEMANTICS[facts.semantics])
    words += [f"{_ACTIONS[call]}: there is none, because the server lacks {call}" for call in facts.lacking]
    return [*words, *_unread_settings(facts)]


def _unread_settings(facts: BucketFacts) -> Iterator[str]:
    if facts.owner_account is NOT_OURS:
        yield f"account of the bucket's owner: {NOT_OURS.reason}"
    encryption = facts.encryption
    if facts.semantics is Semantics.AWS and isinstance(encryption, Encryption) and encryption.blocked is None:
        yield BLOCK_UNTOLD
    for name in facts.__struct_fields__:
        value = getattr(facts, name)
        if value in _NOT_NEEDED:
            continue
        if isinstance(value, Skipped) and name in _FACTS:
            yield f"{_FACTS[name]}: {visible(value.reason)}"
        elif isinstance(value, Unread) and name in _FACTS:
            yield _unread_fact(_FACTS[name], value)
    yield from _of_grants(facts.access_grants)


def _unread_fact(name: str, unread: Unread) -> str:
    return f"{name}, which could not be read: {visible(f'{unread.action} {unread.code}')}"


def _of_grants(grants: AccessGrants | Unread | Skipped) -> Iterator[str]:
    """Yield phrases on the things behind S3 Access Grants that the run did not look at."""
    if isinstance(grants, AccessGrants) and grants.grants:
        yield "roles of the locations of S3 Access Grants: a grant reaches as far as its role may read"
    if isinstance(grants, AccessGrants) and isinstance(grants.policy, Unread):
        yield _unread_fact("policy of the S3 Access Grants instance", grants.policy)


class Alarm(StrEnum):
    """How bad a run's result is."""

    BAD = "bad"
    """Strangers get in without an exception, or a finding is critical or high."""
    DOUBT = "doubt"
    """Something is not known, or another party gets in."""
    GOOD = "good"
    """Everything was looked at, and nobody else gets in, but by exception."""


def verdict_sentence(summary: Summary) -> str:
    """Return the sentence as text."""
    return "".join(sentence_parts(summary, new_exposed(summary)))


def sentence_parts(summary: Summary, new: int | None) -> tuple[str, str, str]:
    """Return the sentence as the words before its number, the number with its noun, and the words after it.

    new: number of exposed objects that the last run did not have; None if that is not known.
    """
    verdicts, listed, reachable = summary.verdicts, summary.coverage.listed, exposed(summary)
    intended = verdicts[Verdict.EXPOSED] - reachable
    meant = f" but {counted(intended, 'object')} by intent" if intended else ""
    cut = "Not complete. " if not summary.complete else ""
    if not listed:
        return f"{cut}No object is listed", "", "."
    if reachable:
        fresh = f" {new:,} of them {'is' if new == 1 else 'are'} new." if new else ""
        return f"{cut}Strangers can get at ", counted(reachable, "object"), f".{fresh}"
    if unknown := verdicts[Verdict.UNKNOWN]:
        words = f"{cut}No object is known to be exposed{meant}, and of "
        return words, counted(unknown, "object"), " it is not known."
    if shared := verdicts[Verdict.SHARED]:
        verb = "is" if shared == 1 else "are"
        return f"{cut}No object is exposed{meant}. ", counted(shared, "object"), f" {verb} shared with others."
    seen = "No object that was looked at is" if not summary.complete else "No object is"
    return f"{cut}{seen} open to strangers or to other accounts{meant}", "", "."


def alarm(summary: Summary) -> Alarm:
    """Return how bad the result is. A run that did not look at everything is never good."""
    if alarming(summary):
        return Alarm.BAD
    open_ = summary.verdicts[Verdict.UNKNOWN] or summary.verdicts[Verdict.SHARED]
    return Alarm.DOUBT if open_ or has_hole(summary) or not summary.coverage.listed else Alarm.GOOD


def new_objects(changes: Changes) -> dict[str, int] | None:
    """Return the number of objects that got their verdict since the last run, by verdict; None if it is not known."""
    if changes.against is None:
        return None
    kinds = (ChangeKind.NEW, ChangeKind.WORSENED, ChangeKind.UNCOVERED)
    return {verdict: sum(changes.verdicts.get(verdict, {}).get(kind, 0) for kind in kinds) for verdict in Verdict}


def new_exposed(summary: Summary) -> int | None:
    """Return the number of objects that are exposed since the last run; None if it is not known."""
    found = new_objects(summary.changes)
    return None if found is None else found[Verdict.EXPOSED]


class IndexEntry(Struct, frozen=True, kw_only=True):
    """One target of the index page.

    summary: of its run; None if it has none. link: address of the run's page, relative to the index. nights: its trend.
    failed: a sentence, if its last start has failed or was not begun. excluded: the reason, if it was left out. label:
    the words that the page shows in place of the target's URI, for an account whose buckets are not known. account: the
    one that owns the bucket, in words, on a page of several accounts.
    """

    target: Target
    summary: Summary | None = None
    link: str | None = None
    nights: tuple[TrendNight, ...] = ()
    failed: str | None = None
    excluded: str | None = None
    label: str = ""
    account: str = ""

    @property
    def name(self) -> str:
        return self.label or self.target.uri


def summaries_of(entries: Iterable[IndexEntry]) -> list[Summary]:
    """Return the summaries that the sums are made of."""
    return [one.summary for one in entries if one.summary is not None]


def sum_of(entries: Iterable[IndexEntry]) -> Summary:
    """Return the sums as a summary of no target. It is complete if each target has a complete run, or is excluded."""
    found = list(entries)
    runs = summaries_of(found)
    return Summary(
        run="",
        out="",
        target=_NOWHERE,
        engine="",
        complete=all(one.excluded is not None or (one.summary is not None and one.summary.complete) for one in found),
        coverage=_added(_NO_COVERAGE, (run.coverage for run in runs)),
        verdicts=added_up(dict.fromkeys(map(str, Verdict), 0), (run.verdicts for run in runs)),
        findings=added_up(dict.fromkeys(map(str, Severity), 0), (run.findings for run in runs)),
        rules_undecided=tuple(one for run in runs for one in run.rules_undecided),
        accepted=_added(AcceptedHoles(), (run.accepted for run in runs)),
        excepted=_added(ExceptedCounts(), (run.excepted for run in runs)),
        hashing=None,
        calls=_added(_NO_CALLS, (run.calls for run in runs)),
        not_looked_at=(),
        seconds=sum(run.seconds for run in runs),
        resume=None,
    )


def _added(zero: T, several: Iterable[T]) -> T:
    """Return the sum of counts in records of one type: of numbers, and of numbers by name. zero: a record of none."""
    found = [asdict(one) for one in several]
    return replace(zero, **{name: added_up(none, (one[name] for one in found)) for name, none in asdict(zero).items()})


def added_up(zero: Any, several: Iterable[Any]) -> Any:
    """Return the sum of numbers, or of numbers by name. zero: the sum of none."""
    if isinstance(zero, int):
        return sum(several)
    total = Counter(zero)
    for one in several:
        total.update(one)
    return dict(total)
