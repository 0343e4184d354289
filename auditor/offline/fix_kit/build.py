"""Prepare the repair of a bucket from a run folder: files for its owner, who sends each call by hand.

Nothing here sends a call to S3: the run folder is read, and a local directory is written.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from msgspec.structs import replace

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
    access_control,
)
from auditor.offline.fix_kit.folder import KitFolder
from auditor.offline.fix_kit.policy_change import (
    UNINTENDED,
    Carried,
    GrantReader,
    KitObject,
    PolicyDraft,
    PolicyWriter,
    agreed,
    kit_objects,
    no_policy,
    sentences,
)
from auditor.offline.fix_kit.prefix_cover import KeyCover
from auditor.offline.fix_kit.readiness import Assessment, Assessor, SeenObjects
from auditor.offline.fix_kit.readme import BUCKET_ACL, POLICY_BEFORE, POLICY_FILE, Kit, readme
from auditor.offline.iam.arns import Arns
from auditor.progress import Snapshot
from auditor.runs.reading import RunReader
from auditor.runs.run_files import RunPlan
from auditor.text import counted, visible
from auditor.verdict.change import OBJECT_WRITER, BucketChange

MOST_ACLS: Final = 10_000
"""Largest number of different ACLs that are counted, to find the most frequent ones."""
PREFERRED: Final = "BucketOwnerPreferred"
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
            account = facts.owner_account
            writer = JobWriter(
                folder,
                target.bucket,
                run_id=self._run.run_id,
                versions=target.versions,
                arns=arns,
                account=account if isinstance(account, str) and re.fullmatch("[0-9]{12}", account) else None,
            )
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
        self,
        folder: KitFolder,
        draft: PolicyDraft,
        grants: GrantReader,
        jobs: AclJobs,
        keys: WrongKeys,
    ) -> Kit:
        """Write the remaining files, and return the kit."""
        facts, target, summary = self._file.facts, self._file.target, self._run.summary
        bucket_acl = facts.acl if isinstance(facts.acl, Acl) else None
        if bucket_acl is not None and any(grant.grantee != self._own for grant in bucket_acl.grants):
            value = {"Bucket": target.bucket, "AccessControlPolicy": access_control(bucket_acl)}
            folder.put(BUCKET_ACL, json.dumps(value, indent=1) + "\n")
        if draft.text is not None:
            folder.put(POLICY_FILE, draft.text)
            if self._policy:
                folder.put(POLICY_BEFORE, self._policy)
        acls_off = facts.ownership == BUCKET_OWNER_ENFORCED
        assessor = Assessor(target, facts, self._seen)
        lacking_now, lacking_after = _lacking(draft, grants)
        change = BucketChange(acls=False, policy=draft.text)
        kit = Kit(
            run=self._run.run_id,
            source=self._run.uri,
            bucket=target.bucket,
            versions=target.versions,
            place=str(folder.place),
            files=(),
            acls_off=acls_off,
            now=_READY if acls_off else assessor.assess(lacking_now),
            after=_READY if acls_off else assessor.assess(lacking_after),
            policy=draft,
            has_policy_before=bool(self._policy),
            ownership=PREFERRED if facts.ownership == PREFERRED else OBJECT_WRITER,
            left_out=dict(grants.left_out),
            kept={reason.value: number for reason, number in self._closer.kept.items()},
            changing=tuple(jobs.changing),
            restoring=tuple(jobs.restoring),
            others=jobs.others,
            key_jobs=tuple(keys.changing),
            keys_kept={reason.value: number for reason, number in keys.kept.items()},
            remarks=tuple(change.remarks(facts)),
            exceptions=() if summary is None else tuple(one for one in summary.exceptions if one.matched),
            has_bucket_acl=BUCKET_ACL in folder.names,
        )
        return _kept(folder, kit)


def _kept(folder: KitFolder, kit: Kit) -> Kit:
    """Write the documents that name all files, give the folder its name, and return the kit."""
    kit = replace(kit, files=("README.md", *sorted(folder.names), "readiness.json", "kit.json"))
    folder.put("README.md", readme(kit))
    document = kit.to_dict()
    folder.put("readiness.json", json.dumps(document["readiness"], indent=1) + "\n")
    folder.put("kit.json", json.dumps(document, indent=1) + "\n")
    folder.keep()
    return kit


def _lacking(draft: PolicyDraft, grants: GrantReader) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return sentences on the grants that the present policy does not carry, and on those that the kit's policy does
    not. An exposed object has grants to named accounts, too, which its audience does not show.
    """
    uncarried = {reason: number for reason, number in grants.left_out.items() if reason not in UNINTENDED}
    never = (*draft.left_out, *sentences(uncarried))
    now = "have grants that the present policy does not carry"
    words = f"{counted(grants.carrying, 'object')} {agreed(now, grants.carrying)}"
    return ((*((words,) if grants.carrying and not draft.nothing else ()), *never), (*draft.lacking, *never))


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
