"""Make the summary and the page of a run: of one that ends, is judged again, or was killed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from auditor.config.settings import Settings
from auditor.model.access import Verdict
from auditor.model.exception import ExceptionUse
from auditor.model.finding import RuleUndecided, Severity
from auditor.model.rollup import RollUps
from auditor.model.summary import (
    AcceptedHoles,
    CallCounts,
    Changes,
    Coverage,
    ExceptedCounts,
    Resume,
    Summary,
    UnreadCount,
)
from auditor.model.target import Target
from auditor.reports.summary import audiences_of, hashing_of, kept_of, kept_words, largest_first
from auditor.rules.exceptions import Exceptions
from auditor.runs.run_plan import RunPlan
from auditor.runs.tally import Tally
from auditor.verdict.trust import Trust


class RunEnd(Struct, frozen=True, kw_only=True):
    """The facts of a run at its end, of which its summary is made.

    run: its ID. out: URI of its folder. settings: those by which it judged. now: the time by which exceptions hold, in
    ISO 8601 in UTC. tally: its counts. rules_undecided: the rules that lacked a fact of the bucket. algorithms: the
    wanted digests that the summary counts; None without a ledger. not_looked_at: phrases on the things that it did not
    look at. seconds: its duration. resume: the point from which it can be resumed; None for a complete run.
    """

    run: str
    out: str
    target: Target
    settings: Settings
    now: str
    tally: Tally
    rules_undecided: Sequence[RuleUndecided]
    algorithms: Sequence[str] | None
    not_looked_at: Sequence[str]
    seconds: float
    resume: Resume | None
    changes: Changes = Changes()


def summarize(end: RunEnd) -> Summary:
    """Make the summary of a run from its present counts. Further counting does not change the summary.

    Raises ValueError if the counts do not add up.
    """
    settings, tally, target, complete = end.settings, end.tally, end.target, end.resume is None
    tally.check(hashing=end.algorithms is not None)
    empty = target.lists_nothing(tally.coverage["listed"] + tally.coverage["delete_markers"])
    undecided, kept = tally.rules_undecided(end.rules_undecided), kept_of(tally)
    accepted_rules, exceptions = _exceptions(end, undecided)
    unread = largest_first(tally.unread).items()
    return Summary(
        run=end.run,
        out=end.out,
        target=target,
        engine=settings.engine,
        complete=complete,
        nothing_listed=complete and empty and not settings.allow_empty,
        coverage=Coverage(**tally.coverage),
        verdicts=dict(tally.verdicts),
        audiences=audiences_of(tally),
        trust_unused=Trust.of(settings.trusted).unused(tally.trusted),
        findings=dict(tally.findings),
        rules=largest_first(tally.rules),
        rules_undecided=undecided,
        unread=tuple(UnreadCount(*reason.partition(" ")[::2], number) for reason, number in unread),
        accepted=AcceptedHoles(tally.accepted, accepted_rules, largest_first(tally.failed_accepted)),
        changes=end.changes,
        excepted=ExceptedCounts(
            {verdict.value: tally.excepted_verdicts.get(verdict, 0) for verdict in Verdict},
            {severity.value: tally.excepted_findings.get(severity, 0) for severity in Severity},
            tally.accepted,
        ),
        exceptions=exceptions,
        hashing=None if end.algorithms is None else hashing_of(tally, end.algorithms),
        healed=tally.healed,
        calls=CallCounts(**tally.calls),
        kept=kept,
        not_looked_at=tuple(dict.fromkeys((*end.not_looked_at, *kept_words(kept)))),
        seconds=round(end.seconds, 1),
        resume=end.resume,
    )


def _exceptions(end: RunEnd, undecided: Sequence[RuleUndecided]) -> tuple[int, tuple[ExceptionUse, ...]]:
    """Return the number of these undecided rules that are accepted, and all exceptions with their states."""
    exceptions, tally = Exceptions(end.settings.exceptions, end.target.bucket, end.now[:10]), end.tally
    rules = exceptions.of_rules(undecided)
    used = [*rules.used, *rules.expired]
    return len(rules.used), exceptions.states(
        lambda name: tally.exceptions.get(name, 0) + used.count(name),
        lambda name: tally.shadowed.get(name, 0) + rules.shadowed.count(name),
    )


def page_of(summary: Summary, bucket: RunPlan, rollups: RollUps, index: str | None = None) -> str:
    """Return the page of a run as HTML. bucket: its run.json. index: relative address of the index page; None if
    there is none. The page's commands have the whole path of the run's folder.
    """
    from auditor.reports.page import build, render  # imports Jinja

    place = summary.out if "://" in summary.out else str(Path(summary.out).absolute())
    whole = replace(summary, out=place)
    return render.render("audit.html", build.page_data(whole, bucket, rollups, index))
