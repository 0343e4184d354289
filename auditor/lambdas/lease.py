"""Lease a bucket to one run at a time, by the file `lease.json` in the bucket's folder of the store of run folders."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from auditor.errors import OutputError, RunDamaged, RunTaken, UsageError
from auditor.model.dates import seconds_in_utc
from auditor.model.json_codec import JsonError, plain, typed
from auditor.model.target import Target
from auditor.runs.paths import bucket_path, later_run_id, parse_run_id, same_start, target_name
from auditor.runs.reading import RunReader
from auditor.runs.run_files import damaged
from auditor.runs.stores.base import Store

log = logging.getLogger(__name__)

NAME: Final = "lease.json"
AFTER_DEADLINE: Final = 5.0
"""Seconds from the deadline of an invocation to the end of its lease. By then, Lambda has killed the invocation."""
FOR_MACHINE: Final = 1200.0
"""Seconds for which a lease is kept for the next invocation of its run. Step Functions makes it within seconds, unless
Lambda throttles, or other runs of the start begin first."""
BETWEEN_RENEWALS: Final = 300.0
"""Seconds by which a lease is renewed for longer than an invocation needs, so that not every invocation has to write
it."""
OLDEST: Final = 3 * 86_400.0
"""Age in seconds from which an unfinished run is not continued: its first facts are too old to be in one report with
new ones."""


LONGEST: Final = 3600.0
"""Largest number of seconds that a lease lasts from now on. A later end in the file is a clock's fault."""


class _LeaseFile(Struct, frozen=True, kw_only=True):
    """The content of the file. run: the one that has the bucket. start: ID of the start of that run. until: time until
    which it has the bucket, in seconds since 1970. newest: ID of the newest run of each target, by the target's name.
    """

    run: str = ""
    start: str = ""
    until: float = 0.0
    newest: Mapping[str, str] = field(default_factory=dict)


class BucketBusy(Exception):  # noqa: N818 - the start waits, and no user sees it
    """Raised if a bucket cannot be leased now, because a run of another start, or of another target, has it."""


class Leased(Struct, frozen=True):
    """A leased bucket, and the run to work on. begun: True if an earlier invocation began the run. same: True if that
    was of this start.
    """

    run: str
    begun: bool
    same: bool = False


