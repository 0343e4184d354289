"""Put the alerts of a start of several targets together: one start sends one alert."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from auditor.model.alert import LONGEST, Alert, AlertSection, Phrase, Quoted, failure_alert
from auditor.reports.alert import section_of
from auditor.text import counted

_WHOLE: Final = 3
"""Largest number of runs whose alerts are in the one alert with all their sections; of more, each is one line."""
_TOLD: Final = 20
"""Largest number of items of a list."""


def start_alert(targets: int, alerts: Sequence[Alert], failures: Collection[str]) -> Alert | None:
    """Return the one alert on a start of named targets; None if it is quiet.

    targets: number of targets. alerts: those of its runs. failures: the sentence of each target that failed, and of
    each message that could not be sent.
    """
    if not alerts and not failures:
        return None
    if targets == 1 and failures and not alerts:
        return failure_alert("audit", "; ".join(failures))
    if len(alerts) == 1 and not failures:
        return alerts[0]
    words = "; ".join(
        words
        for number, words in (
            (len(failures), counted(len(failures), "failure")),
            (len(alerts), f"{counted(len(alerts), 'run')} to look at"),
        )
        if number
    )
    sections = [AlertSection((f"The audit of {counted(targets, 'target')}: {words}.",))]
    if failures:
        missed: list[Phrase] = [(Quoted(one, LONGEST),) for one in failures]
        sections.append(section_of(("Failures:",), missed, _TOLD, "failure"))
    if len(alerts) <= _WHOLE:
        sections += [section for alert in alerts for section in alert.sections]
    else:
        sections.append(section_of(("Runs:",), [alert.sections[0].heading for alert in alerts], _TOLD, "run"))
    return Alert(title=(f"S3 audit of {counted(targets, 'target')}: {words}",), sections=tuple(sections))
