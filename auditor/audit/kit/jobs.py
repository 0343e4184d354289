"""Write the manifests and job requests of S3 Batch Operations: those that change ACLs, those that bring the ACLs back,
and those that re-encrypt objects under an allowed key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from msgspec import Struct

from auditor.audit.kit.closing import OWNER_TOO, PRIVATE
from auditor.audit.kit.folder import KitFile, KitFolder
from auditor.aws.iam.arns import Arns
from auditor.aws.iam.policy import document, statement
from auditor.hashing.batch.job import MOST_ROWS, NO_BUCKET, JobOwner, Manifest, job_request, row
from auditor.model.json_codec import encode_line, plain
from auditor.model.object import Acl
from auditor.model.run_lines import ObjectLine

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
    """Writes manifests and job requests into a kit. bucket: its name. account: number of its account; None if it is not
    known. most_rows: largest number of rows of a manifest.
    """

    def __init__(
        self,
        folder: KitFolder,
        bucket: str,
        *,
        run_id: str,
        versions: bool,
        arns: Arns,
        account: str | None,
        most_rows: int = MOST_ROWS,
    ) -> None:
        self.folder = folder
        self.bucket = bucket
        self.versions = versions
        self.arns = arns
        self._run_id = run_id
        self._account = account
        self._most_rows = most_rows
        self._open: dict[str, _Begun] = {}
        self._parts: dict[str, int] = {}
        self._written: dict[str, list[JobFiles]] = {}

    def add(self, name: JobName, operation: Operation, line: ObjectLine) -> None:
        """Add an object to the job with this name. operation: JobOperation of the S3 Control API, the same for all."""
        if name.manifest in self._open and self._open[name.manifest].file.lines >= self._most_rows:
            self._request(name.manifest)
        if name.manifest not in self._open:
            part = self._parts[name.manifest] = self._parts.get(name.manifest, 0) + 1
            suffix = "" if part == 1 else f"-{part}"
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
            JobOwner(partition=self.arns.partition, account=self._account),
            description=f"{begun.name.words} {file.lines} objects of {self.bucket}",
            token=f"{self._run_id}-{file.md5[:12]}",
            confirm=True,
        )
        self.folder.put(request, json.dumps(value, indent=1) + "\n")
        self._written.setdefault(manifest, []).append(JobFiles(request, stem, file.lines))


class AclJobs:
    """Writes into a kit the jobs that set canned ACLs, the snapshot, and the jobs that restore. restored: the ACLs for
    which a job is written; the objects with other ACLs are listed.
    """

    def __init__(self, jobs: JobWriter, restored: Iterable[Acl]) -> None:
        self._jobs = jobs
        self._folder = jobs.folder
        self._numbers = {acl: number for number, acl in enumerate(restored, 1) if _is_known(acl)}
        self._snapshot: KitFile | None = None
        self._others: KitFile | None = None

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
        return self._others.lines if self._others else 0

    @property
    def objects(self) -> int:
        """Number of objects that the jobs change."""
        return self._snapshot.lines if self._snapshot else 0

    def add(self, line: ObjectLine, acl: Acl, canned: str) -> None:
        """Take an object that gets a canned ACL in place of its own."""
        self._jobs.add(NAMES[canned], _acl_operation({"CannedAccessControlList": canned}), line)
        if self._snapshot is None:
            self._snapshot = self._folder.packed(SNAPSHOT)
        values = {"key": line.key, "version_id": line.version_id, "owner": acl.owner, "grants": plain(acl.grants)}
        self._snapshot.write(encode_line(values))
        number = self._numbers.get(acl)
        if number is not None:
            self._jobs.add(_restore(number), _acl_operation({"AccessControlList": _batch_acl(acl)}), line)
            return
        if self._others is None:
            self._others = self._folder.file(OTHERS)
        self._others.write(encode_line(put_parameters(self._jobs.bucket, line, acl)))

    def end(self) -> None:
        """Write the policy of the jobs' role."""
        if self.objects:
            actions = ["s3:PutObjectVersionAcl"] if self._jobs.versions else ["s3:PutObjectAcl"]
            changes = statement("ChangeAcls", actions, [self._jobs.arns.objects(self._jobs.bucket)])
            self._folder.put(ROLE, json.dumps(self._jobs.role(changes), indent=1) + "\n")


NAMES: Final = {
    PRIVATE: JobName("acl-changes", "acl-job", f"the ACL {PRIVATE} for"),
    OWNER_TOO: JobName("acl-changes-foreign", "acl-job-foreign", f"the ACL {OWNER_TOO} for"),
}
"""The job for each canned ACL."""


def _restore(number: int) -> JobName:
    return JobName(f"restore-{number:02d}", f"restore-{number:02d}", "bring back an ACL of")


def _acl_operation(policy: Operation) -> Operation:
    return {"S3PutObjectAcl": {"AccessControlPolicy": policy}}


def put_parameters(bucket: str, line: ObjectLine, acl: Acl) -> dict[str, Any]:
    """Return the parameters of PutObjectAcl that give an object this ACL, in the form of `--cli-input-json`."""
    version = {} if line.version_id is None else {"VersionId": line.version_id}
    return {"Bucket": bucket, "Key": line.key, **version, "AccessControlPolicy": access_control(acl)}


def access_control(acl: Acl) -> dict[str, Any]:
    """Return AccessControlPolicy of the S3 API."""
    grants = []
    for grant in acl.grants:
        group = "://" in grant.grantee
        grantee = {"Type": "Group", "URI": grant.grantee} if group else {"Type": "CanonicalUser", "ID": grant.grantee}
        grants.append({"Grantee": grantee, "Permission": grant.permission})
    return {"Owner": {"ID": acl.owner}, "Grants": grants}


def _batch_acl(acl: Acl) -> dict[str, Any]:
    """Return S3AccessControlList of the S3 Control API."""
    grants = [
        {
            "Grantee": {"TypeIdentifier": "uri" if "://" in one.grantee else "id", "Identifier": one.grantee},
            "Permission": one.permission,
        }
        for one in acl.grants
    ]
    return {"Owner": {"ID": acl.owner}, "Grants": grants}


def _is_known(acl: Acl) -> bool:
    return all(grant.permission in _PERMISSIONS for grant in acl.grants)
