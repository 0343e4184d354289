"""Make the alert and the event on a verification out of its summary: counts and the prefix, never keys."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from auditor.model.alert import Alert, AlertSection, Quoted, RunEvent
from auditor.model.digest import FAIL_ON, VerifyOutcome
from auditor.model.json_codec import plain
from auditor.reports.channel_texts import event_detail, short
from auditor.text import harmless
from auditor.verify.summary import VerifySummary, exit_code

VERIFICATION_FINISHED: Final = "S3 Verification Finished"
_CODES: Final = 20
_HOLE: Final = 600
"""Largest number of characters of a hole's words in an alert."""


def verify_alert(summary: VerifySummary, fail_on: Collection[VerifyOutcome] = FAIL_ON) -> Alert | None:
    """Return the alert on a finished verification; None if nothing is wrong.

    fail_on: the outcomes of objects that count as wrong.
    """
    wrong = _wrong(summary, fail_on)
    if not summary.holes and not any(name in fail_on for name in wrong):
        return None
    counts = ", ".join(f"{count:,} {name}" for name, count in wrong.items()) or "nothing wrong"
    target = summary.target
    name = Quoted(f"s3://{target.bucket}/{target.prefix}")
    holes: tuple[str | Quoted, ...] = ()
    if summary.holes:
        holes = (" It has holes: ", Quoted("; ".join(map(harmless, summary.holes)), _HOLE), ".")
    return Alert(
        title=("S3 verification of ", Quoted(target.bucket), f": {counts}{'; holes' if summary.holes else ''}"),
        sections=(
            AlertSection(("The verification of ", name, f" found {counts}.", *holes)),
            AlertSection((Quoted(outcome_sentence(summary), _HOLE),)),
            AlertSection(("Report: ", Quoted(f"{summary.out}/summary.json", 400))),
        ),
        bucket=target.bucket,
        run=summary.run,
    )


def outcome_sentence(summary: VerifySummary) -> str:
    """Return the end of the verification and its outcomes in one line."""
    counts = ", ".join(f"{name} {count:,}" for name, count in summary.outcomes.items() if count)
    end = "complete" if summary.resume is None else f"not complete ({summary.resume.reason})"
    return f"{end}: listed {summary.listed:,}, only in the ledger {summary.ledger_only:,}; {counts or 'nothing'}"


def verify_event(summary: VerifySummary, fail_on: Collection[VerifyOutcome] = FAIL_ON) -> RunEvent:
    """Return the event on a finished verification. fail_on: as for verify_alert()."""
    wrong = {name: count for name, count in _wrong(summary, fail_on).items() if name in fail_on}
    holes = [short(hole) for hole in summary.holes]
    words = [*(f"{count:,} {name}" for name, count in wrong.items()), *holes]
    detail = {
        **event_detail(summary.run, summary.target, f"{summary.out}/summary.json", words),
        "engine": summary.engine,
        "complete": summary.complete,
        "exit_code": exit_code(summary, fail_on),
        "listed": summary.listed,
        "ledger_only": summary.ledger_only,
        "delete_markers": summary.delete_markers,
        "outcomes": dict(summary.outcomes),
        "unreadable": [{"code": short(one.code), "count": one.count} for one in summary.unreadable[:_CODES]],
        "read": plain(summary.read),
        "recorded": summary.recorded,
        "healed": summary.healed,
        "holes": holes,
        "seconds": summary.seconds,
    }
    return RunEvent(VERIFICATION_FINISHED, detail)


def _wrong(summary: VerifySummary, fail_on: Collection[VerifyOutcome]) -> dict[str, int]:
    """Return the number of objects by outcome, of the outcomes that are wrong or could not be found out."""
    named = (*fail_on, VerifyOutcome.UNREADABLE, VerifyOutcome.LEDGER_FAULT)
    return {name.value: summary.outcomes[name] for name in named if summary.outcomes[name]}
