"""The objects of a stored run, each with the lines that belong to it: to judge it again, or to fill it.

A run that is filled has its lines in place of a listing, a reader of the facts that they lack, and a judge that lets
digests, findings and routed lines stay as they were.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.audit.record import JudgedObject, RecordJudge
from auditor.errors import OutputError
from auditor.hashing.status import HashStatus, unhashable
from auditor.model.access import Verdict
from auditor.model.finding import Finding, Judgement
from auditor.model.line_records import routed_line
from auditor.model.object import Acl, DigestSources, Evidence, Head, ObjectRef, ObjectVersion, ReadAt, Skipped, Unread
from auditor.model.reuse import NO_FACTS, KnownFacts
from auditor.model.run_lines import FindingLine, ObjectLine, UndecidedLine
from auditor.model.target import Target
from auditor.rules import RULES
from auditor.rules.base import Rule
from auditor.rules.judge import Judge
from auditor.runs.parts import Part
from auditor.runs.reading import RunReader
from auditor.runs.run_results import LinesAhead
from auditor.runs.tally import Tally
from auditor.s3.listing import Listed
from auditor.s3.object_reader import ObjectReader
from auditor.s3.relisting import Relisting

_PAGE: Final = 1000
"""Number of lines that are read at once."""
_NO_VALUES: Final = Unread("HeadObject", "NotStored")
"""Stands for the HEAD of an object whose line lacks the values of metadata that a rule needs."""
_ON_EXPOSED: Final = frozenset(rule.id for rule in RULES if "access" in rule.reads)
"""IDs of the rules that have no answer while the verdict is unknown."""


class StoredObject(Struct, frozen=True):
    """The lines of one object: its own, those of its findings, and, if there are any, the undecided and routed ones."""

    line: ObjectLine
    findings: list[FindingLine]
    undecided: UndecidedLine | None = None
    routed: ObjectVersion | None = None


class StoredPart:
    """Reads one part of a run. files: the files of the part by their kind. All methods block.

    Call bucket_findings() first where the part has findings on the bucket. Raises OutputError for a damaged part.
    """

    def __init__(self, run: RunReader, number: int, files: Mapping[str, Part]) -> None:
        self._run = run
        self._number = number
        self._objects = files.get("objects")
        self._findings = LinesAhead(run.part(FindingLine, files.get("findings")))
        self._undecided = LinesAhead(run.part(UndecidedLine, files.get("undecided")))
        self._routed = LinesAhead(run.part(ObjectVersion, files.get("routed")))

    def bucket_findings(self) -> list[FindingLine]:
        """Return the findings on the bucket itself."""
        return self._findings.take(lambda line: line.key is None)

    def objects(self) -> Iterator[StoredObject]:
        """Yield the objects in key order."""
        for line in self._run.part(ObjectLine, self._objects):
            name = line.key, line.version_id
            undecided, routed = self._undecided.of(*name), self._routed.of(*name)
            findings = self._findings.of(*name)
            yield StoredObject(line, findings, undecided[0] if undecided else None, routed[0] if routed else None)
        if not (self._findings.ended and self._undecided.ended and self._routed.ended):
            raise OutputError(f"{self._run.uri} has lines without an object in its part {self._number}: audit again")


def stored_counts(run: RunReader) -> Tally:
    """Return the counts of a run that no line has: of digests, and of delete markers.

    They are in the summary; of a run that has not ended, in its checkpoints. Raises RunDamaged.
    """
    tally, last = Tally(), run.summary
    if last is None or not last.complete:
        so_far = Tally()
        for _, state in run.checkpoints():
            so_far.include(state.tally)
        tally.coverage["delete_markers"] = so_far.coverage["delete_markers"]
        tally.hashing, tally.routed = so_far.hashing, so_far.routed
        tally.failed, tally.failed_accepted = so_far.failed, so_far.failed_accepted
        tally.left_objects, tally.left_bytes = so_far.left_objects, so_far.left_bytes
        return tally
    tally.coverage["delete_markers"] = last.coverage.delete_markers
    if (hashing := last.hashing) is not None:
        tally.hashing = hashing.counts
        tally.failed, tally.failed_accepted = dict(hashing.failed), dict(last.accepted.hashing)
        tally.routed = {"objects": hashing.routed.objects, "bytes": hashing.routed.bytes}
        tally.left_objects = {name: left.objects for name, left in hashing.left_for_cost.items()}
        tally.left_bytes = {name: left.bytes for name, left in hashing.left_for_cost.items()}
    return tally


class StoredFindings:
    """Keeps the stored findings of the rules that cannot judge an object again.

    rules: those that judge, in order. gone: IDs of rules that judged the run, and that this version does not have.
    """

    def __init__(self, rules: tuple[Rule, ...], gone: frozenset[str]) -> None:
        self._order = {rule.id: number for number, rule in enumerate(rules)}
        self._gone = gone

    def of_bucket(self, stored: list[FindingLine]) -> list[Finding]:
        """Return the stored findings on the bucket that no rule of this version can make."""
        return [finding_of(line) for line in stored if line.rule in self._gone]

    def added(self, judgement: Judgement, stored: list[FindingLine]) -> Judgement:
        """Return the judgement with the stored findings of the rules that could not judge the object again."""
        kept = self._gone.union(judgement.unstored)
        if not kept:
            return judgement
        findings = [*judgement.findings, *(finding_of(line) for line in stored if line.rule in kept)]
        findings.sort(key=lambda finding: self._order.get(finding.rule, len(self._order)))
        return replace(judgement, findings=tuple(findings))


def finding_of(line: FindingLine) -> Finding:
    """Return the finding of a line."""
    return Finding(
        line.fingerprint,
        line.rule,
        line.severity,
        line.key,
        line.version_id,
        line.grantee,
        line.permission,
        line.message,
    )


class FillObject(Struct, frozen=True):
    """An object of the run that is filled, until it is written. after: the key before it in the run."""

    stored: StoredObject
    known: Evidence
    after: str | None


class StoredObjects:
    """Yields the objects of a run, and reads again the facts that their lines lack.

    run: the run that is filled. reader: reads an object. judge: judges by the present facts of the bucket. relisting:
    says if an object is still the one of the line. decided: IDs of rules that lacked a fact of the bucket in the run,
    and do not lack it now. began: the start of this run, in ISO 8601. first: the key after which the target begins.
    knows_key: returns True for the ID of a KMS key whose policy is known, or is not to be read. io: runs a function in
    the thread of the store.
    """

    def __init__(
        self,
        run: RunReader,
        reader: ObjectReader,
        judge: Judge,
        relisting: Relisting,
        *,
        decided: frozenset[str],
        began: str,
        first: str | None,
        knows_key: Callable[[str], bool],
        io: Callable[..., Awaitable[Any]],
    ) -> None:
        self._run = run
        self._reader = reader
        self._judge = judge
        self._relisting = relisting
        self._decided = decided
        self._began = began
        self._first = first
        self._knows_key = knows_key
        self._io = io
        self._waiting: dict[tuple[str, str | None], FillObject] = {}

    async def pages(self, target: Target) -> AsyncGenerator[list[Listed], None]:
        """Yield the steps of the objects after the key at which the target begins."""
        steps = self._steps(target.start_after)
        while page := await self._io(lambda: list(islice(steps, _PAGE))):
            yield page

    def taken(self, ref: ObjectRef) -> FillObject:
        """Return an object that is about to be written, and forget it."""
        return self._waiting.pop((ref.key, ref.version_id))

    def _steps(self, start_after: str | None) -> Iterator[Listed]:
        before, key = self._first, None
        for stored in self._objects(start_after):
            line = stored.line
            if key is not None and line.key != key:
                before = key
            key = line.key
            if start_after is not None and key <= start_after:
                continue
            known = line.evidence
            self._waiting[key, line.version_id] = FillObject(stored, known, before)
            yield Listed(key, known.ref, 0, None if self._asks(stored, known) else known)

    def _objects(self, start_after: str | None) -> Iterator[StoredObject]:
        """Yield the objects of the parts that have keys after start_after."""
        for number, files in self._run.parts_after(self._run.by_part(), start_after):
            part = StoredPart(self._run, number, files)
            part.bucket_findings()
            yield from part.objects()

    def _asks(self, stored: StoredObject, known: Evidence) -> bool:
        """True if a call may be needed for the object."""
        if known.vanished:
            return False
        if self._reader.lacks(known) or stored.line.verdict is Verdict.UNKNOWN or self._decided:
            return True
        key = known.head.sse_kms_key_id if isinstance(known.head, Head) else None
        return bool(key) and not self._knows_key(key or "")

    async def read(self, ref: ObjectRef, facts: KnownFacts = NO_FACTS) -> Evidence:
        """Read the facts of an object that its line lacks. The steps of a fill have no `facts`: the line has them.

        Raises RunError if every further call would fail too.
        """
        waiting = self._waiting[ref.key, ref.version_id]
        known = waiting.known
        unchanged = partial(self._relisting.has, ref, waiting.after)
        found = self._with_digests(await self._reader.read_again(known, unchanged), known)
        if not found.vanished and self._lacks_values(waiting.stored, self._judge.object(found)):
            again = await self._reader.read_again(replace(found, head=_NO_VALUES), unchanged)
            found = self._with_digests(again, known)
        return replace(found, read_at=self._read_at(known, found))

    def _lacks_values(self, stored: StoredObject, judgement: Judgement) -> bool:
        """True if a rule that had no answer on the object needs a value that the run folder does not have."""
        if not judgement.unstored:
            return False
        undecided = stored.undecided.rules if stored.undecided is not None else ()
        open_rules = {*undecided, *self._decided}
        if stored.undecided is None and stored.line.verdict is Verdict.UNKNOWN:
            open_rules |= _ON_EXPOSED
        return not open_rules.isdisjoint(judgement.unstored)

    def _with_digests(self, found: Evidence, known: Evidence) -> Evidence:
        """Return the evidence with what is known of the digests: nothing of an object with other bytes."""
        changed = found.ref.etag != known.ref.etag and not isinstance(known.digests, Skipped)
        return replace(found, digests=DigestSources() if changed else known.digests)

    def _read_at(self, known: Evidence, found: Evidence) -> ReadAt | None:
        """Return the times of the facts: those that were read just now have the start of this run."""
        found_at = known.read_at or ReadAt()
        if isinstance(found.acl, Acl) and found.acl is not known.acl:
            found_at = replace(found_at, acl=self._began, acl_from=None)
        if isinstance(found.head, Head) and found.head is not known.head:
            found_at = replace(found_at, head=self._began, head_from=None)
        return None if found_at == ReadAt() else found_at


class FillRecordJudge(RecordJudge):
    """Judges the objects of a run that is filled. The ledger is not asked again.

    tally: the counts of the filled run, in which an object that is read again changes its state. source: the objects.
    kept: keeps the findings of rules that cannot judge an object again. bucket: the stored findings on the bucket
    itself.
    """

    def __init__(
        self, judge: Judge, tally: Tally, source: StoredObjects, kept: StoredFindings, bucket: Sequence[FindingLine]
    ) -> None:
        super().__init__(judge, tally)
        self._source = source
        self._kept = kept
        self._stored_on_bucket = list(bucket)

    def bucket(self) -> list[Finding]:
        return [*super().bucket(), *self._kept.of_bucket(self._stored_on_bucket)]

    def object(self, evidence: Evidence, looked: HashStatus | None) -> JudgedObject:
        waiting = self._source.taken(evidence.ref)
        stored = waiting.stored
        same = evidence.ref.etag == waiting.known.ref.etag and not evidence.vanished
        judgement = self._kept.added(self._judge.object(evidence), stored.findings if same else [])
        routed = stored.routed if same else None
        hashed = None if evidence.vanished else stored.line.hashed
        if hashed is not None and not same:
            hashed = False
        if stored.line.hashed is not None and evidence is not waiting.known:
            _count_again(self._tally, waiting, evidence, routed=routed is not None, same=same)
        return judgement, hashed, None if routed is None else routed_line(routed)


def _count_again(tally: Tally, waiting: FillObject, evidence: Evidence, *, routed: bool, same: bool) -> None:
    """Move an object that was read again to the state of its digests that its facts show now. same: True if its bytes
    are those of its line.
    """
    stored, known = waiting.stored, waiting.known
    before = _state(tally, known, hashed=stored.line.hashed is True, routed=stored.routed is not None)
    after = (
        None if evidence.vanished else _state(tally, evidence, hashed=same and bool(stored.line.hashed), routed=routed)
    )
    if stored.routed is not None and not routed:
        tally.route(-stored.routed.size, -1)
    if (code := _failure(tally, known)) and (evidence.vanished or unhashable(evidence) != code):
        tally.fail_no_more(code)
    if before == after:
        return
    if before == "pending":
        tally.leave_no_more(known.ref.storage_class, known.ref.size)
    tally.hash(before, -1)
    if after is not None:
        tally.hash(after)
    if sum(tally.failed.values()) > tally.hashing["pending"]:
        tally.fail_no_more(max(tally.failed))  # no line tells the code of an object whose bytes alone were refused


def _failure(tally: Tally, evidence: Evidence) -> str:
    """Return the code by which a run that hashes counts an object as failed by its HEAD; "" if it does not."""
    code = "" if isinstance(evidence.head, Unread) else unhashable(evidence)
    return code if code in tally.failed else ""


def _state(tally: Tally, evidence: Evidence, *, hashed: bool, routed: bool) -> str:
    """Return the state of an object's digests. The lines do not tell some states apart: there must be one to take."""
    if hashed:
        return "known" if tally.hashing["known"] else "hashed_now"
    if routed or (unhashable(evidence) and not _failure(tally, evidence)):
        return "unhashable"
    return "pending" if tally.hashing["pending"] or not tally.hashing["queued"] else "queued"