class BucketLease:
    """The lease of a bucket for one target of a start. All methods block.

    The file has the run that has the bucket, the start of that run, the time until which it has the bucket, in seconds
    since 1970, and the newest run of each target. Every write is conditional: of two at once, one succeeds.
    """

    def __init__(self, store: Store, target: Target, start: str, clock: Callable[[], float] = time.time) -> None:
        """start: ID of the start."""
        self._store = store
        self._target = target
        self._path = f"{bucket_path(target.bucket)}/{NAME}"
        self._name = target_name(target) if target.whole else None  # a run over a key range is not continued later
        self._start = start
        self._clock = clock

    def take(self, wanted: str, seconds: float, *, named: bool = False, anew: bool = False) -> Leased:
        """Lease the bucket, and return the run to work on: the target's newest run if that is of this start, or is
        unfinished and not too old; else the run `wanted`. A run that begins gets a later ID if `wanted` does not sort
        after the newest run.

        seconds: time until the deadline of this invocation. named: True if a person names the run `wanted`, which is
        then the one to work on. anew: True to begin `wanted`, as the newest run cannot continue. Raises BucketBusy, and
        RunDamaged for a file that cannot be read.
        """
        found: list[Leased] = []

        def change(file: _LeaseFile, now: float) -> _LeaseFile | str | None:
            found.clear()
            if (holder := self._holder(file, now, wanted)) is not None:
                return holder
            found.append(self._chosen(file, wanted, now, named=named, anew=anew))
            return self._changed(file, found[0].run, now + seconds + AFTER_DEADLINE)

        if (busy := self._update(change)) is not None:
            raise BucketBusy(busy)
        return found[0]

    def renew(self, run: str, seconds: float) -> None:
        """Renew the lease of a run that many invocations work on, if it ends before this one's deadline.

        seconds: time until that. Raises RunTaken if a run of another start has the bucket.
        """

        def change(file: _LeaseFile, now: float) -> _LeaseFile | str | None:
            if (holder := self._holder(file, now, run)) is not None:
                return holder
            needed = now + seconds + AFTER_DEADLINE
            if (file.start, file.run) == (self._start, run) and file.until >= needed:
                return None
            return self._changed(file, run, needed + BETWEEN_RENEWALS)

        try:
            taken = self._update(change)
        except RunDamaged:
            raise
        except OutputError as error:  # many invocations renew it at once, and one is enough
            log.warning("others renew the lease of the bucket: %s", error)
            return
        if taken is not None:
            raise RunTaken(f"{taken}: this invocation stops")

    def keep_for_machine(self, run: str) -> None:
        """Keep the bucket for the state machine, which continues the run."""
        self._end(run, FOR_MACHINE)

    def give_back(self, run: str) -> None:
        """End the lease. If the store does not answer, the lease ends by itself soon after the deadline."""
        self._end(run, None)

    def _end(self, run: str, seconds: float | None) -> None:
        def change(file: _LeaseFile, now: float) -> _LeaseFile | None:
            if (file.start, file.run) != (self._start, run):
                return None  # the lease ended before, and another start has the bucket
            return self._changed(file, run, 0.0 if seconds is None else now + seconds)

        try:
            self._update(change)
        except OutputError as error:
            log.warning("the lease of the bucket stays until the deadline: %s", error)

    def _update(self, change: Callable[[_LeaseFile, float], _LeaseFile | str | None]) -> str | None:
        """Change the file. change: gets its content and the present time, and returns the new content, or None to leave
        it, or the reason for which it must stay. Return that reason.
        """
        refused: list[str] = []

        def changed(value: dict[str, Any] | None) -> dict[str, Any] | None:
            refused.clear()
            new = change(self._read(value), self._clock())
            if isinstance(new, str):
                refused.append(new)
            found: dict[str, Any] | None = plain(new) if isinstance(new, _LeaseFile) else None
            return found

        self._store.update_json(self._path, changed)
        return refused[0] if refused else None

    def _read(self, value: dict[str, Any] | None) -> _LeaseFile:
        try:
            file = typed(_LeaseFile, value or {})
            for run in filter(None, (file.run, file.start, *file.newest.values())):
                parse_run_id(run)
        except (JsonError, UsageError) as error:
            raise damaged(self._store.uri(self._path), error, "move it away, and start again") from error
        return file

    def _holder(self, file: _LeaseFile, now: float, run: str) -> str | None:
        """Return a sentence on the run that keeps this one from the bucket; None if no run does. run: this one."""
        until = min(file.until, now + LONGEST)
        if until <= now:
            return None
        newest = file.newest.get(self._name) if self._name is not None else None
        if file.start == self._start and file.run in (run, newest):
            return None
        end = seconds_in_utc(datetime.fromtimestamp(until, UTC))
        return f"run {file.run} has the bucket, until {end} at the latest"

    def _chosen(self, file: _LeaseFile, wanted: str, now: float, *, named: bool, anew: bool) -> Leased:
        newest = file.newest.get(self._name, "") if self._name is not None else ""
        if named and not anew:
            return Leased(wanted, True, same_start(newest, wanted))
        if (file.start, file.run) == (self._start, wanted) and self._name is None and not anew:
            return Leased(wanted, True, True)  # a range of keys
        if anew or not newest:
            return Leased(later_run_id(wanted, newest), False)
        if same_start(newest, wanted):
            return Leased(newest, True, True)
        old = now - parse_run_id(newest).timestamp() > OLDEST
        if old or RunReader(self._store, self._target.bucket, newest).complete:
            return Leased(later_run_id(wanted, newest), False)
        return Leased(newest, True)

    def _changed(self, file: _LeaseFile, run: str, until: float) -> _LeaseFile:
        newest = dict(file.newest)
        if self._name is not None and run >= newest.get(self._name, ""):
            newest[self._name] = run
        return replace(file, run=run, start=self._start, until=until, newest=newest)
