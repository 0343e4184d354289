"""Write the jobs for S3 Batch Operations: new ACLs for exposed objects, the way back, and allowed KMS keys (E03)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from msgspec import Struct

from auditor.hashing.batch.job import MOST_ROWS, NO_BUCKET, JobOwner, Manifest, job_request, row
from auditor.model.access import Verdict
from auditor.model.bucket import Encryption
from auditor.model.json_codec import encode_line, plain
from auditor.model.object import ANONYMOUS_OWNER, HELD, Acl, Head
from auditor.model.run_lines import ObjectLine
from auditor.offline.fix_kit.folder import KitFile, KitFolder
from auditor.offline.fix_kit.policy_change import PUBLIC, KitObject, agreed
from auditor.offline.iam.policy import Arns, document, statement
from auditor.rules.encryption import e03_wrong_key
from auditor.runs.reading import RunReader
from auditor.runs.run_files import RunPlan
from auditor.text import counted

PRIVATE: Final = "private"
OWNER_TOO: Final = "bucket-owner-full-control"

MOST_RESTORED: Final = 50
"""Largest number of different ACLs that a job of their own brings back."""
SNAPSHOT: Final = "acl-snapshot.jsonl.gz"
OTHERS: Final = "restore-others.jsonl"
ROLE: Final = "job-role.json"
_PERMISSIONS: Final = frozenset({"FULL_CONTROL", "READ", "WRITE", "READ_ACP", "WRITE_ACP"})

Operation = dict[str, Any]


class JobFiles(NamedTuple):
    """A job that was written: the names of its request and of its manifest, and the number of its objects."""

    request: str
    manifest: str
    objects: int


class JobName(NamedTuple):
    """The names of a job's manifest and request without their endings, and the job in words, before the objects."""

    manifest: str
    request: str
    words: str


class _Begun(Struct, frozen=True):
    """A manifest that grows. suffix: of its names."""

    file: KitFile
    suffix: str
    name: JobName
    operation: Operation


class JobWriter:
    """Writes manifests and job requests into a kit. run: the run whose bucket it repairs."""

    def __init__(self, folder: KitFolder, run: RunReader, arns: Arns) -> None:
        self.folder = folder
        self.bucket = run.bucket_name
        self.versions = run.begun_with.target.versions
        self.arns = arns
        self._run_id = run.run_id
        account = run.begun_with.facts.owner_account
        known = isinstance(account, str) and re.fullmatch("[0-9]{12}", account) is not None
        self._owner = JobOwner(partition=arns.partition, account=str(account) if known else None)
        self._open: dict[str, _Begun] = {}
        self._written: dict[str, list[JobFiles]] = {}

    def add(self, name: JobName, operation: Operation, line: ObjectLine) -> None:
        """Add an object to the job with this name. operation: JobOperation of the S3 Control API, the same for all."""
        if name.manifest in self._open and self._open[name.manifest].file.lines >= MOST_ROWS:
            self._request(name.manifest)
        if name.manifest not in self._open:
            part = len(self._written.get(name.manifest, ()))
            suffix = f"-{part + 1}" if part else ""
            file = self.folder.file(f"{name.manifest}{suffix}.csv")
            self._open[name.manifest] = _Begun(file, suffix, name, operation)
        version_id = (line.version_id or "null") if self.versions else None
        self._open[name.manifest].file.write(row(self.bucket, line.key, version_id).encode())

    def end(self) -> None:
        """Write the requests of the jobs that are left."""
        for manifest in sorted(self._open):
            self._request(manifest)

    def written(self, *manifests: str) -> list[JobFiles]:
        """Return the jobs with these manifests, sorted."""
        return sorted(job for manifest in manifests for job in self._written.get(manifest, ()))

    def role(self, *statements: dict[str, Any]) -> dict[str, Any]:
        """Return the IAM policy of a job's role: these statements, and the manifest and report of the job."""
        place = [self.arns.objects(NO_BUCKET, f"fix-kit/{self._run_id}/")]
        return document(
            *statements,
            statement("ReadManifest", ["s3:GetObject", "s3:GetObjectVersion"], place),
            statement("WriteReport", ["s3:PutObject"], place),
        )

    def _request(self, manifest: str) -> None:
        begun = self._open.pop(manifest)
        file, stem, request = begun.file, f"{manifest}{begun.suffix}.csv", f"{begun.name.request}{begun.suffix}.json"
        value = job_request(
            Manifest(
                bucket=None,
                key=f"fix-kit/{self._run_id}/{stem}",
                etag=file.md5,
                report=f"fix-kit/{self._run_id}/report-{request.removesuffix('.json')}",
                versions=self.versions,
            ),
            begun.operation,
            self._owner,
            description=f"{begun.name.words} {file.lines} objects of {self.bucket}",
            token=f"{self._run_id}-{file.md5[:12]}",
            confirm=True,
        )
        self.folder.put_json(request, value)
        self._written.setdefault(manifest, []).append(JobFiles(request, stem, file.lines))


