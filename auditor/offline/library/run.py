"""A run as Python programs use it: its summary, and its lines, which are read only when they are asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from html import escape
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from msgspec.structs import asdict

from auditor.errors import UsageError
from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.object import Head, PartialHead
from auditor.model.run_lines import FindingLine, ObjectLine, PastObject, UndecidedLine
from auditor.model.summary import Coverage, Summary
from auditor.offline import folder_place
from auditor.offline.folder_place import StoreConnection
from auditor.runs.reading import RunReader
from auditor.runs.run_files import RunPlan
from auditor.runs.run_results import RunResults
from auditor.text import visible

if TYPE_CHECKING:
    from pandas import DataFrame

W = TypeVar("W", Verdict, Severity)

REPORT: Final = "report.html"
_OBJECT_MEMBERS: Final = [
    *(name for name in ObjectLine.__struct_fields__ if name not in ("acl", "head", "read_at", "dormant")),
    *("prefix1", "acl_state", "public_grant", "head_state", "public"),
]
_OBJECT_COLUMNS: Final = [*_OBJECT_MEMBERS, *(f"head_{name}" for name in Head.__struct_fields__)]


class Run:
    """A run in its folder, complete or not. Its methods block; lines are read while the caller iterates.

    Lines come in the order of the object keys. Raises OutputError for a damaged file.
    """

    def __init__(
        self,
        place: str | os.PathLike[str],
        *,
        endpoint_url: str | None = None,
        profile: str | None = None,
        region: str | None = None,
    ) -> None:
        self.place = str(place)
        """The path or URI of the run folder."""
        self._connection = StoreConnection(endpoint_url=endpoint_url, profile=profile, region=region)
        with self._open() as reader:
            self.run_id = reader.run_id
            self.summary: Summary | None = reader.summary
            """None if the run wrote none yet."""

    def __repr__(self) -> str:
        return f"Run({self.place!r})"

    @property
    def complete(self) -> bool:
        """True if the run reached the end of its listing."""
        return self.summary is not None and self.summary.complete

    @property
    def coverage(self) -> Coverage:
        """The numbers of listed and audited objects. Raises UsageError if the run has no summary yet."""
        return self._summed().coverage

    @property
    def verdicts(self) -> Mapping[str, int]:
        """The number of objects by verdict. Raises UsageError if the run has no summary yet."""
        return self._summed().verdicts

    def objects(self, verdict: Verdict | str | None = None) -> Iterator[ObjectLine]:
        """Yield the listed objects. verdict: yield only the objects with this verdict; None for all."""
        wanted = None if verdict is None else _word(Verdict, verdict)
        with self._open() as reader:
            yield from (line for line in reader.objects() if wanted is None or line.verdict == wanted)

    def findings(self, at_least: Severity | str = Severity.INFO) -> Iterator[FindingLine]:
        """Yield the findings of this severity or a worse one, those on the bucket itself first."""
        least = _word(Severity, at_least)
        with self._open() as reader:
            yield from (line for line in reader.findings() if line.severity.at_least(least))

    def undecided(self) -> Iterator[UndecidedLine]:
        """Yield the objects of which a fact could not be read."""
        with self._open() as reader:
            yield from reader.undecided()

    @property
    def plan(self) -> RunPlan:
        """The facts of the bucket and the configuration of the run."""
        with self._open() as reader:
            return reader.begun_with

    @property
    def last_key(self) -> str | None:
        """The last key that the run saved; None if it saved none."""
        with self._open() as reader:
            return reader.last_key

    def bucket_findings(self) -> list[FindingLine]:
        """Return the findings on the bucket itself."""
        with self._open() as reader:
            return RunResults(reader).bucket_findings()

    def results(self) -> Iterator[PastObject]:
        """Yield the result of each object, with its findings. It is quicker than objects(), which reads all facts."""
        with self._open() as reader:
            yield from RunResults(reader).objects()

    @property
    def report(self) -> str:
        """The path or URI of the run's page, report.html. A run that has not ended has none yet."""
        return f"{self.place.rstrip('/')}/{REPORT}"

    def frame(self, lines: Literal["objects", "findings"] = "objects") -> DataFrame:
        """Return all lines of one kind as a pandas DataFrame, in the order of the keys.

        Columns are flat. An object has those of ObjectLine but the ACL, and the members of its HEAD as `head_NAME`,
        which are None where the HEAD was not read (`head_state`). Raises UsageError if pandas is not installed.
        """
        if lines not in ("objects", "findings"):
            raise UsageError(f"{str(lines)[:100]!r} is not a kind of line: give objects or findings")
        try:
            import pandas  # only for a program that asks for a frame
        except ImportError as error:
            raise UsageError("a frame needs pandas, which is not installed: pip install pandas") from error
        rows = map(_object_row, self.objects()) if lines == "objects" else map(asdict, self.findings())
        names = _OBJECT_COLUMNS if lines == "objects" else FindingLine.__struct_fields__
        return pandas.DataFrame(rows, columns=list(names))

    def _repr_html_(self) -> str:
        """Return the run as a table for a notebook."""
        rows = {"run": self.run_id, "report": self.report}
        if (summary := self.summary) is not None:
            covered = summary.coverage
            rows |= {"target": summary.target.uri, "complete": "yes" if summary.complete else "no"}
            rows |= {"objects": f"{covered.listed:,}, {covered.undecided:,} of them could not be checked"}
            rows |= {name: f"{number:,}" for name, number in summary.verdicts.items() if number}
        cells = (f"<tr><th>{escape(name)}</th><td>{escape(visible(text))}</td></tr>" for name, text in rows.items())
        return f"<table>{''.join(cells)}</table>"

    def _open(self) -> AbstractContextManager[RunReader]:
        return folder_place.open_run(self.place, **self._connection)

    def _summed(self) -> Summary:
        if self.summary is None:
            raise UsageError(f"the run {self.place} has no summary yet: wait for its end, or resume it")
        return self.summary


def open_run(
    place: str | os.PathLike[str],
    *,
    endpoint_url: str | None = None,
    profile: str | None = None,
    region: str | None = None,
) -> Run:
    """Return the run in the folder `place`, a directory or s3:// URI. Raises UsageError if no run is there."""
    return Run(place, endpoint_url=endpoint_url, profile=profile, region=region)


def _object_row(line: ObjectLine) -> dict[str, Any]:
    head = line.head
    known = Head.__struct_fields__ if isinstance(head, Head) else ()
    lacking = head.unread if isinstance(head, PartialHead) else frozenset()
    row = {name: getattr(line, name) for name in _OBJECT_MEMBERS}
    row |= {f"head_{name}": getattr(head, name) for name in known if name not in lacking}
    if "head_metadata" in row:
        row["head_metadata"] = tuple(row["head_metadata"])  # the names: a run has values only if `keep_metadata` is set
    return row


def _word(kind: type[W], word: W | str) -> W:
    try:
        return kind(word)
    except ValueError:
        raise UsageError(f"{word!r} is not a {kind.__name__.lower()}: give {', '.join(kind)}") from None
