"""Put the groups of a run's roll-ups in order, and say each one: its sentence, its meaning, and the remedy.

Every report takes the words on a group from here, so that it has the same sentence in the table, on the page, in an
alert and in a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.rollup import Group, GroupKind, RollUps
from auditor.reports import phrases
from auditor.rules import RULES_BY_ID
from auditor.rules.base import Rule
from auditor.rules.docs import sections
from auditor.text import counted

WHOLE: Final = 3
"""Largest number of objects of a small group, whose keys are all in its row."""
_ORDER: Final = list(Verdict)
_SEVERITIES: Final = list(Severity)
_REACH: Final = {
    Verdict.MASKED: ("could reach", "if nothing blocked it"),
    Verdict.DORMANT: ("can reach", "once ACLs count again"),
    Verdict.UNKNOWN: ("may reach", ""),
}
"""The words before and after the number of objects, for verdicts other than those of objects that are open today."""
_MEANING: Final = {
    Verdict.EXPOSED: "Anyone, or any AWS account, can read these objects or their ACL, or change their ACL, today.",
    Verdict.SHARED: "Another party that is not trusted can read these objects or their ACL, or owns them.",
    Verdict.UNKNOWN: "A fact that decides it could not be read, or a condition of the policy cannot be decided.",
    Verdict.MASKED: "A grant or a statement opens these objects, but a switch, a key or a Deny blocks it today.",
    Verdict.DORMANT: "Nobody else gets in today. An S3 Inventory shows stored grants or owners that are hidden.",
}
_MEND: Final = {
    Verdict.EXPOSED: "`auditor explain` names what opens each object; `auditor what-if RUN` predicts a change.",
    Verdict.SHARED: "If it is intended, add the party to `trusted` in auditor.toml; otherwise remove the grant.",
    Verdict.UNKNOWN: "Let the auditor read what is missing: see below for what could not be looked at.",
    Verdict.MASKED: "Remove the grant: what blocks it may be switched off.",
    Verdict.DORMANT: "Copy the objects onto themselves, or keep ACLs off: stored grants and owners return with ACLs.",
}
GRANT_READ: Final = "Let the auditor read what is missing: `auditor policy` prints the rights that it needs."
"""The remedy for facts that could not be read."""


class Sentence(Struct, frozen=True):
    """A sentence on a group, in parts of which each may be "".

    who: the audience, or the fact that could not be read, with text of the bucket or the server in it. before, after:
    the words around the subject. subject: the number of objects with its noun.
    """

    who: str
    before: str
    subject: str
    after: str

    @property
    def start(self) -> str:
        """The words before the subject."""
        return " ".join(filter(None, (self.who, self.before)))

    @property
    def text(self) -> str:
        return " ".join(filter(None, (self.start, self.subject, self.after)))


def openings(rollups: RollUps) -> list[Group]:
    """Return the groups of verdicts: exposed objects first, and at the end the groups that exceptions cover."""
    found = [group for group in rollups.groups if group.kind is GroupKind.VERDICT]
    return sorted(found, key=lambda one: (is_intended(one), _ORDER.index(one.verdict or Verdict.MASKED)))


def findings(rollups: RollUps) -> list[Group]:
    """Return the groups of findings, the worst first."""
    return [group for group in rollups.groups if group.kind is GroupKind.FINDING]


def undecided(rollups: RollUps) -> list[Group]:
    """Return the groups of objects with a fact that could not be read, the largest first."""
    return [group for group in rollups.groups if group.kind is GroupKind.UNDECIDED]


def first_of(opened: Sequence[Group], found: Sequence[Group], most: int) -> tuple[Sequence[Group], Sequence[Group]]:
    """Return the first groups of verdicts and of findings, `most` together: a half of each if both are many."""
    first = opened[: max(most // 2, most - len(found))]
    return first, found[: most - len(first)]


def together(found: Iterable[Group]) -> list[list[Group]]:
    """Return the groups as rows, the worst first, then those on the bucket, then the largest. Small groups of one
    subject share a row: of one rule and severity, of one verdict and audience, or of one missing fact.
    """
    rows: dict[tuple[object, ...], list[Group]] = {}
    for group in found:
        subject = (group.rule, group.verdict, group.severity or group.audience, is_intended(group))
        rows.setdefault((*subject, None if group.count <= WHOLE else group.id), []).append(group)
    return sorted(rows.values(), key=_rank)


def _rank(parts: Sequence[Group]) -> tuple[bool, int, bool, int]:
    group, number = parts[0], -sum(one.count for one in parts)
    if group.severity is not None:
        return False, _SEVERITIES.index(group.severity), not is_of_bucket(group), number
    return is_intended(group), _ORDER.index(group.verdict or Verdict.UNKNOWN), True, number


def summed(parts: Sequence[Group]) -> Group:
    """Return one group with the sums of those of a row."""
    if len(parts) == 1:
        return parts[0]
    new = [one.new for one in parts if one.new is not None]
    alike = len({one.prefix for one in parts}) == 1
    return replace(
        parts[0],
        prefix=parts[0].prefix if alike else "",
        count=sum(one.count for one in parts),
        bytes=sum(one.bytes for one in parts),
        new=sum(new) if new else None,
        excepted=sum(one.excepted for one in parts),
        since=min((one.since for one in parts if one.since is not None), default=None),
        samples=tuple(sample for one in parts for sample in one.samples),
    )


def is_intended(group: Group) -> bool:
    """True if exceptions cover all of the group."""
    return group.excepted == group.count


def rule_of(group: Group) -> Rule | None:
    """Return the rule of the group's findings; None for other groups, and for a rule that is not in this version."""
    return RULES_BY_ID.get(group.rule or "")


