"""The changes between two runs: of one object, its verdict and each of its findings; of the runs, their causes, which
are changes of the bucket and of the configuration, and the part of a summary that counts the objects each cause has
moved.

Nothing is called resolved that was not read again, and nothing new that the old run did not look at.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct

from auditor.errors import OutputError
from auditor.model.access import ReasonCode, Verdict
from auditor.model.bucket import Encryption
from auditor.model.finding import RuleUndecided
from auditor.model.object import Outcome, Skipped
from auditor.model.run_lines import WIDTH, FindingLine, Seen
from auditor.model.summary import Cause, ChangeKind, Changes, Summary
from auditor.rules import RULES
from auditor.rules.base import ACLS_DISABLED, Plan, Rule, make_plan
from auditor.runs.reading import RunReader
from auditor.runs.run_files import RunPlan
from auditor.runs.tally import Tally
from auditor.text import counted

NO_RUN: Final = "there is no earlier complete run of the target"
UNREADABLE: Final = "the last run, {run}, could not be read"
CUT: Final = "the listing did not reach its end: everything after its last key counts as unread"

_OF_HIDDEN: Final = frozenset(rule.id for rule in RULES if "dormant" in rule.reads)
"""IDs of the rules on the hidden part of stored ACLs. Only an S3 Inventory shows it, and not of each object: a run that
does not have it says nothing of the object.
"""
ADDS = frozenset({ChangeKind.NEW, ChangeKind.WORSENED, ChangeKind.DECIDED, ChangeKind.EXCEPTED, ChangeKind.UNCOVERED})
"""The kinds of changes after which the new run has a finding or verdict that the old run did not have. They are counted
by the new verdict."""


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


def judged_rules(file: RunPlan, undecided: Iterable[RuleUndecided]) -> frozenset[str]:
    """Return the IDs of the rules that a run judged on all objects that it read. undecided: the rules that lacked a
    bucket fact.
    """
    selected = [rule for rule in RULES if rule.id in file.selected]
    lacking = frozenset(item.rule for item in undecided)
    return judged_by(selected, make_plan(selected, file.facts)) - lacking


def judged_by(rules: Iterable[Rule], plan: Plan) -> frozenset[str]:
    """Return the IDs of the rules that a plan judges. If ACLs are disabled, a rule on ACLs counts as judged: no ACL has
    an effect.
    """
    disabled = plan.ask.acl == Skipped(ACLS_DISABLED)
    answered = {rule.id for rule in rules if disabled and {"acl", "owner"}.intersection(rule.reads)}
    judged = {rule.id for rule in (*plan.bucket_rules, *plan.object_rules)}
    return frozenset(judged | answered) - {item.rule for item in plan.undecided}


class Step(Struct, frozen=True):
    """The change of one finding or verdict from the old run to the new one. kind: None for no change. The other two
    members are its history (Standing).
    """

    kind: ChangeKind | None
    new: bool | None
    since: str | None
    """Since when the old run had the finding or verdict; None if only the new run has it."""


def verdict_step(old: Seen | None, new: Seen | None) -> Step:
    """Return the step of an object's verdict. old, new: None if the run did not list the object.

    The verdict dormant is never new or resolved against private: only an S3 Inventory tells the two apart, and not each
    run has one that shows the object.
    """
    kind = _verdict_kind(old, new)
    since, fresh = None, kind in (ChangeKind.NEW, ChangeKind.WORSENED) or not (old and old.open)
    if old and new and old.verdict and new.verdict and old.open and new.open:
        as_wide = WIDTH[old.verdict] >= WIDTH[new.verdict] and old.told >= new.told
        since = old.since if as_wide or (old.told and not new.told) else None
    return Step(_covered(kind, old, new), None if kind is ChangeKind.DECIDED else fresh, since)


def _verdict_kind(old: Seen | None, new: Seen | None) -> ChangeKind | None:
    was_open, is_open = old is not None and old.open, new is not None and new.open
    if (not was_open and not is_open) or (old is not None and not old.told and new is not None and not new.told):
        return None
    if new is None or not new.there:
        return ChangeKind.GONE
    if not new.told:
        return ChangeKind.UNREAD
    if old is not None and not old.told:
        return ChangeKind.DECIDED
    if not was_open or old is None or old.verdict is None or new.verdict is None:
        return ChangeKind.DECIDED if new.verdict is Verdict.DORMANT else ChangeKind.NEW
    if not is_open:
        return ChangeKind.UNREAD if old.verdict is Verdict.DORMANT else ChangeKind.RESOLVED
    if new.verdict is old.verdict:
        return None
    if new.verdict is Verdict.UNKNOWN and old.verdict is Verdict.EXPOSED:
        return ChangeKind.UNREAD  # it may be as open as before
    return ChangeKind.WORSENED if WIDTH[new.verdict] > WIDTH[old.verdict] else ChangeKind.IMPROVED


def _covered(kind: ChangeKind | None, old: Seen | None, new: Seen | None) -> ChangeKind | None:
    """Return the kind of a change with regard to the exceptions that cover the verdict."""
    if not (new and new.open):
        return kind
    return with_exceptions(kind, old.exception if old and old.open else None, new.exception)


def with_exceptions(kind: ChangeKind | None, before: str | None, after: str | None) -> ChangeKind | None:
    """Return the kind of a change. before, after: the exceptions that cover the finding or verdict in the two runs."""
    if after is not None and before is None and (kind in ADDS or kind is None):
        return ChangeKind.EXCEPTED
    if after is not None and kind in ADDS:
        return None  # it is covered as before
    return ChangeKind.UNCOVERED if before is not None and after is None and kind is None else kind


def verdict_of(kind: ChangeKind, old: Seen | None, new: Seen | None) -> Verdict:
    """Return the verdict under which a change of this kind is counted: the old one or the new one."""
    first, second = (new, old) if kind in ADDS else (old, new)
    for seen in (first, second):
        if seen is not None and seen.verdict is not None and (seen.open or kind in ADDS):
            return seen.verdict
    return Verdict.PRIVATE


def worsening(old: RunPlan | None) -> Collection[str]:
    """Return the IDs of rules on the bucket whose finding, if only the new run has it, is a setting that the old run
    saw closed and that was opened since. old: run.json of the old run; None if it has none.
    """
    encryption = None if old is None else old.facts.encryption
    closed = isinstance(encryption, Encryption) and encryption.blocks_customer_keys
    return frozenset({"B08"}) if closed else frozenset()


def added_kind(rule: str, looked: bool, worse: Collection[str]) -> ChangeKind:
    """Return the kind of change of a finding that only the new run has. looked: True if the old run looked for it."""
    if not looked:
        return ChangeKind.DECIDED
    return ChangeKind.WORSENED if rule in worse else ChangeKind.NEW


def added_step(
    rule: str,
    old: Seen | None,
    rules: Collection[str] | None,
    exception: str | None = None,
    worse: Collection[str] = (),
) -> Step:
    """Return the step of a finding that only the new run has. old: the old run's results on the object. rules: IDs of
    the rules that the old run judged; None if it does not say. worse: the result of worsening().
    """
    looked = (
        (rules is None or rule in rules)
        and rule not in _OF_HIDDEN
        and not (old is not None and old.outcome is Outcome.UNDECIDED)
    )
    kind = added_kind(rule, looked, worse)
    return Step(with_exceptions(kind, None, exception), True if looked else None, None)


def kept_step(old: FindingLine, exception: str | None = None) -> Step:
    """Return the step of a finding that both runs have. exception: the one that covers it in the new run."""
    return Step(with_exceptions(None, old.exception, exception), False, old.since)


def lost_kind(rule: str, new: Seen | None, rules: Collection[str]) -> ChangeKind:
    """Return the kind of change of a finding that only the old run has. new: the new run's results on the object.
    rules: the rules that the new run judged on the object.
    """
    if new is None or not new.there:
        return ChangeKind.GONE
    looked = rule in rules and rule not in _OF_HIDDEN and new.outcome is not Outcome.UNDECIDED
    return ChangeKind.RESOLVED if looked else ChangeKind.UNREAD


def bucket_kind(rule: str, rules: Collection[str]) -> ChangeKind:
    """Return the kind of change of a finding on the bucket that the new run does not have."""
    return ChangeKind.RESOLVED if rule in rules else ChangeKind.UNREAD


def fingerprints(lines: Iterable[FindingLine]) -> dict[str, FindingLine]:
    return {line.fingerprint: line for line in lines}