class AclJobs:
    """Writes into a kit the jobs that set canned ACLs, the snapshot, and the jobs that restore. restored: the ACLs for
    which a job is written; the objects with other ACLs are listed.
    """

    def __init__(self, jobs: JobWriter, restored: Iterable[Acl]) -> None:
        self._jobs = jobs
        self._folder = jobs.folder
        self._numbers = {
            acl: number
            for number, acl in enumerate(restored, 1)
            if all(grant.permission in _PERMISSIONS for grant in acl.grants)
        }

    @property
    def changing(self) -> list[JobFiles]:
        """The jobs that change ACLs, once they are written."""
        return self._jobs.written(*(name.manifest for name in NAMES.values()))

    @property
    def restoring(self) -> list[JobFiles]:
        """The jobs that bring ACLs back, once they are written."""
        return self._jobs.written(*(_restore(number).manifest for number in self._numbers.values()))

    @property
    def others(self) -> int:
        """Number of objects that no job brings back."""
        return self._folder.lines(OTHERS)

    def add(self, line: ObjectLine, acl: Acl, canned: str) -> None:
        """Take an object that gets a canned ACL in place of its own."""
        self._jobs.add(NAMES[canned], _acl_operation({"CannedAccessControlList": canned}), line)
        values = {"key": line.key, "version_id": line.version_id, "owner": acl.owner, "grants": plain(acl.grants)}
        self._folder.file(SNAPSHOT, packed=True).write(encode_line(values))
        if (number := self._numbers.get(acl)) is not None:
            self._jobs.add(_restore(number), _acl_operation({"AccessControlList": acl_values(acl, _of_batch)}), line)
            return
        version = {} if line.version_id is None else {"VersionId": line.version_id}
        asked = {"Bucket": self._jobs.bucket, "Key": line.key, **version, "AccessControlPolicy": acl_values(acl)}
        self._folder.file(OTHERS).write(encode_line(asked))

    def end(self) -> None:
        """Write the policy of the jobs' role."""
        if self._folder.lines(SNAPSHOT):
            actions = ["s3:PutObjectVersionAcl"] if self._jobs.versions else ["s3:PutObjectAcl"]
            changes = statement("ChangeAcls", actions, [self._jobs.arns.objects(self._jobs.bucket)])
            self._folder.put_json(ROLE, self._jobs.role(changes))


NAMES: Final = {
    PRIVATE: JobName("acl-changes", "acl-job", f"the ACL {PRIVATE} for"),
    OWNER_TOO: JobName("acl-changes-foreign", "acl-job-foreign", f"the ACL {OWNER_TOO} for"),
}
"""The job for each canned ACL."""


def _restore(number: int) -> JobName:
    return JobName(f"restore-{number:02d}", f"restore-{number:02d}", "bring back an ACL of")


def _acl_operation(policy: Operation) -> Operation:
    return {"S3PutObjectAcl": {"AccessControlPolicy": policy}}


def _of_api(grantee: str) -> dict[str, str]:
    return {"Type": "Group", "URI": grantee} if "://" in grantee else {"Type": "CanonicalUser", "ID": grantee}


