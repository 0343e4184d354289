"""ASFF, the format of AWS Security Hub: a finding for each group of the run's roll-ups, and one for its coverage.

The finding on the coverage is always the first, and never PASSED if the run did not look at everything. Groups of
objects that could not be looked at, and undecided rules, are NOT_AVAILABLE. Texts are cut to the limits of their
members, counted in bytes of UTF-8, which are never fewer than characters:
https://docs.aws.amazon.com/securityhub/1.0/APIReference/API_AwsSecurityFinding.html
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Self

from msgspec import Struct, field
from msgspec.structs import replace

from auditor.aws.plain import partition_of
from auditor.errors import UsageError
from auditor.model.access import Verdict
from auditor.model.bucket import BUCKET_OWNER_ENFORCED
from auditor.model.finding import RuleUndecided
from auditor.model.rollup import Group, GroupKind, RollUps
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.offline.formats.base import PLAIN, FormatOptions, RunLines, coverage_sentence, encodable, first_keys
from auditor.reports import groups
from auditor.reports.changes import judged_rules
from auditor.reports.summary import has_hole
from auditor.runs.paths import began_at
from auditor.runs.run_files import RunPlan
from auditor.text import counted, visible

PRODUCT: Final = "s3-auditor"
SCHEMA: Final = "2018-10-08"
ID: Final = 512
TITLE: Final = 256
DESCRIPTION: Final = 1024
RECOMMENDATION: Final = 512
FIELD: Final = 1000
"""Largest number of bytes of a product field here. Security Hub takes 2,048 characters."""
KIND: Final = f"{PRODUCT}/kind"
RULE: Final = f"{PRODUCT}/rule"
PLACE: Final = f"{PRODUCT}/place"
RUN: Final = f"{PRODUCT}/run"
"""Product fields by which a later run knows the kind, the rule, the place and the run of a finding. A value is never
empty."""
_EXPOSURE: Final = "Effects/Data Exposure"
_CHECK: Final = "Software and Configuration Checks/AWS Security Best Practices"
_FAILED, _WARNING = "FAILED", "WARNING"
_NOT_AVAILABLE: Final = ("NOT_AVAILABLE", "MEDIUM")
_OF_VERDICT: Final = {
    Verdict.EXPOSED: (_FAILED, "HIGH"),
    Verdict.SHARED: (_FAILED, "MEDIUM"),
    Verdict.UNKNOWN: (_WARNING, "MEDIUM"),
    Verdict.MASKED: (_WARNING, "LOW"),
    Verdict.DORMANT: (_WARNING, "LOW"),
}
_LABELS: Final = {"info": "INFORMATIONAL"}
_REACH: Final = {
    Verdict.MASKED: "could reach, if nothing blocked it,",
    Verdict.DORMANT: "can reach, once ACLs count again,",
}
"""Words of titles, which stay as they are: a title is what people search for in Security Hub."""


class HubAccount(Struct, frozen=True):
    """The account and the region of the Security Hub that gets the findings. partition: aws, aws-cn .."""

    account: str
    region: str

    @property
    def partition(self) -> str:
        return partition_of(self.region)

    @property
    def product_arn(self) -> str:
        """ARN of the default product, in whose name an account's own tools import."""
        return f"arn:{self.partition}:securityhub:{self.region}:{self.account}:product/{self.account}/default"


class AsffSubject(Struct, frozen=True, kw_only=True):
    """The subject of one finding, in words that are safe to print."""

    name: str
    """The end of the ID, the same in each run that has the subject."""
    generator: str
    """The end of the generator's ID: the rule or the verdict."""
    kind: str
    status: tuple[str, str]
    """The compliance status, and the label of the severity."""
    title: str
    text: str
    fix: str = groups.GRANT_READ
    """The remedy; "" if there is nothing to do."""
    count: int = 1
    fields: Mapping[str, str | None] = field(default_factory=dict)
    """More product fields; those that are None are left out."""
    since: str | None = None
    """The time since which it is known, in ISO 8601; None: since this run."""
    keys: Sequence[str] = ()
    """Some of its objects, as S3 has their keys."""
    types: str = _CHECK


