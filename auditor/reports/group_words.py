"""Say a group of findings or of objects as a sentence, with its meaning and its fix."""

from __future__ import annotations

from typing import Final

from auditor.model.access import Verdict
from auditor.reports import words
from auditor.rules import RULES
from auditor.rules.base import Rule
from auditor.rules.docs import sections

RULES_BY_ID: Final = {rule.id: rule for rule in RULES}
_MEANING: Final = {
    Verdict.EXPOSED: "Anyone, or any AWS account, can read these objects or their ACL, or change their ACL, today.",
    Verdict.SHARED: "Another party that is not trusted can read these objects or their ACL, or owns them.",
    Verdict.UNKNOWN: "A fact that decides it could not be read, or a condition of the policy cannot be decided.",
    Verdict.MASKED: "A grant or a statement opens these objects, and a switch, a key or a denial holds it back today.",
    Verdict.DORMANT: "Nobody else gets in today. An S3 Inventory shows grants or owners that are stored and hidden.",
}
_MEND: Final = {
    Verdict.EXPOSED: "`auditor explain` names what opens each object; `auditor what-if RUN` tells what a change does.",
    Verdict.SHARED: "If it is meant, add the party to `trusted` in auditor.toml; else take the grant away.",
    Verdict.UNKNOWN: "Let the auditor read what is missing: see below what could not be looked at.",
    Verdict.MASKED: "Take the grant away: what holds it back may be switched off.",
    Verdict.DORMANT: "Copy the objects onto themselves, or keep ACLs off: what is stored counts again once they count.",
}


def sentence_of_group(rule_id: str | None, verdict: Verdict | None, who: str, number: int) -> tuple[str, str, str]:
    """Return a sentence on the findings of a rule, or on the objects with a verdict: the words before the number, the
    number with its noun, and the words after it. who: the audience in words.
    """
    if rule_id is None:
        return words.sentence_of_verdict(verdict or Verdict.UNKNOWN, who, number)
    rule = RULES_BY_ID.get(rule_id)
    title = rule.title if rule else f"rule {rule_id}, which this version does not have"
    return words.sentence_of_rule(title, number, is_of_bucket(rule))


def is_of_bucket(rule: Rule | None) -> bool:
    """True if the rule judges the bucket, not its objects."""
    return rule is not None and not rule.per_object


def meaning(rule_id: str | None, verdict: Verdict | None) -> str:
    """Return why the group matters; "" for a rule that this version does not have."""
    if rule := RULES_BY_ID.get(rule_id or ""):
        return sections(rule).get("Why", "")
    return _MEANING.get(verdict or Verdict.UNKNOWN, "")


def mend(rule_id: str | None, verdict: Verdict | None) -> str:
    """Return the fix of the group; "" for a rule that this version does not have."""
    if rule := RULES_BY_ID.get(rule_id or ""):
        fix = sections(rule).get("Fix", "")
        return fix[:1].upper() + fix[1:]
    return _MEND.get(verdict or Verdict.UNKNOWN, "")
