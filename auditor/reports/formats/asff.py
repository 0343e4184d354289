"""ASFF, the format of AWS Security Hub: a finding for each group of the run's roll-ups, and one for its coverage.

The finding on the coverage is always the first, and never PASSED if the run did not look at everything. Groups of
objects that could not be looked at, and undecided rules, are NOT_AVAILABLE.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import replace

from auditor.errors import UsageError
from auditor.model.access import Verdict
from auditor.model.finding import RuleUndecided
from auditor.model.rollup import Group, GroupKind, RollUps
from auditor.model.summary import Summary
from auditor.reports import groups
from auditor.reports.formats.asff_finding import PLACE, PRODUCT, RULE, AsffSubject, HubAccount, asff_finding
from auditor.reports.formats.base import PLAIN, FormatOptions, RunLines, coverage_sentence
from auditor.reports.summary import has_hole
from auditor.text import counted, visible

_EXPOSURE: Final = "Effects/Data Exposure"
_CHECK: Final = "Software and Configuration Checks/AWS Security Best Practices"
_FAILED, _WARNING, _NOT_AVAILABLE, _PASSED = "FAILED", "WARNING", "NOT_AVAILABLE", "PASSED"
_OF_VERDICT: Final = {
    Verdict.EXPOSED: (_FAILED, "HIGH"),
    Verdict.SHARED: (_FAILED, "MEDIUM"),
    Verdict.UNKNOWN: (_WARNING, "MEDIUM"),
    Verdict.MASKED: (_WARNING, "LOW"),
    Verdict.DORMANT: (_WARNING, "LOW"),
}
_LABELS: Final = {"info": "INFORMATIONAL"}
_REACH: Final = {
    Verdict.MASKED: "could reach, were nothing in the way,",
    Verdict.DORMANT: "can reach, once ACLs count again,",
}
"""Words of titles, which stay as they are: a title is what people search for in Security Hub."""


def write(summary: Summary, lines: RunLines, options: FormatOptions | None = None) -> Iterator[str]:
    """Yield the findings as one JSON array in ASCII, with a finding a line. The lines of the run are not read.

    Raises UsageError if the account or the region is not given.
    """
    how = options or PLAIN
    if how.account is None or how.region is None:
        raise UsageError("asff needs an account and a region that the run does not name: give --account and --region")
    before = "[\n"
    for finding in findings(summary, lines.rollups(), HubAccount.of(how.account, how.region)):
        yield f"{before}{json.dumps(finding, separators=(',', ':'))}"
        before = ",\n"
    yield "\n]\n"


def findings(summary: Summary, rollups: RollUps, hub: HubAccount) -> Iterator[dict[str, Any]]:
    """Yield the findings: of the coverage, of each undecided rule, and of each group."""
    target = summary.target
    place = f"s3://{target.bucket}/{visible(target.prefix)}"
    yield asff_finding(summary, hub, _coverage(summary, place))
    for rule in summary.rules_undecided:
        yield asff_finding(summary, hub, _undecided_rule(rule, place))
    for group in rollups.groups:
        yield asff_finding(summary, hub, _of_group(group, target.bucket, summary.run))


def _coverage(summary: Summary, place: str) -> AsffSubject:
    whole = bool(summary.coverage.listed) and not has_hole(summary)
    return AsffSubject(
        name="coverage",
        generator="coverage",
        kind="coverage",
        compliance=_PASSED if whole else _WARNING,
        severity="INFORMATIONAL" if whole else "MEDIUM",
        title=f"Coverage of the audit of {place}",
        text=f"{coverage_sentence(summary)}. Not looked at: {'; '.join(summary.not_looked_at)}",
        fix="" if whole else groups.GRANT_READ,
        count=summary.coverage.listed,
        types=(_CHECK,),
    )


def _undecided_rule(rule: RuleUndecided, place: str) -> AsffSubject:
    lacking = visible(f"{rule.action} {rule.code}")
    name = visible(rule.rule)
    return AsffSubject(
        name=f"undecided-rule/{name}",
        generator=f"rule/{name}",
        kind="undecided-rule",
        compliance=_NOT_AVAILABLE,
        severity="MEDIUM",
        title=f"Rule {name} could not be decided for {place}",
        text=f"The rule lacks a fact of the bucket: {lacking}. It is neither passed nor failed.",
        fix=groups.GRANT_READ,
        count=1,
        fields={RULE: name},
        types=(_CHECK,),
    )


def _of_group(group: Group, bucket: str, run: str) -> AsffSubject:
    place = f"s3://{bucket}" if group.prefix is None else f"s3://{bucket}/{visible(group.prefix)}"
    title = f"{_sentence(group)}, in {place}"
    compliance, severity = _status(group)
    return AsffSubject(
        name=group.id,
        generator=_generator(group),
        kind=group.kind.value,
        compliance=compliance,
        severity=severity,
        title=title,
        text=" ".join(_details(group, title, run)),
        fix=groups.mend(group),
        count=group.count,
        fields={
            RULE: None if group.rule is None else visible(group.rule),
            PLACE: place,
            f"{PRODUCT}/new": None if group.new is None else str(group.new),
            f"{PRODUCT}/excepted": str(group.excepted),
        },
        since=group.since,
        keys=[sample.key for sample in group.samples if sample.key is not None],
        types=(_EXPOSURE if group.verdict is Verdict.EXPOSED else _CHECK,),
    )


def _sentence(group: Group) -> str:
    if group.kind is GroupKind.UNDECIDED:
        lacking = visible(group.audience or "for lack of a fact")
        return f"{counted(group.count, 'object')} could not be looked at, {lacking}"
    said = groups.sentence(group)
    if words := _REACH.get(group.verdict or Verdict.EXPOSED):
        return f"{visible(said.who) or 'Others'} {words} {said.subject}"
    return replace(said, who=visible(said.who)).text


def _details(group: Group, sentence: str, run: str) -> Iterator[str]:
    yield f"{sentence}."
    if group.rest:
        yield "Longer prefixes have findings of their own."
    if group.rule is not None and group.audience and not groups.is_of_bucket(group):
        yield f"The objects are open to {visible(groups.audience(group))}."
    if group.new is not None:
        yield f"New since the last run: {group.new:,}."
    if group.excepted:
        yield f"An exception covers {group.excepted:,} of {group.count:,}."
    if group.kind is GroupKind.UNDECIDED:
        yield "They are neither passed nor failed."
    elif reason := groups.meaning(group):
        yield f"{reason[:1].upper()}{reason[1:]}"
    yield f"Run {run}."


def _status(group: Group) -> tuple[str, str]:
    """Return the compliance status and the label of the severity."""
    if group.kind is GroupKind.UNDECIDED:
        return _NOT_AVAILABLE, "MEDIUM"
    if groups.is_intended(group):
        return _WARNING, "INFORMATIONAL"
    if group.severity is None:
        return _OF_VERDICT.get(group.verdict or Verdict.UNKNOWN, (_WARNING, "MEDIUM"))
    return _FAILED, _LABELS.get(group.severity.value, group.severity.value.upper())


def _generator(group: Group) -> str:
    if group.kind is GroupKind.FINDING:
        return f"rule/{visible(group.rule or '')}"
    return f"verdict/{group.verdict.value}" if group.verdict else "undecided"
