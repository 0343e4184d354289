"""The facts that the target's last complete run read of objects which did not change since, and those that were read
after events on them.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

from auditor.config.settings import Settings
from auditor.errors import OutputError
from auditor.model.bucket import BucketFacts
from auditor.model.dates import iso_date
from auditor.model.json_codec import JsonError
from auditor.model.line_records import read_line
from auditor.model.object import ARCHIVE, Acl, FactOrigin, Head, ObjectRef, ReadAt, Unread
from auditor.model.reuse import NO_FACTS, KnownFacts, NamesOnly
from auditor.model.run_lines import ObjectLine
from auditor.model.summary import Summary
from auditor.rules.base import Plan, head_groups
from auditor.runs.parts import Part, packed_lines
from auditor.runs.reading import RunReader, read_seal
from auditor.runs.renewals import CLOSE, ObjectId, RenewedObject, delete_outdated, read_renewals
from auditor.runs.run_files import RunPlan, SealedPart, key_of, sha256_of
from auditor.runs.tally import Tally
from auditor.text import visible

SETTLED: Final = 900.0
"""Seconds by which a fact must be younger than its object. LastModified has no fractions of a second, so a fact that
was read around the time of a write may be of the object before. The clock of the auditor may differ from that of S3 by
15 minutes: S3 refuses a request with a larger difference (RequestTimeTooSkewed, S3 API reference, error responses)."""
_NOTHING: Final = ReadAt()
_WHOLE: Final = (None, FactOrigin.RUN)
"""The sources whose HEAD has all members: the Inventory's has not."""
_SLACK: Final = 0.05
"""Share of the time between two runs by which a run may come late, without that a fact becomes older than its limit."""
_SPREAD: Final = 2_654_435_761  # Knuth's multiplicative hash: keys that count upwards fall into all turns
_WORD: Final = 2**32


