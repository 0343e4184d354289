"""Begin to keep facts of the target's last complete run: see that it is of the same bucket, and find the limits."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.audit.keeping.earlier import EarlierObjects
from auditor.audit.keeping.keeper import FactKeeper
from auditor.audit.keeping.turns import FactTurns
from auditor.config.settings import Settings
from auditor.model.bucket import BucketFacts
from auditor.model.dates import iso_date
from auditor.model.object import ARCHIVE, Acl, ObjectRef, Unread
from auditor.model.reuse import NO_PRIOR, Prior
from auditor.model.run_lines import ObjectLine
from auditor.model.summary import Summary
from auditor.rules.plan import Plan, head_groups
from auditor.runs.bucket_file import BucketFile
from auditor.runs.outdated_renewals import delete_outdated
from auditor.runs.plan_file import load_plan
from auditor.runs.reading import RunReader
from auditor.runs.renewals import CLOSE, ObjectId, RenewedObject, read_renewals

log = logging.getLogger(__name__)
_READABLE: Final = "retention_readable"
"""The option by which a rule is told that the caller may see retentions."""


class Opened(Struct, frozen=True):
    """The objects of an earlier run, what was read of some of them since, and who says which of these facts hold.

    ended: the time up to which the run may have read facts, in seconds since 1970.
    """

    objects: EarlierObjects
    renewals: Mapping[ObjectId, RenewedObject]
    keeper: FactKeeper
    ended: float

    def prior(self, ref: ObjectRef, line: ObjectLine | None, now: float) -> Prior | None:
        """Return the facts that hold for a listed object; None if there are none.

        line: of the earlier run; None if it has none. An ACL that was read since counts in place of the one on the
        line. A HEAD that was read since does not: whoever reads after events may see less of it. now: the present time,
        in seconds since 1970.
        """
        kept = None if line is None else self.keeper.prior(ref, line, now)
        renewed = self.renewals.get((ref.key, ref.version_id))
        if renewed is None:
            return kept
        sure = renewed.sure and not self._contradicts(renewed, line)
        later = self.keeper.prior(ref, renewed.line, now) if sure else None
        later, kept = later or NO_PRIOR, kept or NO_PRIOR
        if later.acl is None and kept.head is None:
            return None
        return replace(kept, acl=later.acl, acl_at=later.acl_at, acl_from=later.acl_from)

    def _contradicts(self, renewed: RenewedObject, line: ObjectLine | None) -> bool:
        """True if the run read another ACL than the renewal, and may have read it later."""
        if line is None or not isinstance(line.acl, Acl) or (line.read_at is not None and line.read_at.acl is not None):
            return False  # the run read none itself
        return line.acl != renewed.line.acl and iso_date(renewed.at).timestamp() <= self.ended


class Opening(Struct, frozen=True):
    """All that decides which facts of an earlier run are kept.

    run: the target's last complete run when this run began. settings: `keep` is set. facts: the facts of the bucket as
    this run read them. began: start of this run, in ISO 8601. ledger: True if the run has a ledger. tidies: True to
    delete the renewals that no run needs any more.
    """

    run: RunReader
    settings: Settings
    facts: BucketFacts
    plan: Plan
    began: str
    ledger: bool
    tidies: bool = True

    def open(self, start_after: str | None) -> Opened | None:
        """Begin to read the earlier run after the key start_after; None if nothing of it is kept. Blocks.

        Raises OutputError if the run is damaged.
        """
        file, summary, keep = self.run.bucket, self.run.summary, self.settings.keep
        if keep is None or file is None or summary is None or not summary.complete:
            return None
        states = [one.facts for one in file.read]
        if not all(_is_same(one, self.facts) for one in states):
            log.warning("nothing is reused from run %s: it had another bucket, server or caller", self.run.run_id)
            return None
        groups = head_groups(self.plan) | ({ARCHIVE} if self.ledger else frozenset())
        acl = keep.acl if all(shows_same_acls(one, self.facts) for one in states) else None
        head = None if self._sees_more(file.configuration) else keep.head(groups)
        keeper = FactKeeper(file.now, self._turns(acl), self._turns(head), values=self.settings.keep_metadata)
        if self.tidies:
            delete_outdated(self.run.store, self.run.bucket_name)
        renewals = read_renewals(self.run.store, self.run.bucket_name, file.now)
        if renewals is None:
            log.warning("nothing is reused from run %s: too many objects have been read since then", self.run.run_id)
            return None
        return Opened(EarlierObjects(self.run, start_after), renewals, keeper, self._ended(file, summary))

    def _ended(self, file: BucketFile, summary: Summary) -> float:
        """Return the time up to which the earlier run may have read facts, in seconds since 1970. The
        summary has the seconds of the last process alone, so of a run of several the time is not known: infinity.
        """
        if len(file.read) > 1 or load_plan(self.run.store, self.run.bucket_name, self.run.run_id) is not None:
            return float("inf")
        return iso_date(file.now).timestamp() + summary.seconds + CLOSE

    def _sees_more(self, before: Mapping[str, Any]) -> bool:
        """True if this run's caller sees retentions that the earlier one was not said to see: S3 leaves them out of the
        HEAD then. before: the configuration of the earlier run.
        """
        rules = before.get("rules")
        earlier = rules if isinstance(rules, Mapping) else {}
        return any(
            options.get(_READABLE) and not (earlier.get(rule) or {}).get(_READABLE)
            for rule, options in self.settings.rules.items()
        )

    def _turns(self, limit: float | None) -> FactTurns | None:
        return None if limit is None else FactTurns(limit, self.settings.every, iso_date(self.began).timestamp())


def shows_same_acls(before: BucketFacts, now: BucketFacts) -> bool:
    """True if GetObjectAcl shows of a stored ACL what it showed before: it leaves out grants to the public groups under
    IgnorePublicAcls (S3 User Guide, "Blocking public access to your Amazon S3 storage").
    """
    pairs = (
        (before.public_access_block, now.public_access_block),
        (before.account_public_access_block, now.account_public_access_block),
        (before.ownership, now.ownership),
    )
    return all(one == other and not isinstance(other, Unread) for one, other in pairs)


def _is_same(before: BucketFacts, now: BucketFacts) -> bool:
    """True unless the facts are of two buckets with one name, or of two callers, who may see different things."""
    pairs = ((before.owner, now.owner), (before.region, now.region), (before.own_id, now.own_id))
    known = ((one, other) for one, other in pairs if isinstance(one, str) and isinstance(other, str))
    return before.semantics is now.semantics and all(one == other for one, other in known)
