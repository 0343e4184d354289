"""Claim a bucket for one run, by a file in the store of run folders, so that only one invocation at a time audits the
bucket.

Lambda may deliver an event twice: the second invocation finds in this file that the run exists.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.errors import OutputError, RunComplete, RunGivenUp, RunTaken
from auditor.lambdas.claim_file import ClaimBusy, claim_in
from auditor.model.dates import seconds_in_utc
from auditor.model.target import Target
from auditor.runs.paths import bucket_path, later_run_id, parse_run_id, same_start, target_name
from auditor.runs.stores.base import Store

log = logging.getLogger(__name__)

AFTER_DEADLINE: Final = 5.0
"""Seconds from the deadline of an invocation to the end of its claim. By then, Lambda has killed the invocation."""
FOR_NEXT_HOP: Final = 600.0
"""Seconds for which a bucket is kept for the next invocation of its run. Lambda starts it in seconds, unless it
throttles."""
BETWEEN_KEEPS: Final = 300.0
"""Seconds by which a claim is kept longer than an invocation needs, so that not every invocation has to write it."""
OLDEST: Final = 3 * 86_400.0
"""Age in seconds from which an unfinished run is not continued: its first facts are too old to be in one report with
new ones."""
AGAIN: Final = 86_400.0
"""Largest difference in seconds between the run IDs that two deliveries of one event ask for.

