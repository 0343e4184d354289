"""Begin to compare a run with the target's last complete run."""

from __future__ import annotations

from auditor.audit.context import RunContext
from auditor.audit.kind import RunKind
from auditor.audit.standing import Standings
from auditor.reports.compare import judged_by
from auditor.runs.paths import began_at
from auditor.runs.reading import RunReader
from auditor.runs.tally import Tally


def open_standings(run: RunContext, kind: RunKind, tally: Tally) -> Standings:
    """Return the standings, which compare with the last complete run. Blocks. tally: receives the counts of changes."""
    if run.earlier is not None:
        run.earlier.prepare()
    start = run.saved_key
    done: list[str | None] = [None]
    if start is not None and run.target.versions:
        written = RunReader(run.places.store, run.target.bucket, run.run_id)
        done = [line.version_id for line in written.of_key(start, kind.range_id)]
    judged, file = judged_by(kind.rules, run.plan), kind.bucket_file(run, 0)
    standings = Standings(began_at(run.run_id), tally, run.earlier, judged, start, done, file, run.target)
    standings.open()
    return standings
