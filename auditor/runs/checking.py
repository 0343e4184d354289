"""Check a run folder against its seal: nothing altered, cut, left out or added."""

from __future__ import annotations

import gzip
import io
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from auditor.errors import OutputError
from auditor.model.json_text import JsonError
from auditor.runs.checkpoint import load_checkpoint
from auditor.runs.ownership import EMPTY_PART
from auditor.runs.parts import KINDS, Part, found_parts
from auditor.runs.reading import RunReader
from auditor.runs.seal import FILES, OF_RANGES, Seal, SealedPart, first_key_of, sha256_of
from auditor.runs.seal import NAME as SEAL
from auditor.runs.seal_chain import SealChain
from auditor.text import counted, visible

_FINAL: Final = frozenset({"bucket.json", "plan.json", "report.html", "rollups.json", "summary.json"})
"""The files that a run which goes on after its seal does not change, until it ends again."""
Order = tuple[bool, bytes]
"""The place of a line among those of a run: lines on the bucket come first, then keys in the order of their bytes."""


@dataclass(frozen=True, slots=True)
class RunCheck:
    """The result of checking a run folder. All sentences are safe to print."""

    run: str
    faults: tuple[str, ...]
    """A sentence for each thing that was altered, cut, left out or added."""
    lacks: tuple[str, ...]
    """A sentence for each thing that cannot be checked, because it is not there."""
    parts: int
    lines: int
    sha256: str | None
    """SHA-256 of parts.json, which a keeper of evidence notes elsewhere; None if the run has no seal."""
    chain: tuple[str, ...] = ()
    """IDs of the earlier runs whose seals were found and match, the latest first. Each seal has the digest of the one
    before it."""

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
        self._lines: Counter[str] = Counter()
        self._ends: dict[str, Order] = {}
        """By kind: the last key that was read."""

    def run(self) -> RunCheck:
        """Check the run. Raises OutputError if the store cannot be read."""
        data = self._store.get(f"{self._run.path}/{SEAL}")
        seal = self._sealed(data)
        chain: list[str] = []
        parts: tuple[SealedPart, ...] = ()
        if seal is not None and data is not None:
            parts = seal.parts
            going_on = self._files(seal)
            self._parts(seal, going_on)
            self._counts(going_on)
            links = SealChain(self._run)
            chain = links.earlier(seal)
            links.later(sha256_of(data))
            self._faults += links.faults
        return RunCheck(
            run=self._run.run_id,
            faults=tuple(self._faults),
            lacks=tuple(self._lacks),
            parts=len(parts),
            lines=sum(self._lines.values()),
            sha256=None if data is None else sha256_of(data),
            chain=tuple(chain),
        )

    def _sealed(self, data: bytes | None) -> Seal | None:
        if data is None:
            if self._run.bucket_data is None:
                why = "an earlier version of the auditor wrote the run, or both were removed"
                self._lacks.append(f"{SEAL} and bucket.json are not there: {why}, so that nothing can be proved")
            elif self._run.complete:
                self._faults.append(f"{SEAL} is gone: a complete run has one")
            else:
                self._lacks.append(f"{SEAL} is not there: the run has not ended, go on with it")
            return None
        try:
            seal = Seal.from_json(data)
        except JsonError as error:
            self._faults.append(f"{SEAL} is damaged ({error})")
            return None
        if seal.run != self._run.run_id:
            self._faults.append(f"{SEAL} is that of another run, {visible(seal.run)}")
        return seal

    def _files(self, seal: Seal) -> bool:
        """Check the files besides the parts. Return True if the run went on after the seal was written."""
        going_on = False
        if "summary.json" not in seal.files:
            self._lacks.append("the run was handed on and has not ended: its seal has the parts so far")
            going_on = True
        for name in self._names(seal):
            data = self._store.get(f"{self._run.path}/{name}")
            sealed = seal.files.get(name)
            if sealed is None:
                if data is not None and not going_on:
                    self._faults.append(f"{name} is not named in {SEAL}: it was added")
            elif data is None:
                self._faults.append(f"{name} is gone")
            elif sha256_of(data) != sealed:
                if name not in _FINAL and not self._complete():
                    self._lacks.append("the run went on after its seal was written, and has not ended since")
                    going_on = True
                else:
                    self._faults.append(f"{name} was altered: its SHA-256 is not the one in {SEAL}")
        return going_on

    def _names(self, seal: Seal) -> list[str]:
        """Return the names of the files besides the parts that the run may have, those of its ranges included."""
        start = len(self._run.path) + 1
        there = (path[start:] for path in self._store.list(f"{self._run.path}/"))
        return list(dict.fromkeys([*FILES, *seal.files, *filter(OF_RANGES.fullmatch, there)]))

    def _complete(self) -> bool:
        try:
            return self._run.complete
        except OutputError:
            return True

    def _parts(self, seal: Seal, going_on: bool) -> None:
        digests = {part.sha256: part.path for part in seal.parts}
        there = {part.path: part for part in found_parts(self._store, self._run.path)}
        voids = self._voids({part.range_id for part in there.values()})
        for sealed in seal.parts:
            part = there.pop(sealed.path, None)
            if part is None:
                known = Part.parse(sealed.path) is not None
                self._faults.append(f"{visible(sealed.path)} is gone" if known else f"{SEAL} names no part's file")
                continue
            if (part.range_id, part.number) in voids:
                self._faults.append(f"{part.path} is left out by state.json, although it is sealed")
            self._part(part, sealed, digests)
            self._passed(self._lines["objects"])
        for path, part in there.items():
            if (part.range_id, part.number) in voids:
                if self._store.get(f"{self._run.path}/{path}") != EMPTY_PART:
                    self._faults.append(f"{path} has lines, although the run left the part empty")
            elif not going_on:
                self._faults.append(f"{path} is not named in {SEAL}: it was added")

    def _voids(self, ranges: Iterable[str]) -> frozenset[tuple[str, int]]:
        """Return the parts that the run left empty, each by its range and number."""
        found: set[tuple[str, int]] = set()
        for one in ranges:
            with suppress(OutputError):  # its digest differs, which is told already
                state = load_checkpoint(self._store, self._run.bucket_name, self._run.run_id, one)
                found |= {(one, number) for number in (state.skipped_parts if state else ())}
        return frozenset(found)

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
                self._faults.append(f"{part.path} was altered: it is {missing} shorter than the run wrote it")
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
            for key in _keys(data):
                order = (key is not None, (key or "").encode(errors="surrogatepass"))
                if before is not None and order < before:
                    sorted_so_far = False
                before, last = order, key
                first = key if number == 0 else first
                number += 1
        except (OSError, EOFError, zlib.error, JsonError) as error:
            self._faults.append(f"{part.path} cannot be read ({error})")
            return
        if before is not None:
            self._ends[part.kind] = before
        self._lines[part.kind] += number
        if not sorted_so_far:
            self._faults.append(f"{part.path} has keys out of order")
        if number != sealed.lines:
            self._faults.append(f"{part.path} has {counted(number, 'line')}, and {SEAL} says {sealed.lines:,}")
        if (first, last) != (sealed.first, sealed.last):
            self._faults.append(f"{part.path} has another first or last key than {SEAL} says")

    def _counts(self, going_on: bool) -> None:
        """Compare the numbers of lines with those of the summary."""
        try:
            summary = self._run.summary
        except OutputError:  # its digest differs, which is told already
            return
        if summary is None or going_on or self._faults:
            return
        hashing = summary.hashing
        expected = {
            "objects": summary.coverage.listed,
            "undecided": summary.coverage.undecided,
            "findings": sum(summary.findings.values()),
            "routed": hashing.routed.objects if hashing else 0,
        }
        for kind in KINDS:
            if (found := self._lines[kind]) != expected[kind]:
                self._faults.append(f"{kind}/ has {counted(found, 'line')}, and the summary counts {expected[kind]:,}")


def _keys(data: bytes) -> Iterator[str | None]:
    """Yield the key of each line of a part's file. Raises JsonError, OSError, EOFError or zlib.error for damage."""
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as lines:
        for line in lines:
            yield first_key_of(line)
