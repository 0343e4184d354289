"""A run as Python programs use it: its summary, and its lines, which are read only when they are asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TypeVar

from auditor.errors import UsageError
from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.run_lines import FindingLine, ObjectLine, PastObject, UndecidedLine
from auditor.model.summary import Coverage, Summary
from auditor.runs import folder_place
from auditor.runs.bucket_file import BucketFile
from auditor.runs.past import PastRun
from auditor.runs.reading import RunReader

W = TypeVar("W", Verdict, Severity)


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
        self._connection = {"endpoint_url": endpoint_url, "profile": profile, "region": region}
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
    def bucket_file(self) -> BucketFile:
        """The facts of the bucket and the configuration of the run."""
        with self._open() as reader:
            return reader.begun_with

    @property
    def last_key(self) -> str | None:
        """The last key that the run saved; None if it saved none."""
        with self._open() as reader:
            return reader.checkpoint.start_after if reader.checkpoint else None

    def bucket_findings(self) -> list[FindingLine]:
        """Return the findings on the bucket itself."""
        with self._open() as reader:
            return PastRun(reader).bucket_findings()

    def results(self) -> Iterator[PastObject]:
        """Yield the result of each object, with its findings. It is quicker than objects(), which reads all facts."""
        with self._open() as reader:
            yield from PastRun(reader).objects()

    def _open(self) -> AbstractContextManager[RunReader]:
        return folder_place.open_run(self.place, **self._connection)

    def _summed(self) -> Summary:
        if self.summary is None:
            raise UsageError(f"the run {self.place} has no summary yet: wait for its end, or go on with it")
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


def _word(kind: type[W], word: W | str) -> W:
    try:
        return kind(word)
    except ValueError:
        raise UsageError(f"{word!r} is no {kind.__name__.lower()}: give {', '.join(kind)}") from None
