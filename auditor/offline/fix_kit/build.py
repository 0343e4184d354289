"""Prepare the repair of a bucket from a run folder: files for its owner, who sends each call by hand.

Nothing here sends a call to S3: the run folder is read, and a local directory is written.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from auditor.aws.plain import partition_of
from auditor.errors import RunStopped, UsageError
from auditor.model.bucket import BUCKET_OWNER_ENFORCED
from auditor.model.object import Acl, Outcome, Skipped, Unread
from auditor.offline.fix_kit.acl_jobs import (
    MOST_RESTORED,
    RULE,
    AclCloser,
    AclJobs,
    JobWriter,
    WrongKeys,
    acl_values,
)
from auditor.offline.fix_kit.folder import KitFolder
from auditor.offline.fix_kit.policy_change import (
    Carried,
    GrantReader,
    KitObject,
    PolicyDraft,
    PolicyWriter,
    kit_objects,
    lacking,
    no_policy,
)
from auditor.offline.fix_kit.prefix_cover import KeyCover
from auditor.offline.fix_kit.readiness import Assessment, SeenObjects, assess
from auditor.offline.fix_kit.readme import BUCKET_ACL, POLICY_BEFORE, POLICY_FILE, Kit, readme
from auditor.offline.iam.policy import Arns
from auditor.progress import Snapshot
from auditor.runs.reading import RunReader
from auditor.runs.run_files import RunPlan
from auditor.text import visible
from auditor.verdict.change import BucketChange

MOST_ACLS: Final = 10_000
"""Largest number of different ACLs that are counted, to find the most frequent ones."""
_AT_ONCE: Final = 1024
_READY: Final = Assessment((), ())


class FixKit:
    """Writes a kit. Call write() once; it blocks. place: the new directory. stopped: returns True once the work is to
    stop. Raises UsageError for a run that lacks the facts, and for a directory that is not empty.
    """

    def __init__(self, run: RunReader, place: str, stopped: Callable[[], bool] = lambda: False) -> None:
        self._run = run
        self._file = run.begun_with
        self._place = place
        self._stopped = stopped
        self._own, self._policy = _facts_of(run, self._file)
        self._closer = AclCloser(self._own)
        self._acls: Counter[Acl] = Counter()
        self._seen = SeenObjects(self._own)
        self._objects = 0
        self._reading = 1
        self._started = time.monotonic()

    def write(self) -> Kit:
        """Read the run twice, write the kit, and return it. Raises RunStopped, OutputError."""
        facts, target = self._file.facts, self._file.target
        arns = Arns(partition_of(facts.region if isinstance(facts.region, str) else None))
        grants = GrantReader(self._own, facts.semantics, versions=target.versions)
        with KitFolder(self._place) as folder:
            draft = self._draft(grants, PolicyWriter(target.bucket, arns, facts.semantics, self._policy or ""))
            self._objects, self._reading = 0, 2
            writer = JobWriter(folder, self._run, arns)
            jobs = AclJobs(writer, [acl for acl, _ in self._acls.most_common(MOST_RESTORED)])
            keys = WrongKeys(writer, self._file)
            for one in self._counted(kit_objects(self._run)):
                self._seen.add(one)
                keys.add(one)
                canned = self._closer.canned(one)
                if canned is not None and isinstance(one.line.acl, Acl):
                    jobs.add(one.line, one.line.acl, canned)
            for part in (writer, jobs, keys):
                part.end()
            return self._finish(folder, draft, grants, jobs, keys)

    def _draft(self, grants: GrantReader, writer: PolicyWriter) -> PolicyDraft:
        target = self._file.target
        cover = KeyCover(writer.add, target.prefix)
        nothing: frozenset[Carried] = frozenset()
        if target.start_after is not None and target.start_after.startswith(target.prefix):
            cover.add(target.start_after, nothing)
        for key, found in grants.by_key(self._noted(kit_objects(self._run))):
            cover.add(key, found)
        if target.stop_at is not None and target.stop_at.startswith(target.prefix):
            cover.add(f"{target.stop_at}\0", nothing)
        cover.end()
        if self._policy is None:
            fact = self._file.facts.parsed_policy
            return no_policy(
                f"the present policy was not read ({_why(fact)}), and a new one could drop some of its statements"
            )
        if not cover.sorted:
            return no_policy("the lines of the run are not in the order of their keys, so that no prefix is safe")
        return writer.draft()

    def _noted(self, objects: Iterable[KitObject]) -> Iterator[KitObject]:
        """Yield the objects, and count the ACLs of those that a job may change."""
        closer = AclCloser(self._own)
        for one in self._counted(objects):
            acl = one.line.acl
            if isinstance(acl, Acl) and one.line.outcome is not Outcome.VANISHED:
                known = acl in self._acls or len(self._acls) < MOST_ACLS
                if known and closer.canned(one) is not None:
                    self._acls[acl] += 1
            yield one

    def _counted(self, objects: Iterable[KitObject]) -> Iterator[KitObject]:
        for one in objects:
            self._objects += 1
            if not self._objects % _AT_ONCE and self._stopped():
                raise RunStopped(f"the kit of the run {self._run.run_id} was not finished: nothing is written")
            yield one

    def snapshot(self) -> Snapshot:
        """Return the present counts, for a progress line."""
        return Snapshot(
            what=f"run {self._run.run_id}",
            objects=self._objects,
            seconds=time.monotonic() - self._started,
            detail=f"reading {self._reading} of 2",
            expected=None if self._run.summary is None else self._run.summary.coverage.listed,
        )

    def _finish(
        self, folder: KitFolder, draft: PolicyDraft, grants: GrantReader, jobs: AclJobs, keys: WrongKeys
    ) -> Kit:
        """Write the remaining files, and return the kit."""
        facts, target = self._file.facts, self._file.target
        if isinstance(facts.acl, Acl) and any(grant.grantee != self._own for grant in facts.acl.grants):
            folder.put_json(BUCKET_ACL, {"Bucket": target.bucket, "AccessControlPolicy": acl_values(facts.acl)})
        if draft.text is not None:
            folder.put(POLICY_FILE, draft.text)
            if self._policy:
                folder.put(POLICY_BEFORE, self._policy)
        acls_off = facts.ownership == BUCKET_OWNER_ENFORCED
        now, after = (
            _READY if acls_off else assess(target, facts, self._seen, without) for without in lacking(draft, grants)
        )
        kit = Kit(
            run=self._run,
            place=str(folder.place),
            files=("README.md", *sorted(folder.names), "readiness.json", "kit.json"),
            acls_off=acls_off,
            now=now,
            after=after,
            policy=draft,
            left_out=grants.left_out,
            kept=self._closer.kept,
            acls=jobs,
            keys=keys,
            remarks=tuple(BucketChange(acls=False, policy=draft.text).remarks(facts)),
            has_policy_before=bool(self._policy),
        )
        folder.put("README.md", readme(kit))
        document = kit.to_dict()
        folder.put_json("readiness.json", document["readiness"])
        folder.put_json("kit.json", document)
        folder.keep()
        return kit


def _facts_of(run: RunReader, file: RunPlan) -> tuple[str, str | None]:
    """Return the canonical ID of the bucket's owner, and the text of the bucket policy; None if it is not known. Raises
    UsageError if the run does not know the owner, is not complete, or has no ACLs.
    """
    facts, ask = file.facts, file.ask
    if not run.complete:
        raise UsageError(
            f"the run {run.run_id} is not complete: a kit would lack the objects that it did not reach, so complete it"
            " with `auditor audit --resume` first"
        )
    acls_off = facts.ownership == BUCKET_OWNER_ENFORCED
    if acls_off and not (run.summary and run.summary.rules.get(RULE)):
        raise UsageError(f"ACLs are off on {file.target.bucket} already (BucketOwnerEnforced): no kit is needed")
    if ask.acl is not None and not acls_off:
        raise UsageError(
            f"the run {run.run_id} read no ACLs ({visible(ask.acl.reason)}): audit again with rules on ACLs"
        )
    if not isinstance(facts.owner, str) or not facts.owner:
        raise UsageError(
            f"the run {run.run_id} does not know the bucket's owner ({_why(facts.owner)}): audit again with the"
            " right to read its ACL"
        )
    known = isinstance(facts.policy, str) and not isinstance(facts.parsed_policy, Unread | Skipped)
    return facts.owner, facts.policy if known and isinstance(facts.policy, str) else None


def _why(fact: object) -> str:
    if isinstance(fact, Unread):
        return visible(fact.code)
    return visible(fact.reason) if isinstance(fact, Skipped) else "it is empty"