def write(summary: Summary, lines: RunLines, options: FormatOptions | None = None) -> Iterator[str]:
    """Yield the findings as one JSON array in ASCII, with a finding a line. The lines of the run are not read.

    Raises UsageError if the account or the region is not given.
    """
    how = options or PLAIN
    if how.account is None or how.region is None:
        raise UsageError("asff needs an account and a region that the run does not name: give --account and --region")
    before = "[\n"
    for finding in findings(summary, lines.rollups(), HubAccount(how.account, how.region)):
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
        status=("PASSED", "INFORMATIONAL") if whole else (_WARNING, "MEDIUM"),
        title=f"Coverage of the audit of {place}",
        text=f"{coverage_sentence(summary)}. Not looked at: {'; '.join(summary.not_looked_at)}",
        fix="" if whole else groups.GRANT_READ,
        count=summary.coverage.listed,
    )


def _undecided_rule(rule: RuleUndecided, place: str) -> AsffSubject:
    lacking = visible(f"{rule.action} {rule.code}")
    name = visible(rule.rule)
    return AsffSubject(
        name=f"undecided-rule/{name}",
        generator=f"rule/{name}",
        kind="undecided-rule",
        status=_NOT_AVAILABLE,
        title=f"Rule {name} could not be decided for {place}",
        text=f"The rule lacks a fact of the bucket: {lacking}. It is neither passed nor failed.",
        fields={RULE: name},
    )