class RefreshSchedule(Struct, frozen=True):
    """The order in which runs ask again for one kind of fact.

    Each object has its turn once in `number` runs, by its key, which makes the runs even. Whatever its turn, a fact is
    due if the next run would come too late for it: its age and the time between two runs are more than the limit
    together. So no fact that a run keeps is older than its limit before the next run, as long as that comes in time.

    limit: largest age, in seconds. every: seconds from one run to the next. began: start of this run, in seconds since
    1970.
    """

    limit: float
    every: float
    began: float

    @property
    def number(self) -> int:
        """Number of runs in which each object has one turn, at least 1: then each run asks about every object."""
        return max(1, int((self.limit - _SLACK * self.every) // self.every))

    def due(self, key: str, version_id: str | None, read: float, now: float) -> bool:
        """True if the fact of this object must be asked. read: when it was read; now: the present time, both in seconds
        since 1970. A fact of the future has no age: it is due.
        """
        if self.limit == float("inf"):
            return read > now
        if read > now or now - read + self.every > self.limit:
            return True
        turn = int(self.began // self.every)
        return int(read // self.every) < turn and self.turn_of(key, version_id) == turn % self.number

    def turn_of(self, key: str, version_id: str | None) -> int:
        """Return the turn of an object, from 0."""
        name = key if version_id is None else f"{key}\0{version_id}"
        spread = crc32(name.encode(errors="surrogatepass")) * _SPREAD % _WORD
        return spread * self.number // _WORD


class ReusableFacts(Struct, frozen=True):
    """Says which facts of an earlier run may be used for a listed object.

    listed: when the earlier run read the facts that its lines give no time for, in ISO 8601. acl, head: the schedules
    of the facts; None to use none. values: True if the values of user metadata are needed too.
    """

    listed: str
    acl: RefreshSchedule | None
    head: RefreshSchedule | None
    values: bool = False

    def of(self, ref: ObjectRef, line: ObjectLine, now: float) -> KnownFacts | None:
        """Return the facts on the line that hold for the listed object, and are not due; None if there are none.

        line: of the same key and version. now: the present time, in seconds since 1970.
        """
        if (line.etag, line.size, line.last_modified) != (ref.etag, ref.size, ref.last_modified):
            return None
        read_at = line.read_at or _NOTHING
        acl = head = None
        acl_at, head_at = read_at.acl or self.listed, read_at.head or self.listed
        if isinstance(line.acl, Acl) and _is_current(self.acl, ref, acl_at, now):
            acl = line.acl
        if isinstance(line.head, Head) and self._holds(line.head, line, ref) and read_at.head_from in _WHOLE:
            head = line.head if _is_current(self.head, ref, head_at, now) else None
        if acl is None and head is None:
            return None
        return KnownFacts(acl, acl_at, read_at.acl_from or FactOrigin.RUN, head, head_at, FactOrigin.RUN)

    def _holds(self, head: Head, line: ObjectLine, ref: ObjectRef) -> bool:
        """True if the HEAD is of the object as it is listed, and has all that is needed."""
        lacks_values = self.values and isinstance(head.metadata, NamesOnly) and len(head.metadata) > 0
        return line.storage_class == ref.storage_class and not lacks_values


def _is_current(schedule: RefreshSchedule | None, ref: ObjectRef, at: str, now: float) -> bool:
    if schedule is None:
        return False
    try:
        read, written = iso_date(at).timestamp(), iso_date(ref.last_modified).timestamp()
    except (ValueError, OverflowError):
        return False
    return written + SETTLED <= read and not schedule.due(ref.key, ref.version_id, read, now)


log = logging.getLogger(__name__)
_READABLE: Final = "retention_readable"
"""The option by which a rule is told that the caller may see retentions."""

Lines = Mapping[tuple[str, str | None], ObjectLine]
"""Lines of objects by key and version ID."""


def reused_groups(plan: Plan, *, ledger: bool) -> frozenset[str]:
    """Return the groups of members of the HEAD that must not be too old. ledger: True if the run has a ledger."""
    return head_groups(plan) | ({ARCHIVE} if ledger else frozenset())


class LastRunFacts:
    """A source of facts: an earlier run, and the renewals of its objects since.

    run: the target's last complete run when this run began. settings: `keep` is set. facts: the facts of the bucket as
    this run read them. groups: those of reused_groups(). began: start of this run, in ISO 8601. clock: returns the
    present time, in seconds since 1970. start_after: the key after which the listing begins; None for all keys. tidies:
    True to delete the renewals that no run needs any more.
    """

    def __init__(
        self,
        run: RunReader,
        settings: Settings,
        facts: BucketFacts,
        groups: frozenset[str],
        began: str,
        clock: Callable[[], float],
        *,
        start_after: str | None = None,
        tidies: bool = True,
    ) -> None:
        self._run = run
        self._settings = settings
        self._facts = facts
        self._groups = groups
        self._began = began
        self._clock = clock
        self._start_after = start_after
        self._tidies = tidies
        self._opened = False
        self._objects: EarlierObjects | None = None
        self._reusable = ReusableFacts("", None, None)
        self._renewals: Mapping[ObjectId, RenewedObject] = {}
        self._ended = float("inf")
        """The time up to which the earlier run may have read facts, in seconds since 1970."""

    def known(self, refs: Sequence[ObjectRef]) -> Sequence[KnownFacts | None]:
        """Return the facts that hold for each object of a page. Blocks.

        If the earlier run cannot be read, nothing more of it is used.
        """
        lines: Lines | None = None
        try:
            if not self._opened:
                self._opened = True
                self._objects = self._open()
            if self._objects is not None:
                lines = self._objects.of([ref.key for ref in refs])
        except OutputError as error:
            log.warning("no more facts are reused from the last run: %s", visible(str(error)))
            self._objects = None
        if lines is None:
            return [None] * len(refs)
        now = self._clock()
        return [self._of(ref, lines.get((ref.key, ref.version_id)), now) for ref in refs]

    def unseen(self, tally: Tally) -> Iterable[str]:
        """Return no phrase: the summary states the oldest fact."""
        return ()

    def _of(self, ref: ObjectRef, line: ObjectLine | None, now: float) -> KnownFacts | None:
        """Return the facts that hold for a listed object; None if there are none.

        line: of the earlier run; None if it has none. An ACL that was read since counts in place of the one on the
        line. A HEAD that was read since does not: whoever reads after events may see less of it. now: the present time,
        in seconds since 1970.
        """
        kept = None if line is None else self._reusable.of(ref, line, now)
        renewed = self._renewals.get((ref.key, ref.version_id))
        if renewed is None:
            return kept
        sure = renewed.sure and not self._contradicts(renewed, line)
        later = self._reusable.of(ref, renewed.line, now) if sure else None
        later, kept = later or NO_FACTS, kept or NO_FACTS
        if later.acl is None and kept.head is None:
            return None
        return replace(kept, acl=later.acl, acl_at=later.acl_at, acl_from=later.acl_from)

    def _contradicts(self, renewed: RenewedObject, line: ObjectLine | None) -> bool:
        """True if the run read another ACL than the renewal, and may have read it later."""
        if line is None or not isinstance(line.acl, Acl) or (line.read_at is not None and line.read_at.acl is not None):
            return False  # the run read none itself
        return line.acl != renewed.line.acl and iso_date(renewed.at).timestamp() <= self._ended

    def _open(self) -> EarlierObjects | None:
        """Begin to read the earlier run; None if nothing of it is used. Raises OutputError if the run is damaged."""
        run, file, summary, policy = self._run, self._run.plan, self._run.summary, self._settings.keep
        if policy is None or file is None or summary is None or not summary.complete:
            return None
        if not _is_same(file.facts, self._facts):
            log.warning("nothing is reused from run %s: it had another bucket, server or caller", run.run_id)
            return None
        acl = policy.acl if shows_same_acls(file.facts, self._facts) else None
        head = None if self._sees_more(file.configuration) else policy.head(self._groups)
        values = self._settings.keep_metadata
        self._reusable = ReusableFacts(file.now, self._schedule(acl), self._schedule(head), values=values)
        if self._tidies:
            delete_outdated(run.store, run.bucket_name)
        renewals = read_renewals(run.store, run.bucket_name, file.now)
        if renewals is None:
            log.warning("nothing is reused from run %s: too many objects have been read since then", run.run_id)
            return None
        self._renewals = renewals
        self._ended = _ended(run, file, summary)
        return EarlierObjects(run, self._start_after)

    def _sees_more(self, before: Mapping[str, Any]) -> bool:
        """True if this run's caller sees retentions that the earlier one was not said to see: S3 leaves them out of the
        HEAD then. before: the configuration of the earlier run.
        """
        rules = before.get("rules")
        earlier = rules if isinstance(rules, Mapping) else {}
        return any(
            options.get(_READABLE) and not (earlier.get(rule) or {}).get(_READABLE)
            for rule, options in self._settings.rules.items()
        )

    def _schedule(self, limit: float | None) -> RefreshSchedule | None:
        began = iso_date(self._began).timestamp()
        return None if limit is None else RefreshSchedule(limit, self._settings.every, began)


def shows_same_acls(before: BucketFacts, now: BucketFacts) -> bool:
    """True if GetObjectAcl shows of a stored ACL what it showed before: it leaves out grants to the public groups under
    IgnorePublicAcls (S3 User Guide, "Blocking public access to your Amazon S3 storage").
    """
    pairs = (
        (before.public_access_block, now.public_access_block),
        (before.account_public_access_block, now.account_public_access_block),
        (before.ownership, now.ownership),
    )
    return all(one == other and not isinstance(other, Unread) for one, other in pairs)


def _is_same(before: BucketFacts, now: BucketFacts) -> bool:
    """True unless the facts are of two buckets with one name, or of two callers, who may see different things."""
    pairs = ((before.owner, now.owner), (before.region, now.region), (before.own_id, now.own_id))
    known = ((one, other) for one, other in pairs if isinstance(one, str) and isinstance(other, str))
    return before.semantics is now.semantics and all(one == other for one, other in known)


def _ended(run: RunReader, file: RunPlan, summary: Summary) -> float:
    """Return the time up to which a run may have read facts, in seconds since 1970. The summary has the seconds of the
    last process alone, so of a run of several the time is not known: infinity.
    """
    if file.divided:
        return float("inf")
    return iso_date(file.now).timestamp() + summary.seconds + CLOSE


class EarlierObjects:
    """Reads the lines of an earlier run in the order of their keys. All methods block.

    run: a complete run. start_after: leave out the keys up to this one; None to begin at the first. Raises OutputError
    for a part that is damaged or gone, or that differs from the run's seal: facts that are used again must be those
    that the run wrote.
    """

    def __init__(self, run: RunReader, start_after: str | None = None) -> None:
        self._run = run
        self._start_after = start_after
        self._lines = self._after(start_after)
        self._next: tuple[str, bytes] | None = None
        self._last: dict[tuple[str, str | None], ObjectLine] = {}
        self._begun = False

    def of(self, keys: Sequence[str]) -> Lines:
        """Return the lines of the objects with these keys, which are in order and not before those of the last call."""
        if not keys:
            return {}
        if not self._begun:
            self._begun, self._next = True, next(self._lines, None)
        wanted, last = set(keys), keys[-1]
        found = {name: line for name, line in self._last.items() if name[0] in wanted}
        while self._next is not None and self._next[0] <= last:
            key, text = self._next
            if key in wanted:
                line = self._parsed(text)
                found[key, line.version_id] = line
            self._next = next(self._lines, None)
        self._last = {name: line for name, line in found.items() if name[0] == last}
        return found

    def _after(self, start: str | None) -> Iterator[tuple[str, bytes]]:
        seal = read_seal(self._run.store, self._run.path)
        if seal is None:
            raise OutputError(f"{self._run.uri} has no seal, and only a seal shows that its lines are unaltered")
        sealed = {part.path: part for part in seal.parts}
        for _, files in self._run.by_part():
            part = files.get("objects")
            if part is None:
                continue
            entry = sealed.get(part.path)
            if entry is None or start is None or entry.last is None or entry.last > start:
                yield from ((key, line) for key, line in self._of_part(part, entry) if start is None or key > start)

    def _of_part(self, part: Part, entry: SealedPart | None) -> Iterator[tuple[str, bytes]]:
        path = f"{self._run.path}/{part.path}"
        data = self._run.store.get(path)
        if data is None or entry is None or sha256_of(data) != entry.sha256:
            raise OutputError(f"{self._run.store.uri(path)} is not as the run sealed it: `auditor check` says more")
        try:
            for line in packed_lines(data):
                key = key_of(line)
                if key is not None:
                    yield key, line
        except (OSError, EOFError, zlib.error, JsonError) as error:
            raise self._damaged(error) from error

    def _parsed(self, line: bytes) -> ObjectLine:
        try:
            return read_line(ObjectLine, line)
        except JsonError as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> OutputError:
        return OutputError(f"{self._run.uri}/objects has a damaged line ({error}): audit again")