Lambda delivers an event again within six hours (Lambda Developer Guide, "How Lambda handles errors and retries with
asynchronous invocation")."""
STARTS: Final = 20
"""Largest number of starts of ended runs that the file names for a target."""


class BucketBusy(ClaimBusy):
    """Raised if the bucket cannot be claimed now, because another run has it."""


class Claim(Struct, frozen=True):
    """A claimed bucket, and the run to work on.

    begun: True if an earlier invocation began the run. untold: True if the run's end may not have been reported yet.
    fruitless: number of invocations in a row, up to the one before this, that made no progress.
    """

    run: str
    begun: bool
    untold: bool = False
    fruitless: int = 0


class Claims:
    """The claims on a bucket, in the file `bucket=BUCKET/running.json` of a store. All methods block.

    The file names the run that has the bucket, the run's hop (number of its invocations so far), the invocation that
    works on the run, and the time at which the claim ends. For each target, it names the newest run, tells whether the
    run's end is reported, and names the starts that worked on it by the run ID that each asked for (`starts`); likewise
    the last starts whose runs ended before the newest run began, with these runs (`before`). Every write is
    conditional: only one of two writes at the same time succeeds.
    """

    def __init__(
        self,
        store: Store,
        target: Target,
        hop: int,
        clock: Callable[[], float] = time.time,
        *,
        request: str | None = None,
    ) -> None:
        """request: name of the claim's holder, if several invocations work under one claim; None for a new name."""
        self._store = store
        self._path = f"{bucket_path(target.bucket)}/running.json"
        self._name = target_name(target) if target.whole else None  # a run over a key range is never continued later
        self.request = request or secrets.token_hex(8)  # Lambda's own ID may come twice
        self._hop = hop
        self._clock = clock

    def take(self, wanted: str, *, follows: bool, seconds: float, anew: bool = False) -> Claim:
        """Claim the bucket, and return the run to work on: the target's newest run or, if that one is finished or too
        old, the run `wanted`. A run that begins gets a later ID if `wanted` does not sort after the newest run.

        follows: True if the event names the run `wanted`, which is then the one to work on. seconds: time left until
        the invocation's deadline. anew: True to begin `wanted`, as the newest run cannot continue. Raises BucketBusy
        if another run has the bucket; RunTaken if another invocation works on the event's run, or if the run was given
        up for a newer one; RunComplete if the event's run is finished, also if another run has followed it.
        """
        parse_run_id(wanted)

        def choose(value: Mapping[str, Any]) -> tuple[dict[str, Any], Claim]:
            now = self._clock()
            before = value.get("holder") or {}
            self._check_holder(before, wanted, follows, now)
            of_target = (value.get("runs") or {}).get(self._name) or {}
            found = self._chosen({} if anew else of_target, wanted, follows, now)
            if anew or not found.begun:
                _check_new(wanted, of_target, anew)
            if before.get("passed") and before.get("run") == found.run:
                found = replace(found, fruitless=int(before.get("fruitless", 0)))
            until = now + seconds + AFTER_DEADLINE
            holder = {"run": found.run, "hop": self._hop, "request": self.request, "until": until}
            start = None if follows else wanted
            return self._changed(value, holder, found.run, ended=False, start=start), found

        return claim_in(self._store, self._path, choose)

    def give_back(
        self, run: str, *, ended: bool = False, dropped: bool = False, passed_on: bool = False, fruitless: int = 0
    ) -> None:
        """End the claim on the bucket, if this invocation still has it. If the store does not answer, the claim ends by
        itself after the deadline.

        ended: True if the run's end is reported. dropped: True if the run cannot continue. passed_on: True if the next
        invocation continues the run, so that the bucket is kept for it. fruitless: number of invocations in a row,
        this one included, that made no progress.
        """

        def change(value: dict[str, Any] | None) -> dict[str, Any] | None:
            if value is None or (value.get("holder") or {}).get("request") != self.request:
                return None  # the claim ended before, and another invocation has the bucket
            until = self._clock() + FOR_NEXT_HOP
            holder = {"run": run, "hop": self._hop + 1, "request": self.request, "passed": True, "until": until}
            holder["fruitless"] = fruitless
            return self._changed(value, holder if passed_on else None, run, ended=ended, dropped=dropped)

        try:
            self._store.update_json(self._path, change)
        except OutputError as error:
            log.warning("the claim on the bucket stays until the deadline: %s", error)

    def keep(self, run: str, seconds: float, *, at_work: bool = False) -> None:
        """Keep the claim of a run that many invocations work on, until some minutes after this one's deadline.

        run: ID of the run. seconds: time left until the deadline. at_work: True if this invocation makes calls under
        its share of max_rate: while one might, no other start gets the bucket, not even one that follows the run.
        Raises RunTaken if another start has the bucket.
        """

        def choose(value: Mapping[str, Any]) -> tuple[dict[str, Any] | None, None]:
            now, holder = self._clock(), value.get("holder") or {}
            until, mine = float(holder.get("until", 0.0)), holder.get("request") == self.request
            if until > now and not (mine and holder.get("run") == run):
                raise RunTaken(f"run {holder.get('run')} has the bucket: this invocation stops")
            working = at_work or bool(holder.get("at_work"))
            kept = mine and bool(holder.get("passed")) and working == bool(holder.get("at_work"))
            if kept and until > now + seconds + AFTER_DEADLINE:
                return None, None  # another invocation has kept it already
            later = now + seconds + AFTER_DEADLINE + BETWEEN_KEEPS
            kept_on = {"run": run, "hop": self._hop, "request": self.request, "passed": True, "until": later}
            return self._changed(value, kept_on | ({"at_work": True} if working else {}), run, ended=False), None

        claim_in(self._store, self._path, choose)

    def _check_holder(self, holder: Mapping[str, Any], wanted: str, follows: bool, now: float) -> None:
        until = float(holder.get("until", 0.0))
        if until <= now or holder.get("request") == self.request:
            return
        run, passed = str(holder.get("run")), bool(holder.get("passed"))
        same = same_start(run, wanted)
        if not same or holder.get("at_work") or (follows and not passed and int(holder.get("hop", 0)) < self._hop):
            raise BucketBusy(
                f"run {run} has the bucket, until {seconds_in_utc(datetime.fromtimestamp(until, UTC))} at the latest"
            )
        if not (follows and passed):
            raise RunTaken(f"run {run} is running in another process: this one stops")

    def _chosen(self, newest: Mapping[str, Any], wanted: str, follows: bool, now: float) -> Claim:
        run, ended = str(newest.get("run", "")), bool(newest.get("ended"))
        if follows and self._hop and run > wanted:
            raise RunGivenUp(f"run {wanted} was given up for the newer run {run}: this one stops")
        if self._hop and run and run < wanted:  # a start that waited for its turn: no hop has begun its run
            follows = False
        if ended and (run == wanted or (same_start(run, wanted) and not follows)):
            raise RunComplete(f"run {run} is complete: there is nothing to resume")
        if follows:
            return Claim(wanted, True, untold=run == wanted)
        if not newest or ended or now - parse_run_id(run).timestamp() > OLDEST:
            return Claim(later_run_id(wanted, run), False)
        return Claim(run, True, untold=True)

    def _changed(
        self,
        value: Mapping[str, Any],
        holder: Mapping[str, Any] | None,
        run: str,
        *,
        ended: bool,
        dropped: bool = False,
        start: str | None = None,
    ) -> dict[str, Any]:
        runs = dict(value.get("runs") or {})
        if self._name is not None:
            newest = {"run": "", "ended": True, "starts": [], "before": {}, **(runs.get(self._name) or {})}
            if dropped:
                newest |= {"run": "", "ended": True, "starts": []}
            elif run >= newest["run"]:
                if run != newest["run"]:
                    newest |= {"starts": [], "before": _ended_starts(newest)}
                newest |= {"run": run, "ended": ended}
            if start is not None and start not in newest["starts"]:
                newest["starts"] = [*newest["starts"], start][-STARTS:]
            runs[self._name] = newest
        return {**value, "holder": holder, "runs": runs}


def _ended_starts(newest: Mapping[str, Any]) -> dict[str, str]:
    """Return the last starts whose runs have ended, by the IDs that they asked for. newest: of the newest run."""
    ended = dict(newest.get("before") or {})
    for asked in newest.get("starts") or () if newest.get("ended") else ():
        ended.setdefault(asked, str(newest["run"]))
    return dict(list(ended.items())[-STARTS:])


def _check_new(wanted: str, newest: Mapping[str, Any], anew: bool) -> None:
    """Raise RunComplete if a new run is wanted by a start whose run has ended: its event has come again.

    wanted: the ID that the start asks for. newest: of the newest run. anew: True if it cannot continue, so that the
    ID is a later one.
    """
    for asked, run in (newest.get("before") or {} if anew else _ended_starts(newest)).items():
        between = parse_run_id(asked) - parse_run_id(wanted)
        if same_start(asked, wanted) and (anew or abs(between.total_seconds()) <= AGAIN):
            raise RunComplete(f"run {run} is complete: there is nothing to resume")
