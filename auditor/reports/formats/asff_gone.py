"""Tell if a run shows that a finding of an earlier run is over, or only did not look where it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

from msgspec import Struct

from auditor.model.access import Verdict
from auditor.model.bucket import BUCKET_OWNER_ENFORCED
from auditor.model.rollup import Group, GroupKind, RollUps
from auditor.model.summary import Summary
from auditor.reports.compare import judged_rules
from auditor.reports.formats.asff_finding import KIND, PLACE, RULE
from auditor.runs.bucket_file import BucketFile, ReadFacts
from auditor.text import visible


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
    def by(cls, summary: Summary, rollups: RollUps, bucket: BucketFile) -> Self:
        """Return what the run looked at. bucket: its bucket.json."""
        rules = judged_rules(bucket, summary.rules_undecided)
        blind = (spot for group in rollups.groups for spot in _blind(group, summary.target.bucket))
        asked = all(_asked_all(one) for one in bucket.read)
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


def _asked_all(read: ReadFacts) -> bool:
    return read.ask.head is None and (read.ask.acl is None or read.facts.ownership == BUCKET_OWNER_ENFORCED)


def _blind(group: Group, bucket: str) -> Iterator[BlindSpot]:
    if group.prefix is None or (group.kind is not GroupKind.UNDECIDED and group.verdict is not Verdict.UNKNOWN):
        return
    keys = [sample.key for sample in group.samples if sample.key is not None]
    if len(keys) < group.count:
        yield BlindSpot(f"s3://{bucket}/{visible(group.prefix)}", whole=False)
        return
    for key in keys:
        yield BlindSpot(f"s3://{bucket}/{visible(key)}", whole=True)
