"""Write entries of [[exceptions]], for auditor.toml: one that covers one finding of a run, or those that cover a whole
group of its roll-ups and nothing of another group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from auditor.errors import UsageError
from auditor.model.access import Audience, ObjectAccess, Reason, Verdict
from auditor.model.exception import ExceptionEntry, covers_finding, covers_verdict
from auditor.model.finding import Severity
from auditor.model.rollup import Group, GroupKind, RollUps
from auditor.model.run_lines import FindingLine, ObjectLine, UndecidedLine
from auditor.reports.groups import place
from auditor.reports.rollup import OTHERS, widest_audience
from auditor.runs.parts import Part
from auditor.runs.reading import RunReader
from auditor.text import counted, visible

_SHORT: Final = {'"': '\\"', "\\": "\\\\"}
_NAMED: Final = 5
"""Largest number of groups that a refusal names."""
_MOST_FACTS: Final = 10
"""Largest number of entries for one group of undecided objects: one for each fact that could not be read."""
_BY_HAND: Final = "write the entry by hand if that is intended"
Words = tuple[str | None, Severity | None, str | None]
"""The rule or verdict, the severity and the audience by which groups differ, as they have them."""
Covered = Counter[tuple[Words, bool]]
"""Numbers of lines by the words of their group, and by True if the entries cover them."""


def entry_for(line: FindingLine, bucket: str, *, owner: str, reason: str, until: str) -> str:
    """Return the entry as lines of TOML, safe to print. It covers this finding and no other: its rule, grantee and key.

    until: the last day on which it holds, YYYY-MM-DD. An empty owner or reason is left for the user to fill in. Raises
    UsageError if TOML has no form for the key.
    """
    values = {"rule": line.rule, "bucket": bucket}
    if line.key is not None:
        values["prefix" if "*" in line.key else "pattern"] = line.key
    if line.grantee is not None:
        values["grantee"] = line.grantee
    return _entry_text(values, owner=owner, reason=reason, until=until)


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
            f"group {group.id} is the rest {_place(group).removeprefix('elsewhere ')}, and an exception covers deeper"
            f" prefixes too: {_named(deeper)}; {_BY_HAND}"
        )
    values, counts = _of_undecided(run, group) if group.kind is GroupKind.UNDECIDED else _of_lines(run, group)
    covered, missed = counts.pop((_words(group), True), 0), counts[_words(group), False]
    if missed:
        raise UsageError(f"no exception covers all of group {group.id}: {_why_missed(group, missed, covered)}")
    if others := {words: number for (words, covers), number in counts.items() if covers}:
        found = [one for one in rollups.groups if _words(one) in others and _overlaps(one, group)]
        number = counted(sum(others.values()), "object" if group.rule is None else "finding")
        raise UsageError(
            f"an exception for group {group.id} would cover {number} of other groups {_place(group)} too:"
            f" {_named(found) or 'none has a name'}; {_BY_HAND}"
        )
    texts = (_entry_text(one, owner=owner, reason=reason, until=until) for one in values)
    return "\n".join(texts), covered


def _entry_text(values: Mapping[str, str], *, owner: str, reason: str, until: str) -> str:
    """Return an entry as lines of TOML. values: the conditions of the entry, by the keys of auditor.toml."""
    rows = ["[[exceptions]]", *(f"{name} = {_toml_text(value)}" for name, value in values.items())]
    rows.append(f"owner = {_toml_text(owner)}{'' if owner else '  # the person or team responsible for it'}")
    rows.append(f"reason = {_toml_text(reason)}{'' if reason else '  # why it is accepted'}")
    rows.append(f"until = {until}")
    return "".join(f"{row}\n" for row in rows)


def _toml_text(text: str) -> str:
    """Return a text as a TOML string, with everything escaped that a terminal does not print. Raises UsageError for a
    lone surrogate, for which TOML has no form.
    """
    return f'"{"".join(map(_character, text))}"'


def _character(one: str) -> str:
    if "\ud800" <= one <= "\udfff":
        raise UsageError("the key has a lone surrogate, for which TOML has no form: write a prefix or pattern by hand")
    if one in _SHORT:
        return _SHORT[one]
    if one.isprintable():
        return one
    return f"\\u{ord(one):04x}" if ord(one) < 0x10000 else f"\\U{ord(one):08x}"


def _check_kind(group: Group) -> None:
    """Raise UsageError for a group that no exception can cover."""
    if group.verdict is Verdict.UNKNOWN:
        raise UsageError(
            f"group {group.id} has objects whose verdict is unknown, which is a hole: accept the group of the facts"
            " that could not be read, or add what is missing"
        )
    if group.verdict is Verdict.DORMANT:
        raise UsageError(
            f"group {group.id} has dormant objects, which nobody else reaches today, so there is nothing to"
            " accept: accept their findings of O13 instead"
        )
    if group.audience == OTHERS:
        raise UsageError(
            f"group {group.id} has the audiences beyond the 200 that a run counts separately: accept its findings one"
            " by one, or write the entry by hand"
        )


def _base(run: RunReader, group: Group) -> dict[str, str]:
    return {"bucket": run.bucket_name} | ({"prefix": group.prefix} if group.prefix else {})


def _of_undecided(run: RunReader, group: Group) -> tuple[list[dict[str, str]], Covered]:
    """Return the values of an entry for each fact, API operation and error code, that the objects of a group lack; and
    the counts of the undecided objects below its prefix.
    """
    lacking: Counter[tuple[tuple[str, str], ...]] = Counter()
    prefix, counts = group.prefix or "", Counter[tuple[Words, bool]]()
    for files in run.parts_below(prefix):
        lines = (line for line in run.part(UndecidedLine, files.get("undecided")) if line.key.startswith(prefix))
        lacking.update(tuple((one.action, one.code) for one in line.unread) for line in lines)
    firsts = {facts: " ".join(facts[0]) if facts else None for facts in lacking}
    accepted = dict.fromkeys(one for facts in lacking if firsts[facts] == group.audience for one in facts)
    if len(accepted) > _MOST_FACTS:
        raise UsageError(f"the objects of group {group.id} lack {len(accepted):,} facts: write the entries by hand")
    for facts, number in lacking.items():
        counts[(None, None, firsts[facts]), accepted.keys() >= set(facts)] += number
    return [{"action": action, "code": code} | _base(run, group) for action, code in accepted], counts


def _of_lines(run: RunReader, group: Group) -> tuple[list[dict[str, str]], Covered]:
    """Return the values of the one entry, and the counts of the findings or objects below the prefix of the group."""
    subject = {"rule": group.rule} if group.rule else {"verdict": (group.verdict or Verdict.EXPOSED).value}
    audience = {} if group.audience is None else {"audience": group.audience}
    return [subject | _base(run, group) | audience], Counter(_lines(run, group))


def _lines(run: RunReader, group: Group) -> Iterator[tuple[Words, bool]]:
    """Yield for each line that has the rule or the verdict of the group, below its prefix, the words of its group, and
    True if the entry covers it.
    """
    verdict, rule, prefix = group.verdict, group.rule, group.prefix or None
    entry = ExceptionEntry("", "", "", prefix=prefix, rule=rule, verdict=verdict, audience=group.audience)
    if group.prefix is None:
        for finding in run.findings():
            if finding.key is not None:
                return  # findings on the bucket come first
            if finding.rule == group.rule:
                yield (finding.rule, finding.severity, None), covers_finding(entry, finding, None)
        return
    for files in run.parts_below(group.prefix):
        yield from (_objects if group.rule is None else _findings)(run, files, group, entry)


def _objects(
    run: RunReader, files: Mapping[str, Part], group: Group, entry: ExceptionEntry
) -> Iterator[tuple[Words, bool]]:
    for line in run.part(ObjectLine, files.get("objects")):
        if line.verdict is group.verdict and line.key.startswith(group.prefix or ""):
            access = _access(line)
            yield (line.verdict, None, widest_audience(access)), covers_verdict(entry, line.key, access)


def _findings(
    run: RunReader, files: Mapping[str, Part], group: Group, entry: ExceptionEntry
) -> Iterator[tuple[Words, bool]]:
    prefix = group.prefix or ""
    if "findings" not in files:
        return
    accesses = {
        (line.key, line.version_id): _access(line)
        for line in run.part(ObjectLine, files.get("objects"))
        if group.rule in line.rules and line.key.startswith(prefix)
    }
    for finding in run.part(FindingLine, files["findings"]):
        if finding.rule == group.rule and finding.key is not None and finding.key.startswith(prefix):
            access = accesses.get((finding.key, finding.version_id))
            audience = None if access is None else widest_audience(access)
            yield (finding.rule, finding.severity, audience), covers_finding(entry, finding, access)


def _access(line: ObjectLine) -> ObjectAccess:
    """Return the access of an object as its line has it. Raises UsageError for words of a later release."""
    try:
        audience, reasons = tuple(map(Audience.parse, line.audience)), tuple(map(Reason.parse, line.reasons))
    except ValueError as error:
        raise UsageError(f"the run has words that this version does not know: {error}") from error
    return ObjectAccess(line.verdict or Verdict.PRIVATE, audience, reasons)


def _words(group: Group) -> Words:
    return (group.rule or group.verdict, group.severity, group.audience)


def _is_deeper(one: Group, group: Group) -> bool:
    """True if `one` has other keys of the group's kind and audience, below its prefix."""
    if one.id == group.id or one.kind is not group.kind or _words(one) != _words(group):
        return False
    return one.prefix is not None and group.prefix is not None and one.prefix.startswith(group.prefix)


def _overlaps(one: Group, group: Group) -> bool:
    first, second = one.prefix or "", group.prefix or ""
    return one.kind is group.kind and (first.startswith(second) or second.startswith(first))


def _place(group: Group) -> str:
    return visible("".join(place(group)))


def _named(groups: Iterable[Group]) -> str:
    found = list(groups)
    each = [f"{one.id} ({one.count:,} {_place(one)})" for one in found[:_NAMED]]
    more = [f"{len(found) - _NAMED:,} more"] if len(found) > _NAMED else []
    return ", ".join([*each, *more])


def _why_missed(group: Group, missed: int, covered: int) -> str:
    number = f"{missed:,} of {missed + covered:,}"
    if group.rule is not None:
        others = f"{number} let others in besides {visible(group.audience or 'nobody')}"
        return f"{others}: write an entry without an audience by hand if that is intended"
    return (
        f"{number} objects let others in too, give control, or depend on a fact that was not read: accept the groups"
        " of their findings instead of the verdict"
    )
