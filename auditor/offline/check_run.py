"""Check a run folder: nothing altered, cut, left out or added since its seal was written, and the numbers of its lines
equal to those of its summary.

Seals are a chain. Each names the run before it, with the SHA-256 of that run's summary, which has that of its seal.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

from msgspec import Struct

from auditor.errors import OutputError, UsageError
from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.json_codec import JsonError, OldFormatError, decode, parse_document, parse_object
from auditor.model.object import Outcome, Whole
from auditor.model.summary import Summary
from auditor.runs.checkpoint import Checkpoint
from auditor.runs.parts import Part, found_parts, packed_lines
from auditor.runs.paths import began_later, parse_run_id, run_path
from auditor.runs.reading import RunReader, last_run, latest_runs, parse_seal, read_seal
from auditor.runs.run_files import FILES, PLAN, SEAL, Link, Seal, SealedPart, damaged, sha256_of
from auditor.text import counted, visible

T = TypeVar("T")
_SUMMARY: Final = "summary.json"
_GO_ON: Final = "the run has not ended: resume it with --resume"
Order = tuple[bool, bytes]
"""The place of a line among those of a run: lines on the bucket come first, then keys in the order of their bytes."""

LINKS: Final = 10_000
"""Largest number of runs of the chain that are looked at."""


class RunCheck(Struct, frozen=True):
    """The result of checking a run folder. All sentences are safe to print."""

    run: str
    faults: tuple[str, ...]
    """A sentence for each thing that was altered, cut, left out or added."""
    lacks: tuple[str, ...]
    """A sentence for each thing that cannot be checked, because it is not there."""
    parts: int
    lines: int
    sha256: str | None
    """SHA-256 of summary.json, which a keeper of evidence notes elsewhere; None if the run has no summary."""
    chain: tuple[str, ...] = ()
    """IDs of the earlier runs whose summaries were found and match, the latest first. Each run's seal has the digest of
    the summary before it, and each summary that of its seal."""

    @property
    def exit_code(self) -> int:
        """1 for a fault; 4 if something could not be checked; 0 if the run is whole."""
        return 1 if self.faults else 4 if self.lacks else 0


class RunChecker:
    """Checks one run folder, with one part in memory at a time. Call run() once; it blocks.

    passed: called with the number of objects checked so far, after each part.
    """

    def __init__(self, run: RunReader, passed: Callable[[int], object] = lambda objects: None) -> None:
        self._run = run
        self._store = run.store
        self._passed = passed
        self._faults: list[str] = []
        self._lacks: list[str] = []
        self._counts = LineCounts()
        self._ends: dict[str, Order] = {}
        """By kind: the last key that was read."""

    def run(self) -> RunCheck:
        """Check the run. Raises OutputError if the store cannot be read, OldRun for a run of a development version."""
        data = self._store.get(f"{self._run.path}/{_SUMMARY}")
        summary, chain = None if data is None else self._parsed(_SUMMARY, lambda: self._run.summary), list[str]()
        parts: tuple[SealedPart, ...] = ()
        links = SealChain(self._run)
        if data is None:
            self._parsed(PLAN, lambda: self._run.plan)
            self._not_ended(links)
        elif summary is not None and (seal := self._sealed(summary)) is not None:
            parts = seal.parts
            if summary.complete:
                self._files(seal, summary)
            self._parts(seal, summary.complete)
            if summary.complete and not self._faults:
                self._faults += self._counts.differences(summary)
            chain = links.earlier(seal)
        if data is not None:
            links.later(sha256_of(data))
        self._faults += links.faults
        return RunCheck(
            run=self._run.run_id,
            faults=tuple(self._faults),
            lacks=tuple(self._lacks),
            parts=len(parts),
            lines=self._counts.lines.total(),
            sha256=None if data is None else sha256_of(data),
            chain=tuple(chain),
        )

    def _not_ended(self, links: SealChain) -> None:
        """Note that the run has no summary. It has not ended, unless another file says that it has."""
        if (names := links.named_by()) is not None:
            self._faults.append(f"{_SUMMARY} is gone: {names} names the run as a complete one")
        else:
            self._lacks.append(_GO_ON)

    def _parsed(self, name: str, read: Callable[[], T]) -> T | None:
        """Read a file of the run. A file that is damaged is a fault; one of a development version is refused."""
        try:
            return read()
        except (OutputError, JsonError) as error:
            reason = error.__cause__ if isinstance(error, OutputError) else error
            if isinstance(reason, OldFormatError):
                raise damaged(f"{self._run.uri}/{name}", reason) from error
            self._faults.append(f"{name} is damaged ({reason})")
            return None

    def _sealed(self, summary: Summary) -> Seal | None:
        """Return the run's seal; None if the run has none that can be used. The seal of a run that was stopped is
        replaced when the run ends.
        """
        data = self._store.get(f"{self._run.path}/{SEAL}")
        if not summary.complete:
            self._lacks.append(_GO_ON)
            return parse_seal(data)
        if data is None:
            self._faults.append(f"{SEAL} is gone: a complete run has one")
            return None
        seal = self._parsed(SEAL, lambda: Seal.from_json(data))
        if seal is not None and seal.run != self._run.run_id:
            self._faults.append(f"{SEAL} is that of another run, {visible(seal.run)}")
        return seal

    def _files(self, seal: Seal, summary: Summary) -> None:
        """Check the files besides the parts."""
        if any(name != SEAL for name in summary.sealed):
            self._faults.append(f"{_SUMMARY} names a file that no run has")
        self._file(SEAL, summary.sealed.get(SEAL), _SUMMARY)
        for name in FILES:
            self._file(name, seal.files.get(name), SEAL)

    def _file(self, name: str, digest: str | None, source: str) -> None:
        """Compare a file with its digest in the file `source`, which has none of a file that the run did not write."""
        data = self._store.get(f"{self._run.path}/{name}")
        if digest is None:
            if data is not None:
                self._faults.append(f"{name} is not named in {source}: it was added")
        elif data is None:
            self._faults.append(f"{name} is gone")
        elif sha256_of(data) != digest:
            self._faults.append(f"{name} was altered: its SHA-256 is not the one in {source}")
        elif name.endswith(".json"):
            self._parsed(name, lambda: parse_object(data))

    def _parts(self, seal: Seal, complete: bool) -> None:
        """Check the parts. complete: False for a run that may have gone on since the seal was written."""
        digests = {part.sha256: part.path for part in seal.parts if part.lines}
        there = {part.path: part for part in found_parts(self._store, self._run.path)}
        states = {} if complete else self._checkpoints()
        for sealed in seal.parts:
            named = Part.parse(sealed.path)
            if named is None:
                self._faults.append(f"{SEAL} names no part's file")
                continue
            part = there.pop(sealed.path, None)
            if not complete and (named.range_id not in states or named.number >= states[named.range_id].next_part):
                continue  # the process that continues replaces it
            if part is None:
                self._faults.append(f"{sealed.path} is gone")
                continue
            self._part(part, sealed, digests)
            self._passed(self._counts.lines["objects"])
        if complete:
            self._faults += [f"{path} is not named in {SEAL}: it was added" for path in there]

    def _checkpoints(self) -> dict[str, Checkpoint]:
        """Return the checkpoints of the run, unless one is damaged: the process that continues says so."""
        with suppress(OutputError):
            return dict(self._run.checkpoints())
        return {}

    def _part(self, part: Part, sealed: SealedPart, digests: dict[str, str]) -> None:
        data = self._store.get(f"{self._run.path}/{part.path}")
        if data is None:
            self._faults.append(f"{part.path} is gone")
            return
        digest = sha256_of(data)
        if digest != sealed.sha256:
            if (other := digests.get(digest)) is not None:
                self._faults.append(f"{part.path} has the bytes of {visible(other)}: parts were swapped")
            elif len(data) < sealed.bytes:
                missing = counted(sealed.bytes - len(data), "byte")
                self._faults.append(f"{part.path} was altered: it is {missing} shorter than when the run wrote it")
            else:
                self._faults.append(f"{part.path} was altered: its SHA-256 is not the one in {SEAL}")
            return
        if len(data) != sealed.bytes:
            self._faults.append(f"{part.path} has another size than {SEAL} says")
        self._read(part, sealed, data)

    def _read(self, part: Part, sealed: SealedPart, data: bytes) -> None:
        number, first, last = 0, None, None
        before = self._ends.get(part.kind)
        sorted_so_far = True
        try:
            for line in packed_lines(data):
                key = self._counts.add(part.kind, line)
                order = (key is not None, (key or "").encode(errors="surrogatepass"))
                if before is not None and order < before:
                    sorted_so_far = False
                before, last = order, key
                first = key if number == 0 else first
                number += 1
        except (OSError, EOFError, zlib.error, JsonError) as error:
            self._faults.append(f"{part.path} is damaged ({error})")
            return
        if before is not None:
            self._ends[part.kind] = before
        if not sorted_so_far:
            self._faults.append(f"{part.path} has keys out of order")
        if number != sealed.lines:
            self._faults.append(f"{part.path} has {counted(number, 'line')}, and {SEAL} says {sealed.lines:,}")
        if (first, last) != (sealed.first, sealed.last):
            self._faults.append(f"{part.path} has another first or last key than {SEAL} says")


class SealChain:
    """Compares one run with the runs before and after it. The methods block.

    faults: a sentence, safe to print, for each difference that was found.
    """

    def __init__(self, run: RunReader) -> None:
        self._run = run
        self._store = run.store
        self.faults: list[str] = []

    def earlier(self, seal: Seal) -> list[str]:
        """Follow the chain to earlier runs. Return the IDs of the runs that match their digests in it."""
        found: list[str] = []
        if seal.previous is not None and not _is_earlier(seal.previous.run, self._run.run_id):
            self.faults.append(f"{SEAL} names a previous run that is not earlier")
        for link, data in self._links(seal):
            if link.sha256 is None:
                break
            if data is None:
                self._lacks_link(link, bool(found))
                break
            if sha256_of(data) != link.sha256:
                name = found[-1] if found else self._run.run_id
                self.faults.append(f"the summary of the earlier run {link.run} was altered after run {name} named it")
                break
            if not self._keeps_seal(link.run, data):
                self.faults.append(f"the seal of the earlier run {link.run} is not the one that its summary names")
                break
            found.append(link.run)
        return found

    def _lacks_link(self, link: Link, later: bool) -> None:
        """Add a fault if the run before this one has files, but has lost its summary. Runs further back in the chain
        may be deleted. later: True for a run further back.
        """
        folder = run_path(self._run.bucket_name, link.run)
        if not later and self._store.list(f"{folder}/"):
            self.faults.append(f"the earlier run {link.run} has lost its summary.json")

    def _links(self, seal: Seal) -> Iterator[tuple[Link, bytes | None]]:
        """Yield each earlier run that the chain of seals names, with the bytes of its summary. No run in the chain
        began in a later second than the one before.
        """
        link, run_id = seal.previous, seal.run
        for _ in range(LINKS):
            if link is None or not _is_earlier(link.run, run_id):
                return
            folder = run_path(self._run.bucket_name, link.run)
            yield link, self._store.get(f"{folder}/summary.json")
            earlier = read_seal(self._store, folder)
            run_id, link = link.run, earlier.previous if earlier else None

    def _keeps_seal(self, run_id: str, summary: bytes) -> bool:
        """True if the run has the seal that its summary names."""
        seal = self._store.get(f"{run_path(self._run.bucket_name, run_id)}/{SEAL}")
        try:
            return seal is not None and parse_document(summary)["sealed"][SEAL] == sha256_of(seal)
        except (JsonError, KeyError, TypeError):
            return False

    def _named_after(self, latest: RunReader) -> Iterator[tuple[str, Link]]:
        """Yield the links of the chain that ends with the run `latest`, each with the ID of the run that has it."""
        later, seal = latest.run_id, read_seal(self._store, latest.path)
        for link, _ in self._links(seal) if seal else ():
            yield later, link
            later = link.run

    def named_by(self) -> str | None:
        """Return the name of a file or run that names this run as a complete one; None if none does."""
        with suppress(OutputError):
            for latest in latest_runs(self._store, self._run.bucket_name):
                if latest.run_id == self._run.run_id:
                    return "latest.json"
                for later, link in self._named_after(latest):
                    if link.run == self._run.run_id:
                        return f"the later run {later}"
        return None

    def later(self, sha256: str) -> None:
        """Compare this run's summary with its digest in the seal of a later run. A difference shows that summary.json
        itself was altered.
        """
        try:
            summary = self._run.summary
            latest = last_run(self._store, summary.target) if summary else None
        except OutputError:
            return
        if latest is None or latest.run_id <= self._run.run_id:
            return
        for later, link in self._named_after(latest):
            if link.run == self._run.run_id and link.sha256 != sha256:
                self.faults.append(f"summary.json was altered: the later run {later} names a different SHA-256 for it")
            if link.run <= self._run.run_id:
                return


def _is_earlier(run_id: str, than: str) -> bool:
    """True if the text is the ID of another run, which did not begin in a later second than the run `than`."""
    try:
        parse_run_id(run_id)
    except UsageError:
        return False
    return run_id != than and not began_later(run_id, than)


class _Line(Struct, frozen=True):
    """The begin of a line that is only counted. key: None for a finding on the bucket."""

    key: str | None


class _Finding(Struct, frozen=True):
    key: str | None
    severity: Severity


class _Object(Struct, frozen=True):
    key: str
    size: Whole
    outcome: Outcome
    verdict: Verdict | None
    hashed: bool | None


_LINES: Final[Mapping[str, Any]] = {"objects": _Object, "findings": _Finding}
"""The type of the lines of each kind; the others are a _Line."""


class LineCounts:
    """The numbers of a run's lines by kind, outcome, verdict, severity and hashing.

    lines: the number of lines by kind.
    """

    def __init__(self) -> None:
        self.lines: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._verdicts: Counter[str] = Counter()
        self._severities: Counter[str] = Counter()
        self._hashed: Counter[bool | None] = Counter()

    def add(self, kind: str, line: bytes) -> str | None:
        """Count a line of this kind of part, and return its key; None for a finding on the bucket. Raises JsonError for
        a line that is damaged.
        """
        found = decode(_LINES.get(kind, _Line), line)
        self.lines[kind] += 1
        if isinstance(found, _Object):
            self._outcomes[found.outcome] += 1
            self._verdicts[found.verdict or ""] += 1
            self._hashed[found.hashed] += 1
        elif isinstance(found, _Finding):
            self._severities[found.severity] += 1
        key: str | None = found.key
        return key

    def differences(self, summary: Summary) -> Iterator[str]:
        """Yield a sentence for each number of the summary that the lines do not have."""
        coverage, hashing = summary.coverage, summary.hashing
        routed = hashing.routed.objects if hashing else 0
        files = {
            "objects": coverage.listed,
            "undecided": coverage.undecided,
            "findings": sum(summary.findings.values()),
            "routed": routed,
        }
        for kind, number in files.items():
            if (found := self.lines[kind]) != number:
                yield f"{kind}/ has {counted(found, 'line')}, and the summary counts {number:,}"
        counts: list[tuple[str, int, int]] = [
            *((f"{one} objects", self._outcomes[one], getattr(coverage, one)) for one in Outcome),
            *((f"{one} objects", self._verdicts[one], summary.verdicts.get(one, 0)) for one in Verdict),
            *((f"{one} findings", self._severities[one], summary.findings.get(one, 0)) for one in Severity),
        ]
        if hashing is not None:
            counts.append(("hashed objects", self._hashed[True], hashing.known + hashing.hashed_now))
            left = hashing.queued + hashing.unhashable + hashing.pending
            counts.append(("objects to hash", self._hashed[False], left))
        for what, found, number in counts:
            if found != number:
                yield f"the lines have {found:,} {what}, and the summary counts {number:,}"