def _of_group(group: Group, bucket: str, run: str) -> AsffSubject:
    place = f"s3://{bucket}" if group.prefix is None else f"s3://{bucket}/{visible(group.prefix)}"
    title = f"{_sentence(group)}, in {place}"
    return AsffSubject(
        name=group.id,
        generator=_generator(group),
        kind=group.kind.value,
        status=_status(group),
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
        keys=first_keys(group.samples),
        types=_EXPOSURE if group.verdict is Verdict.EXPOSED else _CHECK,
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
        yield reason
    yield f"Run {run}."


def _status(group: Group) -> tuple[str, str]:
    """Return the compliance status and the label of the severity."""
    if group.kind is GroupKind.UNDECIDED:
        return _NOT_AVAILABLE
    if groups.is_intended(group):
        return _WARNING, "INFORMATIONAL"
    if group.severity is None:
        return _OF_VERDICT.get(group.verdict or Verdict.UNKNOWN, (_WARNING, "MEDIUM"))
    return _FAILED, _LABELS.get(group.severity.value, group.severity.value.upper())


def _generator(group: Group) -> str:
    if group.kind is GroupKind.FINDING:
        return f"rule/{visible(group.rule or '')}"
    return f"verdict/{group.verdict.value}" if group.verdict else "undecided"


def asff_finding(summary: Summary, hub: HubAccount, subject: AsffSubject) -> dict[str, Any]:
    """Return the finding on a subject of the run."""
    now = began_at(summary.run)
    first = _earlier(subject.since, now)
    own = {KIND: subject.kind, RUN: summary.run, f"{PRODUCT}/count": str(subject.count)}
    finding = {
        "SchemaVersion": SCHEMA,
        "Id": clipped(f"{ids_of(summary.target)}{subject.name}", ID),
        "ProductArn": hub.product_arn,
        "ProductName": PRODUCT,
        "GeneratorId": clipped(f"{PRODUCT}/{subject.generator}", ID),
        "AwsAccountId": hub.account,
        "CreatedAt": first,
        "UpdatedAt": now,
        "FirstObservedAt": first,
        "LastObservedAt": now,
        "Title": clipped(subject.title, TITLE),
        "Description": clipped(subject.text, DESCRIPTION),
        "Resources": list(_resources(hub.partition, summary.target.bucket, subject.keys)),
        "Compliance": {"Status": subject.status[0]},
        "RecordState": "ACTIVE",
        "ProductFields": {
            name: clipped(value, FIELD) for name, value in {**own, **subject.fields}.items() if value is not None
        },
        "FindingProviderFields": {"Severity": {"Label": subject.status[1]}, "Types": [subject.types]},
    }
    if subject.fix:
        finding["Remediation"] = {"Recommendation": {"Text": clipped(subject.fix, RECOMMENDATION)}}
    return finding


def ids_of(target: Target) -> str:
    """Return the beginning of the IDs of all findings on a target; no other target's begin so."""
    bounds = [target.bucket, target.prefix, target.versions, target.start_after, target.stop_at]
    return f"{PRODUCT}/{target.bucket}/{hashlib.sha256(json.dumps(bounds).encode()).hexdigest()[:16]}/"


def clipped(text: str, limit: int) -> str:
    """Return the text, or its beginning and `…`, in at most `limit` bytes of UTF-8. Lone surrogates are escaped."""
    data = encodable(text).encode()
    if len(data) <= limit:
        return data.decode()
    return f"{data[: limit - 3].decode(errors='ignore')}…"


def _resources(partition: str, bucket: str, keys: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield the bucket and the objects. An object whose ARN is too long is left out: its beginning names another."""
    arn = f"arn:{partition}:s3:::{bucket}"
    yield {"Type": "AwsS3Bucket", "Id": arn}
    for name in dict.fromkeys(f"{arn}/{encodable(visible(key))}" for key in keys):
        if len(name.encode()) <= ID:
            yield {"Type": "AwsS3Object", "Id": name}


def _earlier(since: str | None, now: str) -> str:
    """Return the time `since` as ASFF writes times; `now` if it is none, or later."""
    try:
        moment = datetime.fromisoformat(since or now)
    except ValueError:
        return now
    text = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment.tzinfo else now
    return min(text, now)


class BlindSpot(Struct, frozen=True):
    """Objects that a run could not look at. place: a URI as findings have it. whole: True if it is one whole key."""

    place: str
    whole: bool

    def hides(self, place: str) -> bool:
        """True if one of these objects may be among those below the place."""
        return self.place.startswith(place) or (not self.whole and place.startswith(self.place))


class LookedAt(Struct, frozen=True):
    """The part of its target that a run looked at. rules: IDs of the rules that it judged. asked: True if it asked each
    object for its HEAD, and for its ACL where ACLs count.
    """

    complete: bool
    rules: frozenset[str]
    asked: bool = True
    blind: tuple[BlindSpot, ...] = ()

    @classmethod
    def by(cls, summary: Summary, rollups: RollUps, bucket: RunPlan) -> Self:
        """Return what the run looked at. bucket: its run.json."""
        rules = judged_rules(bucket, summary.rules_undecided)
        blind = (spot for group in rollups.groups for spot in _blind(group, summary.target.bucket))
        asked = bucket.ask.head is None and (bucket.ask.acl is None or bucket.facts.ownership == BUCKET_OWNER_ENFORCED)
        return cls(summary.complete, rules, asked, tuple(blind))

    def shows_end(self, finding: Mapping[str, Any]) -> bool:
        """True if the run looked at the whole subject of a finding that it does not have any more."""
        fields = finding.get("ProductFields", {})
        rule, kind, place = fields.get(RULE), fields.get(KIND), fields.get(PLACE)
        if not self.complete or (rule and rule not in self.rules):
            return False
        if kind == GroupKind.UNDECIDED.value and not self.asked:
            return False
        if kind not in (GroupKind.FINDING.value, GroupKind.VERDICT.value) or place is None:
            return True
        of_objects = "/" in place.removeprefix("s3://")
        return not (of_objects and any(spot.hides(place) for spot in self.blind))


def _blind(group: Group, bucket: str) -> Iterator[BlindSpot]:
    if group.prefix is None or (group.kind is not GroupKind.UNDECIDED and group.verdict is not Verdict.UNKNOWN):
        return
    keys = first_keys(group.samples)
    whole = len(keys) == group.count
    for place in keys if whole else [group.prefix]:
        yield BlindSpot(f"s3://{bucket}/{visible(place)}", whole)