def is_of_bucket(group: Group) -> bool:
    """True if the group has findings on the bucket, not on its objects."""
    rule = rule_of(group)
    return rule is not None and not rule.per_object


def sentence(group: Group) -> Sentence:
    """Return the sentence on a group. Only `who` has text that is not ours."""
    objects = counted(group.count, "object")
    if group.kind is GroupKind.UNDECIDED:
        return Sentence(f"{group.audience or 'A fact'}:", "", objects, "could not be checked")
    if group.rule is None:
        who = _capital(phrases.audience(group.audience))
        if group.verdict is Verdict.UNKNOWN and not who:
            return Sentence("", "It is not known who reaches", objects, "")
        before, after = _REACH.get(group.verdict or Verdict.EXPOSED, ("can reach", ""))
        return Sentence(who, before if who else f"Others {before}", objects, after)
    rule = rule_of(group)
    if rule is None:
        return Sentence("", f"Rule {group.rule}, which this version does not have:", objects, "")
    title = _capital(rule.title)
    return Sentence("", title, "", "") if is_of_bucket(group) else _of_rule(title, group.count, objects)


def _of_rule(title: str, number: int, objects: str) -> Sentence:
    """Return the title of a rule about one object as a sentence on a number of objects."""
    if number > 1:
        for one, many in (("The object is ", "are "), ("The object was ", "were ")):
            if title.startswith(one):
                return Sentence("", "", objects, many + title.removeprefix(one))
        for end, words in ((" the object's ACL", " the ACL of"), (" the object", "")):
            if title.endswith(end):
                return Sentence("", title.removesuffix(end) + words, objects, "")
    return Sentence("", f"{title}:", objects, "")


def audience(group: Group) -> str:
    """Return the audience of a group's findings or objects in words; "" if nobody gets in, and for a missing fact."""
    return "" if group.kind is GroupKind.UNDECIDED else phrases.audience(group.audience)


def place(group: Group) -> tuple[str, str]:
    """Return the words on the place of a group's objects, and their prefix, which is text of the bucket, or ""."""
    if group.prefix is None:
        return "on the bucket itself", ""
    rest = "elsewhere " if group.rest else ""
    return (f"{rest}below ", group.prefix) if group.prefix else (f"{rest}in the bucket", "")


def new_words(group: Group) -> str:
    """Return how many of the group are new since the last run; "" if none is, or if there is no run to compare with."""
    if not group.new:
        return ""
    return "all new" if group.new == group.count else f"{group.new:,} new"


def meaning(group: Group) -> str:
    """Return why the group matters; "" for a rule that this version does not have."""
    return _of_docs(group, "Why") if group.rule is not None else _MEANING.get(group.verdict or Verdict.UNKNOWN, "")


def mend(group: Group) -> str:
    """Return what mends the group; "" for a rule that this version does not have."""
    if group.kind is GroupKind.UNDECIDED:
        return GRANT_READ
    return _of_docs(group, "Fix") if group.rule is not None else _MEND.get(group.verdict or Verdict.UNKNOWN, "")


def _of_docs(group: Group, section: str) -> str:
    """Return a section of the documentation of the group's rule."""
    rule = rule_of(group)
    return "" if rule is None else _capital(sections(rule).get(section, ""))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