def _of_batch(grantee: str) -> dict[str, str]:
    return {"TypeIdentifier": "uri" if "://" in grantee else "id", "Identifier": grantee}


def acl_values(acl: Acl, named: Callable[[str], dict[str, str]] = _of_api) -> dict[str, Any]:
    """Return AccessControlPolicy of the S3 API; with _of_batch, S3AccessControlList of the S3 Control API."""
    grants = [{"Grantee": named(grant.grantee), "Permission": grant.permission} for grant in acl.grants]
    return {"Owner": {"ID": acl.owner}, "Grants": grants}


_WRITING: Final = frozenset({"WRITE_ACP", "FULL_CONTROL"})


class Kept(StrEnum):
    """The reason for which an exposed object keeps its ACL."""

    INTENDED = "intended"
    """An exception says that it is public on purpose."""
    BY_POLICY = "by-policy"
    """No grant to everyone opens it: the bucket policy does."""
    UNREAD = "unread"
    """Its ACL is not known: whether a grant opens it too is not known either."""
    ANONYMOUS = "anonymous"
    """Nobody owns it, so that everyone may change its ACL again."""
    FOREIGN = "foreign"
    """Another account owns it, and lets the bucket's owner not change the ACL."""


class AclCloser:
    """Chooses the objects that are exposed by their ACL. own: canonical ID of the bucket's owner."""

    def __init__(self, own: str) -> None:
        self._own = own
        self.kept: Counter[Kept] = Counter()
        """Number of exposed objects that keep their ACL."""

    def canned(self, one: KitObject) -> str | None:
        """Return the canned ACL that the object is to get; None if it keeps its own."""
        if one.line.verdict is not Verdict.EXPOSED:
            return None
        reason = self._kept(one)
        if reason is not None:
            self.kept[reason] += 1
            return None
        acl = one.line.acl
        return PRIVATE if isinstance(acl, Acl) and acl.owner == self._own else OWNER_TOO

    def _kept(self, one: KitObject) -> Kept | None:
        acl = one.line.acl
        if one.is_intended:
            return Kept.INTENDED
        if not isinstance(acl, Acl):
            return Kept.UNREAD
        if acl.owner != ANONYMOUS_OWNER and not any(grant.grantee in PUBLIC for grant in acl.grants):
            return Kept.BY_POLICY
        if acl.owner == ANONYMOUS_OWNER:
            return Kept.ANONYMOUS
        if acl.owner == self._own:
            return None
        may = any(grant.grantee == self._own and grant.permission in _WRITING for grant in acl.grants)
        return None if may else Kept.FOREIGN


RULE: Final = e03_wrong_key.check.id
NO_KEY: Final = "REPLACE-WITH-THE-ARN-OF-THE-KEY"
KEY_SNAPSHOT: Final = "key-snapshot.jsonl.gz"
KEY_ROLE: Final = "key-job-role.json"
MOST_KEYS: Final = 50
"""Largest number of present keys that the role's policy names one by one."""
NAME: Final = JobName("key-changes", "key-job", "an allowed KMS key for")
_KMS: Final = "aws:kms"
_ACTIONS: Final = ["kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncrypt*"]
"""The rights on the keys that UpdateObjectEncryption needs (S3 API reference)."""


class KeptKey(StrEnum):
    """The reason for which an object keeps its key."""

    TWO_LAYERS = "two-layers"
    LOCKED = "locked"


_KEPT: Final[Mapping[str, str]] = {
    Kept.INTENDED: "are exposed by intent, as an exception says: their ACLs stay",
    Kept.BY_POLICY: "are exposed by the bucket policy, not by their ACL: look at `auditor what-if`",
    Kept.UNREAD: "have an ACL that was not read, and that may open them besides the bucket policy",
    Kept.ANONYMOUS: "belong to the anonymous user, so that anyone may open them again: copy them over themselves, or"
    " turn ACLs off",
    Kept.FOREIGN: "belong to an account that does not let the bucket's owner change the ACL: ask it, or turn ACLs off",
    KeptKey.TWO_LAYERS: "are under two layers of KMS (DSSE-KMS), which S3 does not update: copy them over themselves",
    KeptKey.LOCKED: "are protected by Object Lock, so that S3 refuses to change the key: copy them to new versions",
}


