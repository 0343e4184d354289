"""Count findings, verdicts and undecided objects in few groups, by rule or verdict, audience and prefix."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Self

from msgspec.structs import asdict, replace

from auditor.model.access import AudienceKind, ObjectAccess, Verdict, listed
from auditor.model.finding import Finding, Severity
from auditor.model.json_codec import JsonError
from auditor.model.object import Outcome
from auditor.model.rollup import Group, GroupKind, RollUps, Sample, Totals, TrendNight
from auditor.model.run_lines import Recorded, Standing
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.reports.first_steps import OPEN, JudgedFor, OpenKinds, OpenObject, SavedKinds, first_steps
from auditor.reports.prefix_counts import (
    LONGEST,
    SAMPLES,
    PrefixCount,
    Row,
    Rows,
    Subject,
    each,
    merge_small,
    merge_smallest,
    prefix_of,
    restored_counts,
    saved_counts,
)
from auditor.runs.line_buffer import KeyedCounts

GROUPS: Final = 400
"""Largest number of groups in the file."""
PREFIXES: Final = 512
"""Number of prefixes in memory at which the smallest ones are merged into those above them, until half are left."""
SUBJECTS: Final = 200
"""Number of subjects that are counted separately; the audience of any other subject counts as OTHERS. The number needs
a bound, because each object may be shared with another account."""
OTHERS: Final = "others"
_NO_HISTORY: Final = Standing(None, None)
_WIDTH: Final = {kind: width for width, kind in enumerate(AudienceKind)}
_KINDS: Final = list(GroupKind)
_WORST: Final = {one.value: place for kind in (Severity, Verdict) for place, one in enumerate(kind)}

Entry = tuple[str | None, Subject, int, Standing | None, Sample, OpenObject | None]
"""One thing to count: its key, its subject, the size of the object, its history, the sample that shows it, and for an
open object's verdict the facts that decide it.
"""


class RollUpBuilder(KeyedCounts):
    """Counts the results of a run in groups. Objects must come in the order of the listing.

    add() notes the results of an object; upto() counts them once the lines of the key are taken, so that the counts in
    a checkpoint are those of its lines. Memory does not grow with the number of objects: beyond PREFIXES prefixes the
    smallest ones are merged into those above them. The result depends on nothing but the results and their order.
    """

    def __init__(self) -> None:
        self._rows: Rows = {}
        self._prefixes = 0
        self._waiting: deque[Entry] = deque()
        self._kinds: OpenKinds | None = None
        self._saved_kinds: SavedKinds | None = None

    def count_kinds(self, judged_for: JudgedFor) -> None:
        """Count open objects by kind too, so that the roll-ups name the changes to make first. Call it before add()."""
        self._kinds = OpenKinds(judged_for, self._saved_kinds)

    def add_bucket(self, findings: Sequence[Finding], standings: Sequence[Standing]) -> None:
        """Note the findings on the bucket itself."""
        for finding, standing in zip(findings, standings, strict=True):
            subject = Subject(GroupKind.FINDING, finding.rule, None, finding.severity, None)
            self._waiting.append((None, subject, 0, standing, _sample(finding, standing), None))

    def add(self, recorded: Recorded) -> None:
        """Note the results of one listed object. An object that is private, decided and without findings has none."""
        judgement, standing = recorded.judgement, recorded.standing
        evidence, access = judgement.evidence, judgement.access
        ref, note = evidence.ref, self._waiting.append
        audience = None if access is None else widest_audience(access)
        for finding, history in zip(judgement.findings, recorded.findings, strict=True):
            subject = Subject(GroupKind.FINDING, finding.rule, None, finding.severity, audience)
            note((ref.key, subject, ref.size, history, _sample(finding, history), None))
        sample = Sample(ref.key, ref.version_id, since=None if standing is None else standing.since)
        if standing is not None and access is not None:
            subject = Subject(GroupKind.VERDICT, None, access.verdict, None, audience)
            opened = None
            if self._kinds is not None and access.verdict in OPEN:
                excepted = standing.exception is not None
                opened = OpenObject.of(ref, evidence.acl, evidence.head, excepted=excepted)
            note((ref.key, subject, ref.size, standing, sample, opened))
        if evidence.outcome is Outcome.UNDECIDED:
            fact = evidence.unread[0]
            subject = Subject(GroupKind.UNDECIDED, None, None, None, _bounded(f"{fact.action} {fact.code}"))
            note((ref.key, subject, ref.size, None, sample, None))

    def upto(self, key: str | None) -> None:
        """Count the noted results of the object versions with this key; None: those of the bucket itself."""
        waiting = self._waiting
        while waiting and waiting[0][0] == key:
            self._count(waiting.popleft())

    def keep(self) -> None:
        """Count all noted results. This is for the end of a part in the middle of a key: some versions of the last key
        are written, whether the others will be or not.
        """
        while self._waiting:
            self._count(self._waiting.popleft())

    def drop(self) -> None:
        """Forget the noted results: the lines of the last key are dropped."""
        self._waiting.clear()

    def _count(self, entry: Entry) -> None:
        key, subject, size, standing, sample, opened = entry
        if opened is not None and self._kinds is not None and subject.verdict is not None:
            self._kinds.add(subject.verdict, opened)
        found = self._counts_of(subject, None if key is None else prefix_of(key))
        past = _NO_HISTORY if standing is None else standing
        found.add(1, size, past.new, past.exception is not None, past.since)
        if len(found.samples) < SAMPLES:
            found.samples.append(sample)
        if self._prefixes > PREFIXES:
            self._prefixes = merge_smallest(self._rows, PREFIXES // 2, found)

    def _counts_of(self, subject: Subject, prefix: str | None) -> PrefixCount:
        row = self._rows.get(subject)
        if row is None:
            if subject.audience is not None and len(self._rows) >= SUBJECTS:
                subject = subject._replace(audience=OTHERS)
            row = self._rows.setdefault(subject, {})
        found = row.get(prefix)
        if found is None:
            found = row[prefix] = PrefixCount()
            self._prefixes += 1
        return found

    def saved(self) -> dict[str, Any]:
        """Return the counts as JSON values, for a checkpoint."""
        counts = {"counts": saved_counts(self._rows)}
        return counts if self._kinds is None else {**counts, **self._kinds.saved()}

    @classmethod
    def restored(cls, saved: Mapping[str, Any]) -> Self:
        """Make the builder that saved() described. Raises JsonError for anything else."""
        builder = cls()
        for subject, prefix, count in restored_counts(saved):
            row = builder._rows.setdefault(subject, {})
            if prefix in row:
                raise JsonError("names a prefix twice", "counts")
            row[prefix] = count
            builder._prefixes += 1
        if "kinds" in saved:
            builder._saved_kinds = SavedKinds.from_json(saved)
        return builder

    def include(self, saved: Mapping[str, Any]) -> None:
        """Add the counts of a checkpoint, of keys after all that were counted so far. Raises JsonError for anything
        else.
        """
        for subject, prefix, count in restored_counts(saved):
            self._counts_of(subject, prefix).merge(count)
        if self._kinds is not None and "kinds" in saved:
            self._kinds.include(SavedKinds.from_json(saved))
        if self._prefixes > PREFIXES:
            self._prefixes = merge_smallest(self._rows, PREFIXES // 2)

    def rollups(self, run: str, target: Target, complete: bool) -> RollUps:
        """Return the content of rollups.json: the results that were counted so far."""
        rows = {subject: {prefix: replace(one) for prefix, one in row.items()} for subject, row in self._rows.items()}
        for row in rows.values():
            merge_small(row)
        merge_smallest(rows, GROUPS)
        groups = sorted(
            (_group(subject, prefix, one, rows[subject]) for subject, prefix, one in each(rows)), key=_order
        )
        found = any(one.kind is not GroupKind.FINDING for one in groups)
        first, unseen = first_steps(self._kinds, groups) if found and self._kinds is not None else ((), 0)
        return RollUps(
            run=run,
            target=target,
            complete=complete,
            totals=totals_of(groups),
            groups=tuple(groups),
            first=first,
            not_predicted=unseen,
        )


def finished_rollups(builder: RollUpBuilder, summary: Summary, nights: tuple[TrendNight, ...] = ()) -> RollUps:
    """Return the roll-ups at the end of a run. nights: the trend up to this run."""
    builder.keep()
    return replace(builder.rollups(summary.run, summary.target, summary.complete), nights=nights)


@lru_cache(1024)
def widest_audience(access: ObjectAccess) -> str | None:
    """Return the widest audience in the form of Audience.text, at most LONGEST characters; None if nobody gets in."""
    audiences = sorted(listed(access).audience, key=lambda one: (one.through is not None, _WIDTH[one.kind]))
    return _bounded(audiences[0].text) if audiences else None


def totals_of(groups: Iterable[Group]) -> Totals:
    """Return the sums of the groups."""
    found = list(groups)
    numbers, rules = Counter[str](), Counter[str]()
    for group in found:
        numbers[group.verdict or group.severity or group.kind] += group.count
        if group.rule is not None:
            rules[group.rule] += group.count
    new = [group.new for group in found if group.new is not None]
    return Totals(
        verdicts={name.value: numbers[name] for name in Verdict if name is not Verdict.PRIVATE},
        findings={name.value: numbers[name] for name in Severity},
        rules=dict(sorted(rules.items())),
        undecided=numbers[GroupKind.UNDECIDED],
        new=sum(new) if new else None,
        excepted=sum(group.excepted for group in found),
    )


def _group(subject: Subject, prefix: str | None, count: PrefixCount, row: Row) -> Group:
    below = prefix is not None and any(other and other != prefix and other.startswith(prefix) for other in row)
    return Group(
        id=hashlib.sha256(json.dumps([*subject, prefix]).encode()).hexdigest()[:12],
        **subject._asdict(),
        prefix=prefix,
        rest=below,
        **{**asdict(count), "samples": tuple(count.samples)},
    )


def _order(group: Group) -> tuple[int, int, int, str, str, str]:
    """Return the group's place: the worst severity or verdict first, then the largest number."""
    worst = _WORST.get(group.severity or group.verdict or "", 0)
    return _KINDS.index(group.kind), worst, -group.count, group.rule or "", group.audience or "", group.prefix or ""


def _sample(finding: Finding, standing: Standing) -> Sample:
    return Sample(
        finding.key, finding.version_id, finding.grantee, finding.permission, standing.since, finding.fingerprint
    )


def _bounded(text: str) -> str:
    return text if len(text) <= LONGEST else OTHERS
