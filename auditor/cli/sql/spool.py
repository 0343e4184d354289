"""Copy the parts of a run into a private directory, the only one that a query can see, and check them on the way."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from auditor.cli.sql.tables import TABLES
from auditor.errors import OutputError, RunStopped
from auditor.runs.parts import Part
from auditor.runs.reading import RunReader, read_seal
from auditor.runs.seal import NAME as SEAL
from auditor.runs.seal import SealedPart
from auditor.runs.stores.base import check_size
from auditor.runs.stores.local import output_errors, private

STOPPED: Final = "the query was stopped: it has no answer"
_KINDS: Final = tuple(table.name for table in TABLES)


@dataclass(frozen=True, slots=True)
class CopiedParts:
    """The copies of a run's files by their kind, in order. lines: the number of lines of each kind, which the seal has;
    None if it does not name every file.
    """

    files: Mapping[str, Sequence[Path]]
    lines: Mapping[str, int] | None


def copy_parts(run: RunReader, to: Path, stopped: Callable[[], bool]) -> CopiedParts:
    """Copy the files of the run's parts.

    A file whose SHA-256 is not the one in the run's seal raises OutputError, and so does a file of a complete run that
    the seal does not name, or that is gone. Raises RunStopped once `stopped` returns True.
    """
    seal = read_seal(run.store, run.path)
    sealed = {part.path: part for part in seal.parts} if seal else {}
    parts = [part for _, files in run.by_part() for kind, part in files.items() if kind in _KINDS]
    if seal and run.complete:
        _compare(run, {part.path for part in parts}, sealed)
    copies: dict[str, list[Path]] = {kind: [] for kind in _KINDS}
    lines = dict.fromkeys(_KINDS, 0)
    for part in parts:
        copy = to / f"{len(copies[part.kind]):06}-{part.kind}.jsonl.gz"
        _copy(run, part, copy, sealed.get(part.path), stopped)
        copies[part.kind].append(copy)
        if part.path in sealed:
            lines[part.kind] += sealed[part.path].lines
    return CopiedParts(copies, lines if all(part.path in sealed for part in parts) else None)


def _compare(run: RunReader, found: set[str], sealed: dict[str, SealedPart]) -> None:
    wanted = {path for path, part in sealed.items() if path.startswith(_KINDS) and part.lines}
    for path in sorted(found ^ wanted):
        if path in wanted:
            raise OutputError(f"{run.uri}/{path} is gone: `auditor check` says what the run lacks")
        if path not in sealed:
            raise OutputError(f"{run.uri}/{path} is not named in {SEAL}: it was added, move it away")


def _copy(run: RunReader, part: Part, copy: Path, sealed: SealedPart | None, stopped: Callable[[], bool]) -> None:
    digest, size = hashlib.sha256(), 0
    with output_errors(copy), open(copy, "xb", opener=private) as file:
        for piece in _pieces(run, part):
            if stopped():
                raise RunStopped(STOPPED)
            size += len(piece)
            check_size(part.path, size, f"{run.uri}/{part.path}")
            digest.update(piece)
            file.write(piece)
    if sealed is not None and digest.hexdigest() != sealed.sha256:
        raise OutputError(f"{run.uri}/{part.path} was altered: its SHA-256 is not the one in {SEAL}")


def _pieces(run: RunReader, part: Part) -> Iterator[bytes]:
    pieces = run.store.stream(f"{run.path}/{part.path}")
    if pieces is None:
        raise OutputError(f"{run.uri}/{part.path} is gone: `auditor check` says what the run lacks")
    return pieces
