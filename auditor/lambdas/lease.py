"""Lease a bucket to one run at a time, by the file `lease.json` in the bucket's folder of the store of run folders."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from auditor.errors import OutputError, RunDamaged, RunTaken, UsageError
from auditor.model.dates import seconds_in_utc
from auditor.model.json_codec import JsonError, matching, plain, typed
from auditor.model.target import Target
from auditor.runs.paths import RUN_ID, bucket_path, later_run_id, parse_run_id, same_start, target_name
from auditor.runs.reading import RunReader
from auditor.runs.run_files import damaged
from auditor.runs.stores.base import Store

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Struct)

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
_RunId = Annotated[str, matching(RUN_ID.pattern, "is not a run ID")]


class _LeaseFile(Struct, frozen=True, kw_only=True):
    """The content of the file. run: the one that has the bucket. start: ID of the start of that run. until: time until
    which it has the bucket, in seconds since 1970. newest: ID of the newest run of each target, by the target's name.
    """

    run: _RunId = ""
    start: _RunId = ""
    until: float = 0.0
    newest: Mapping[str, _RunId] = field(default_factory=dict)


class BucketBusyError(RunTaken):
    """Raised if a bucket cannot be leased now, because a run of another start, or of another target, has it."""


class BucketLease:
    """The lease of a bucket for one target of a start, whose ID is `start`. All methods block.

    Every write is conditional: of two at once, one succeeds.
    """

    def __init__(self, store: Store, target: Target, start: str) -> None:
        self._store = store
        self._path = f"{bucket_path(target.bucket)}/{NAME}"
        self._bucket = target.bucket
        self._name = target_name(target) if target.whole else None  # a run over a key range is not continued later
        self._start = start

    def take(self, wanted: str, seconds: float, *, named: bool = False, anew: bool = False) -> tuple[str, bool]:
        """Lease the bucket. Return the run to work on, and True if an earlier invocation has begun it.

        It is the target's newest run if that is of this start, or is unfinished and not too old; else the run `wanted`.
        A run that begins gets a later ID if `wanted` does not sort after the newest run.

        seconds: time until the deadline of this invocation. named: True if a person names the run `wanted`, which is
        then the one to work on. anew: True to begin `wanted`, as the newest run cannot continue. Raises
        BucketBusyError, and RunDamaged for a file that cannot be read.
        """
        chosen = wanted, named

        def change(file: _LeaseFile, now: float) -> _LeaseFile:
            nonlocal chosen
            if (holder := self._holder(file, now, wanted)) is not None:
                raise BucketBusyError(holder)
            if anew or not named:
                chosen = self._chosen(file, wanted, now, anew=anew)
            return self._changed(file, chosen[0], now + seconds + AFTER_DEADLINE)

        self._change(change)
        run, begun = chosen
        if begun and not named and not same_start(run, wanted):
            log.info("run %s of an earlier start is not finished: this start resumes it", run)
        return run, begun

    def renew(self, run: str, seconds: float) -> None:
        """Renew the lease of a run that many invocations work on, if it ends before this one's deadline.

        seconds: time until that. Raises RunTaken if a run of another start has the bucket.
        """

        def change(file: _LeaseFile, now: float) -> _LeaseFile | None:
            if (holder := self._holder(file, now, run)) is not None:
                raise RunTaken(f"{holder}: this invocation stops")
            needed = now + seconds + AFTER_DEADLINE
            if (file.start, file.run) == (self._start, run) and file.until >= needed:
                return None
            return self._changed(file, run, needed + BETWEEN_RENEWALS)

        try:
            self._change(change)
        except (RunDamaged, RunTaken):
            raise
        except OutputError as error:  # many invocations renew it at once, and one is enough
            log.warning("others renew the lease of the bucket: %s", error)

    def give_back(self, run: str, *, machine: bool = False) -> None:
        """End the lease. If the store does not answer, the lease ends by itself soon after the deadline. machine: True
        to keep the bucket for the state machine, which continues the run.
        """

        def change(file: _LeaseFile, now: float) -> _LeaseFile | None:
            if (file.start, file.run) != (self._start, run):
                return None  # the lease ended before, and another start has the bucket
            return self._changed(file, run, now + FOR_MACHINE if machine else 0.0)

        try:
            self._change(change)
        except OutputError as error:
            log.warning("the lease of the bucket stays until the deadline: %s", error)

    def _change(self, change: Callable[[_LeaseFile, float], _LeaseFile | None]) -> None:
        """Change the file. change: gets its content and the present time."""
        change_file(self._store, self._path, _LeaseFile, lambda file: change(file, time.time()))

    def _newest(self, file: _LeaseFile) -> str:
        """Return the ID of the target's newest run; "" if there is none."""
        return "" if self._name is None else file.newest.get(self._name, "")

    def _holder(self, file: _LeaseFile, now: float, run: str) -> str | None:
        """Return a sentence on the run that keeps this one from the bucket; None if no run does. run: this one."""
        until = min(file.until, now + LONGEST)
        mine = file.start == self._start and file.run in (run, self._newest(file))
        if until <= now or mine:
            return None
        end = seconds_in_utc(datetime.fromtimestamp(until, UTC))
        return f"run {file.run} has the bucket, until {end} at the latest"

    def _chosen(self, file: _LeaseFile, wanted: str, now: float, *, anew: bool) -> tuple[str, bool]:
        """Return what take() returns for a run that no person names."""
        newest = self._newest(file)
        if not anew and self._name is None and (file.start, file.run) == (self._start, wanted):
            return wanted, True  # a range of keys
        if newest and not anew:
            young = now - parse_run_id(newest).timestamp() <= OLDEST
            if same_start(newest, wanted) or (young and not RunReader(self._store, self._bucket, newest).complete):
                return newest, True
        return later_run_id(wanted, newest), False

    def _changed(self, file: _LeaseFile, run: str, until: float) -> _LeaseFile:
        newest = dict(file.newest)
        if self._name is not None and run >= self._newest(file):
            newest[self._name] = run
        return replace(file, run=run, start=self._start, until=until, newest=newest)


def change_file(store: Store, path: str, kind: type[T], change: Callable[[T], T | None]) -> None:
    """Change a JSON file that many invocations write, or make it. Blocks.

    change: gets the content, of the type `kind`, and returns the new one, or None to leave the file as it is. It may
    raise RunTaken. It is called again if another process writes the file in between. Raises RunDamaged for a file that
    cannot be read.
    """
    refused: RunTaken | None = None

    def changed(value: dict[str, Any] | None) -> dict[str, Any] | None:
        nonlocal refused
        refused = None
        try:
            new = change(typed(kind, value or {}))
        except (JsonError, UsageError) as error:  # such as a run of the 30th of February
            raise damaged(store.uri(path), error, "move it away, and start again") from error
        except RunTaken as taken:  # raised below, because the store may have begun with an older content
            refused, new = taken, None
        found: dict[str, Any] | None = None if new is None else plain(new)
        return found

    store.update_json(path, changed)
    if refused is not None:
        raise refused
