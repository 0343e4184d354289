"""Make the part of a summary on the changes since the last complete run, from the counts of a tally."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from auditor.model.summary import Cause, ChangeKind, Changes, Summary
from auditor.reports.causes import WORDS
from auditor.runs.tally import Tally

NO_RUN = "there is no earlier complete run of the target"
UNREADABLE = "the last run, {run}, could not be read"
CUT = "the listing did not reach its end: what lies behind its last key counts as unread"


def changes_since(
    tally: Tally, against: str, last: Summary | None, causes: Iterable[str], *, complete: bool
) -> Changes:
    """Return the changes since the run `against`. tally: has counted them. last: the summary of that run; None if it
    could not be read. complete: True if the listing reached its end.
    """
    if tally.uncompared or last is None:
        return Changes(why_not=UNREADABLE.format(run=against))
    if complete:
        return changes_of(tally.changes, against, None, causes)
    return changes_of(uncompared(tally, last), against, CUT, causes)


def changes_of(
    counts: Mapping[str, int], against: str | None, why_not: str | None = None, causes: Iterable[str] = ()
) -> Changes:
    """Return the changes for a summary. counts: as Tally.changes has them. causes: the causes that changed."""
    classes: dict[str, int] = {}
    tables: dict[str, dict[str, dict[str, int]]] = {"verdict": {}, "finding": {}}
    for name in sorted(counts, key=_order):
        what, word, *rest = name.split(" ")
        if what in tables:
            kind = rest[0]
            classes[kind] = classes.get(kind, 0) + counts[name]
            tables[what].setdefault(word, {})[kind] = counts[name]
    moved = [Cause(WORDS[cause], counts.get(f"cause {cause}", 0)) for cause in causes]
    return Changes(
        against=against,
        why_not=why_not,
        classes={kind.value: classes[kind] for kind in ChangeKind if kind in classes},
        verdicts=tables["verdict"],
        findings=tables["finding"],
        causes=tuple(sorted(moved, key=lambda cause: (-cause.objects, cause.change))),
    )


def uncompared(tally: Tally, last: Summary) -> dict[str, int]:
    """Return the counts of changes for a listing that did not reach its end. The results of the last run that it did
    not reach count as unread.
    """
    found = dict(tally.changes)
    open_ = {f"verdict {word}": number for word, number in last.verdicts.items() if word != "private"}
    for name, number in (*open_.items(), *((f"finding {word}", n) for word, n in last.findings.items())):
        if (rest := number - tally.compared.get(name, 0)) > 0:
            found[f"{name} {ChangeKind.UNREAD}"] = found.get(f"{name} {ChangeKind.UNREAD}", 0) + rest
    return found


def _order(name: str) -> tuple[int, str]:
    kinds = list(ChangeKind)
    last = name.rpartition(" ")[2]
    return (kinds.index(ChangeKind(last)) if last in kinds else len(kinds), name)
