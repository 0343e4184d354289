"""Predict the effect of each step of a kit on each object of the run."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, field

from auditor.audit.kit.closing import AclCloser
from auditor.audit.kit.grants import KitObject
from auditor.audit.what_if import ChangedJudges, Sink
from auditor.model.access import ObjectAccess, Verdict
from auditor.model.object import Acl, Outcome
from auditor.reports.lines import encode_line
from auditor.reports.what_if import AccessChange, WhatIfCounts, change_of, changed_line
from auditor.verdict.change import BucketChange

POLICY: Final = "policy"
JOBS: Final = "jobs"
JOBS_ALONE: Final = "jobs-alone"
OFF: Final = "acls-off"
OFF_NOW: Final = "acls-off-now"
PREDICTED: Final = "predicted.jsonl.gz"
"""The file with a line for each object that the policy and the jobs move, in the form of `auditor what-if --keys`."""


class Effect(Struct):
    """The effect of a step. name: its name in JSON. words: the step in words. intended_lost: number of objects that are
    public on purpose, and that the step closes.
    """

    name: str
    words: str
    counts: WhatIfCounts = field(default_factory=WhatIfCounts)
    intended_lost: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {"step": self.name, "words": self.words, "intended_lost": self.intended_lost, **self.counts.to_dict()}


class KitEffects:
    """Counts the effects, one object after the other. policy: text of the merged policy; None if the kit has none.
    sink: takes the line of each object that the policy and the jobs move.
    """

    def __init__(self, judges: ChangedJudges, closer: AclCloser, policy: str | None, sink: Sink) -> None:
        self._closer = closer
        self._sink = sink
        self._today = judges.under(BucketChange())
        self._off_now = judges.under(BucketChange(acls=False))
        self._merged = judges.under(BucketChange(policy=policy))
        self._off = judges.under(BucketChange(acls=False, policy=policy))
        with_policy = "the policy is put" if policy is not None else "the policy stays"
        self._by_name = {
            POLICY: Effect(POLICY, "policy.json is put, nothing else"),
            JOBS: Effect(JOBS, f"{with_policy}, and the jobs change the ACLs"),
            JOBS_ALONE: Effect(JOBS_ALONE, "the jobs change the ACLs, without policy.json"),
            OFF: Effect(OFF, f"{with_policy}, and ACLs are turned off (BucketOwnerEnforced)"),
            OFF_NOW: Effect(OFF_NOW, "ACLs are turned off today, without this kit"),
        }
        self._has_policy = policy is not None
        self._has_jobs = False

    def __getitem__(self, name: str) -> Effect:
        return self._by_name[name]

    def add(self, one: KitObject) -> str | None:
        """Count an object, and return the canned ACL that it is to get; None if it keeps its ACL."""
        line = one.line
        if line.outcome is Outcome.VANISHED:
            return None
        found = line.evidence
        today = self._today.access(found)
        canned = self._closer.canned(one, today.verdict)
        acl = self._closer.acl(canned, found.acl.owner) if canned and isinstance(found.acl, Acl) else None
        self._has_jobs = self._has_jobs or canned is not None
        merged = self._merged.access(found)
        self._count(POLICY, one, today, merged)
        change = self._count(JOBS, one, today, merged if acl is None else self._merged.access(found, acl))
        if change.moves or not change.predictable:
            self._sink(encode_line(changed_line(line.key, line.version_id, change)))
        self._count(JOBS_ALONE, one, today, today if acl is None else self._today.access(found, acl))
        self._count(OFF, one, today, self._off.access(found))
        self._count(OFF_NOW, one, today, self._off_now.access(found))
        return canned

    def _count(self, name: str, one: KitObject, before: ObjectAccess, after: ObjectAccess) -> AccessChange:
        effect = self._by_name[name]
        change = change_of(before, after)
        effect.counts.add(one.line.key, one.line.version_id, change)
        closed = before.verdict is Verdict.EXPOSED and after.verdict not in (Verdict.EXPOSED, Verdict.UNKNOWN)
        if closed and one.is_intended:
            effect.intended_lost += 1
        return change

    @property
    def shown(self) -> list[Effect]:
        """The effects of the steps that the kit has, in the order of the steps."""
        names = [*([POLICY] if self._has_policy else []), *([JOBS] if self._has_jobs else [])]
        if self._has_policy and self._has_jobs:
            names.append(JOBS_ALONE)
        names += [OFF, OFF_NOW] if self._has_policy else [OFF_NOW]
        return [self._by_name[name] for name in names]

    @property
    def opened(self) -> int:
        """Number of objects that the policy opens to somebody: none, unless the policy is wrong."""
        return self._by_name[POLICY].counts.wider

    def withdraw_policy(self) -> None:
        """Take the effects without the policy in place of those with it."""
        self._has_policy = False
        self._by_name[JOBS], self._by_name[OFF] = self._by_name[JOBS_ALONE], self._by_name[OFF_NOW]
