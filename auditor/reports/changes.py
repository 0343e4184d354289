"""The changes between two runs: their causes, which are changes of the bucket and of the configuration, the objects
whose verdict each cause has moved, and the part of a summary that counts them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct

from auditor.errors import OutputError
from auditor.model.access import ReasonCode
from auditor.model.run_lines import Seen
from auditor.model.summary import Cause, ChangeKind, Changes, Summary
from auditor.runs.reading import RunReader
from auditor.runs.run_plan import RunPlan
from auditor.runs.tally import Tally
from auditor.text import counted

NO_RUN: Final = "there is no earlier complete run of the target"
UNREADABLE: Final = "the last run, {run}, could not be read"
CUT: Final = "the listing did not reach its end: everything after its last key counts as unread"


class _CauseKind(Struct, frozen=True):
    """A cause of changes. facts: the bucket's facts that it changes; () for one of the configuration. codes: of the
    reasons for a verdict that are about it. Other reasons are about the object itself.
    """

    words: str
    facts: tuple[str, ...] = ()
    codes: tuple[ReasonCode, ...] = ()


_CAUSES: Final = {
    "policy": _CauseKind(
        "the bucket policy changed",
        ("policy", "policy_is_public"),
        (
            ReasonCode.POLICY_ALLOW,
            ReasonCode.POLICY_DENY,
            ReasonCode.POLICY_UNREAD,
            ReasonCode.NOT_BUCKET_OWNED,
            ReasonCode.KEY_UNKNOWN,
            ReasonCode.TOO_COMPLEX,
        ),
    ),
    "block": _CauseKind(
        "the public access block changed",
        ("public_access_block", "account_public_access_block"),
        (ReasonCode.IGNORE_PUBLIC_ACLS, ReasonCode.RESTRICT_PUBLIC_BUCKETS),
    ),
    "ownership": _CauseKind("the object ownership changed", ("ownership",), (ReasonCode.ACLS_DISABLED,)),
    "access-points": _CauseKind(
        "the access points changed",
        ("access_points",),
        (ReasonCode.ACCESS_POINT, ReasonCode.ACCESS_POINTS_UNREAD),
    ),
    "access-grants": _CauseKind("the S3 Access Grants changed", ("access_grants",), (ReasonCode.ACCESS_GRANT,)),
    "key-policies": _CauseKind(
        "policies of KMS keys changed", ("key_policies",), (ReasonCode.KMS_KEY, ReasonCode.KMS_KEY_UNREAD)
    ),
    "request-payer": _CauseKind("the payer of requests changed", ("request_payer",), (ReasonCode.REQUESTER_PAYS,)),
    "tags": _CauseKind("the bucket's tags, or its ABAC, changed", ("abac", "tags"), (ReasonCode.BUCKET_TAGS_UNREAD,)),
    "trusted": _CauseKind("the setting trusted changed", (), (ReasonCode.TRUSTED,)),
    "rules": _CauseKind("the selection or the options of the rules changed"),
}
"""The causes by the names that a checkpoint has."""
_OF_CODE: Final = {code.value: name for name, cause in _CAUSES.items() for code in cause.codes}
_MOVED: Final = (ChangeKind.NEW, ChangeKind.WORSENED, ChangeKind.IMPROVED, ChangeKind.RESOLVED)


def cause_words(cause: Cause) -> str:
    """Return the sentence on a cause, and on the objects that it moved."""
    return f"{cause.change}: moved {counted(cause.objects, 'object')}"


def causes_between(old: RunPlan, new: RunPlan) -> tuple[str, ...]:
    """Return the causes: the changes of the bucket's facts and of the configuration between two runs."""
    differ = {fact for fact in old.facts.__struct_fields__ if getattr(old.facts, fact) != getattr(new.facts, fact)}
    changed = (name for name, cause in _CAUSES.items() if not differ.isdisjoint(cause.facts))
    return (*changed, *_settings(old, new))


def _settings(old: RunPlan, new: RunPlan) -> Iterator[str]:
    """Yield the causes that are changes of the configuration."""
    first, second = old.configuration, new.configuration
    if (first.get("trusted") or []) != (second.get("trusted") or []):
        yield "trusted"
    if set(old.selected) != set(new.selected) or _options(first) != _options(second):
        yield "rules"


def _options(configuration: Mapping[str, Any]) -> str:
    """Return the options of the rules as JSON, as run.json has them."""
    return json.dumps(configuration.get("rules") or {}, sort_keys=True, default=str)


def moved_by(causes: Iterable[str], kind: ChangeKind | None, old: Seen | None, new: Seen | None) -> list[str]:
    """Return the causes that moved the verdict of an object. Both runs must have read the object.

    A cause moved the verdict if the cause changed between the runs, and the object's reasons about this cause differ. A
    reason of a later release is about the object.
    """
    if kind not in _MOVED or old is None or new is None:
        return []
    spoken = {_OF_CODE.get(text.partition(": ")[0]) for text in set(old.reasons) ^ set(new.reasons)}
    return [cause for cause in causes if cause in spoken]


def changes_since(tally: Tally, earlier: RunReader | None, file: RunPlan | None, *, complete: bool) -> Changes:
    """Return the changes since the last complete run. Blocks.

    tally: has counted them. earlier: that run; None if there is none. file: run.json of the present run, as it was
    before the first object. complete: True if the listing reached its end.
    """
    if earlier is None:
        return Changes(why_not=NO_RUN)
    last = old = None
    if not tally.uncompared:
        with suppress(OutputError):
            last = earlier.summary
            old = None if earlier.plan is None else earlier.begun_with
    if last is None:
        return Changes(why_not=UNREADABLE.format(run=earlier.run_id))
    causes = causes_between(old, file) if old and file else ()
    if complete:
        return changes_of(tally.changes, earlier.run_id, None, causes)
    return changes_of(uncompared(tally, last), earlier.run_id, CUT, causes)


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
    moved = [Cause(_CAUSES[cause].words, counts.get(f"cause {cause}", 0)) for cause in causes]
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
