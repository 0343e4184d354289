"""Write the entries of [[exceptions]] that cover a whole group of a run's roll-ups, and nothing of another group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from auditor.errors import UsageError
from auditor.model.access import Audience, ObjectAccess, Reason, Verdict
from auditor.model.exception import ExceptionEntry
from auditor.model.exception_matching import covers_finding, covers_verdict
from auditor.model.finding import Severity
from auditor.model.rollup import Group, GroupKind, RollUps
from auditor.model.run_lines import FindingLine, ObjectLine, UndecidedLine
from auditor.reports.accept import entry_text
from auditor.reports.rollup import OTHERS, widest_audience
from auditor.runs.parts import Part
from auditor.runs.reading import RunReader
from auditor.text import counted, visible

_NAMED: Final = 5
"""Largest number of groups that a refusal names."""
_MOST_FACTS: Final = 10
"""Largest number of entries for one group of undecided objects: one for each fact that could not be read."""
_BY_HAND: Final = "write the entry by hand if that is meant"
Words = tuple[str | None, Severity | None, str | None]
"""The rule or verdict, the severity and the audience by which groups differ, as they have them."""


class _Reach(Struct):
    """The effect of the entries of a group on the run.

    covered: number of the group's findings or objects that they cover. missed: of those that they do not. others:
    number of those of other groups that they cover.
    """

    covered: int = 0
    missed: int = 0
    others: Counter[Words] = field(default_factory=Counter)

    def count(self, words: Words, group: Group, covers: bool) -> None:
        if words == _words(group):
            self.covered += covers
            self.missed += not covers
        elif covers:
            self.others[words] += 1


def entries_for_group(
    run: RunReader, rollups: RollUps, group: Group, *, owner: str, reason: str, until: str
) -> tuple[str, int]:
    """Return the entries as lines of TOML, safe to print, and the number of findings or objects that they cover.

    The run's lines below the group's prefix are read, to see that the entries cover them all, and nothing of another
    group. Blocks. Raises UsageError if no entry can say that. The other arguments are those of entry_for().
    """
    _check_kind(group)
    if deeper := [one for one in rollups.groups if _is_deeper(one, group)]:
        raise UsageError(
            f"group {group.id} is the rest {_place(group)}, and an exception covers deeper prefixes too:"
            f" {_named(deeper)}; {_BY_HAND}"
        )
    values = _values(run, group)
    reach = _reach(run, group, values)
    if reach.missed:
        raise UsageError(f"no exception covers all of group {group.id}: {_why_missed(group, reach)}")
    if reach.others:
        found = [one for one in rollups.groups if _words(one) in reach.others and _overlaps(one, group)]
        number = counted(reach.others.total(), "object" if group.rule is None else "finding")
        raise UsageError(
            f"an exception for group {group.id} would cover {number} of other groups {_place(group)} too:"
            f" {_named(found) or 'none has a name'}; {_BY_HAND}"
        )
    texts = (entry_text(one, owner=owner, reason=reason, until=until) for one in values)
    return "\n".join(texts), reach.covered


def _check_kind(group: Group) -> None:
    """Raise UsageError for a group that no exception can cover."""
    if group.verdict is Verdict.UNKNOWN:
        raise UsageError(
            f"group {group.id} is of objects whose verdict is unknown, which is a hole: accept the group of the facts"
            " that could not be read, or add what is missing"
        )
    if group.verdict is Verdict.DORMANT:
        raise UsageError(
            f"group {group.id} is of dormant objects, which nobody else reaches today, so that there is nothing to"
            " accept: accept their findings of O13"
        )
    if group.audience == OTHERS:
        raise UsageError(
            f"group {group.id} has the audiences beyond the 200 that a run counts apart: accept its findings one by"
            " one, or write the entry by hand"
        )


def _values(run: RunReader, group: Group) -> list[dict[str, str]]:
    """Return the keys and values of the entries: one, but for a hole one for each fact that could not be read."""
    base = {"bucket": run.bucket_name} | ({"prefix": group.prefix} if group.prefix else {})
    if group.kind is GroupKind.UNDECIDED:
        return [{"action": action, "code": code} | base for action, code in _facts(run, group)]
    subject = {"rule": group.rule} if group.rule else {"verdict": (group.verdict or Verdict.EXPOSED).value}
    audience = {} if group.audience is None else {"audience": group.audience}
    return [subject | base | audience]


def _facts(run: RunReader, group: Group) -> Sequence[tuple[str, str]]:
    """Return the facts that the objects of a group lack: API operation and error code, in order."""
    found = {
        (one.action, one.code): None for line in _undecided(run, group) if _first(line) == group.audience
        for one in line.unread
    }  # fmt: skip
    if len(found) > _MOST_FACTS:
        raise UsageError(f"the objects of group {group.id} lack {len(found):,} facts: write the entries by hand")
    return list(found)


def _reach(run: RunReader, group: Group, values: Sequence[Mapping[str, str]]) -> _Reach:
    reach = _Reach()
    if group.kind is GroupKind.UNDECIDED:
        accepted = {(one["action"], one["code"]) for one in values}
        for line in _undecided(run, group):
            facts = {(one.action, one.code) for one in line.unread}
            reach.count((None, None, _first(line)), group, facts <= accepted)
        return reach
    entry = _entry(values[0])
    if group.prefix is None:
        for finding in run.findings():
            if finding.key is not None:
                break  # findings on the bucket come first
            if finding.rule == group.rule:
                reach.count((finding.rule, finding.severity, None), group, covers_finding(entry, finding, None))
        return reach
    for files in run.parts_below(group.prefix):
        if group.rule is None:
            _count_objects(run, files, group, entry, reach)
        else:
            _count_findings(run, files, group, entry, reach)
    return reach


def _count_objects(
    run: RunReader, files: Mapping[str, Part], group: Group, entry: ExceptionEntry, reach: _Reach
) -> None:
    for line in run.part(ObjectLine, files.get("objects")):
        if line.verdict is group.verdict and line.key.startswith(group.prefix or ""):
            access = _access(line)
            words = (line.verdict, None, widest_audience(access))
            reach.count(words, group, covers_verdict(entry, line.key, access))


def _count_findings(
    run: RunReader, files: Mapping[str, Part], group: Group, entry: ExceptionEntry, reach: _Reach
) -> None:
    prefix = group.prefix or ""
    if "findings" not in files:
        return
    accesses = {
        (line.key, line.version_id): _access(line)
        for line in run.part(ObjectLine, files.get("objects"))
        if group.rule in line.rules and line.key.startswith(prefix)
    }
    for finding in run.part(FindingLine, files["findings"]):
        if finding.rule != group.rule or finding.key is None or not finding.key.startswith(prefix):
            continue
        access = accesses.get((finding.key, finding.version_id))
        audience = None if access is None else widest_audience(access)
        reach.count((finding.rule, finding.severity, audience), group, covers_finding(entry, finding, access))


def _undecided(run: RunReader, group: Group) -> Iterator[UndecidedLine]:
    for files in run.parts_below(group.prefix or ""):
        for line in run.part(UndecidedLine, files.get("undecided")):
            if line.key.startswith(group.prefix or ""):
                yield line


def _first(line: UndecidedLine) -> str | None:
    return f"{line.unread[0].action} {line.unread[0].code}" if line.unread else None


def _access(line: ObjectLine) -> ObjectAccess:
    """Return the access of an object as its line has it. Raises UsageError for words of a later release."""
    try:
        audience = tuple(map(Audience.parse, line.audience))
        reasons = tuple(map(Reason.parse, line.reasons))
    except ValueError as error:
        raise UsageError(f"the run has words that this version does not know: {error}") from error
    return ObjectAccess(line.verdict or Verdict.PRIVATE, audience, reasons)


def _entry(values: Mapping[str, str]) -> ExceptionEntry:
    verdict = values.get("verdict")
    return ExceptionEntry(
        reason="",
        owner="",
        until="",
        prefix=values.get("prefix"),
        rule=values.get("rule"),
        verdict=None if verdict is None else Verdict(verdict),
        audience=values.get("audience"),
    )


def _words(group: Group) -> Words:
    return (group.rule or group.verdict, group.severity, group.audience)


def _is_deeper(one: Group, group: Group) -> bool:
    """True if `one` has other keys of the group's kind and audience, below its prefix."""
    return (
        one.id != group.id and one.kind is group.kind and _words(one) == _words(group) and one.prefix is not None
        and group.prefix is not None and one.prefix.startswith(group.prefix)
    )  # fmt: skip


def _overlaps(one: Group, group: Group) -> bool:
    first, second = one.prefix or "", group.prefix or ""
    return one.kind is group.kind and (first.startswith(second) or second.startswith(first))


def _place(group: Group) -> str:
    if group.prefix is None:
        return "on the bucket"
    return f"below {visible(group.prefix)}" if group.prefix else "of the whole bucket"


def _named(groups: Iterable[Group]) -> str:
    found = list(groups)
    each = [f"{one.id} ({one.count:,} {_place(one)})" for one in found[:_NAMED]]
    more = [f"{len(found) - _NAMED:,} more"] if len(found) > _NAMED else []
    return ", ".join([*each, *more])


def _why_missed(group: Group, reach: _Reach) -> str:
    number = f"{reach.missed:,} of {reach.missed + reach.covered:,}"
    if group.rule is not None:
        others = f"{number} let others in besides {visible(group.audience or 'nobody')}"
        return f"{others}: write an entry without an audience by hand if that is meant"
    return (
        f"{number} objects let others in too, give control, or depend on a fact that was not read: accept the groups"
        " of their findings in place of the verdict"
    )