def kept_sentences(kept: Mapping[Kept, int] | Mapping[KeptKey, int], noun: str) -> Iterator[str]:
    """Yield a sentence for each reason for which objects keep their ACL or key. kept: number of them by the reason."""
    return (f"{counted(number, noun)} {agreed(_KEPT[reason], number)}" for reason, number in kept.items())


class WrongKeys:
    """Writes into a kit the job that puts the objects with an E03 finding under an allowed key, and their present keys.

    jobs: writes the job. file: run.json of the run, whose configuration has the allowed keys.
    """

    def __init__(self, jobs: JobWriter, file: RunPlan) -> None:
        self._jobs = jobs
        self._now = file.now
        self.key = _allowed(file)
        default = file.facts.encryption
        bucket_key = isinstance(default, Encryption) and default.bucket_key_enabled
        sse = {"SSEKMS": {"KMSKeyArn": self.key, "BucketKeyEnabled": bucket_key}}
        self._operation = {"S3UpdateObjectEncryption": {"ObjectEncryption": sse}}
        self._present: set[str] = set()
        self.kept: Counter[KeptKey] = Counter()
        """Number of objects that the job leaves as they are, by the reason."""

    @property
    def changing(self) -> Sequence[JobFiles]:
        """The jobs, once they are written."""
        return self._jobs.written(NAME.manifest)

    def add(self, one: KitObject) -> None:
        """Take the next object of the run. It gets the key if E03 found it, and no exception covers that."""
        line = one.line
        if RULE not in line.rules or RULE in one.excepted_rules or not isinstance(line.head, Head):
            return
        if line.head.server_side_encryption != _KMS:
            self.kept[KeptKey.TWO_LAYERS] += 1
        elif self._is_locked(line.head):
            self.kept[KeptKey.LOCKED] += 1
        else:
            self._change(one, line.head)

    def end(self) -> None:
        """Write the policy of the job's role."""
        if not self._jobs.folder.lines(KEY_SNAPSHOT):
            return
        arns = self._jobs.arns
        keys = sorted({self.key, *self._present})
        named = keys if len(keys) <= MOST_KEYS else [arns.anywhere("kms", "key/*")]
        role = self._jobs.role(
            statement("ChangeKeys", ["s3:UpdateObjectEncryption"], [arns.objects(self._jobs.bucket)]),
            statement("UseKeys", _ACTIONS, named),
        )
        self._jobs.folder.put_json(KEY_ROLE, role)

    def _change(self, one: KitObject, head: Head) -> None:
        line = one.line
        self._jobs.add(NAME, self._operation, line)
        key = head.sse_kms_key_id
        values: dict[str, Any] = {"key": line.key, "version_id": line.version_id, "sse_kms_key_id": key}
        values["bucket_key_enabled"] = bool(head.bucket_key_enabled)
        self._jobs.folder.file(KEY_SNAPSHOT, packed=True).write(encode_line(values))
        if key is not None and len(self._present) <= MOST_KEYS:
            self._present.add(key)

    def _is_locked(self, head: Head) -> bool:
        """True if Object Lock protects the object: S3 then refuses to change its key (UpdateObjectEncryption)."""
        held = HELD in (head.object_lock_event_hold, head.object_lock_legal_hold_status)
        until = head.object_lock_retain_until_date
        return held or (head.object_lock_mode is not None and (until is None or until > self._now))


def _allowed(file: RunPlan) -> str:
    """Return the ARN of the key for the job: an allowed one in the bucket's region, one of the bucket's own account
    first, because S3 refuses others by default; NO_KEY if the configuration names none.
    """
    options = (file.configuration.get("rules") or {}).get(RULE) or {}
    arns = [key.split(":") for key in options.get("keys", ()) if key.startswith("arn:")]
    here = [parts for parts in arns if not isinstance(file.facts.region, str) or parts[3] == file.facts.region]
    here.sort(key=lambda parts: parts[4] != file.facts.owner_account)
    return ":".join(here[0]) if here else NO_KEY
