"""Write the manifests and job requests of S3 Batch Operations that change ACLs, and those that bring the ACLs back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from auditor.audit.kit.closing import OWNER_TOO, PRIVATE
from auditor.audit.kit.folder import KitFile, KitFolder
from auditor.aws.iam.arns import Arns
from auditor.aws.iam.policy import document, statement
from auditor.hashing.batch.job import MOST_ROWS, NO_BUCKET, Manifest, job_request, row
from auditor.model.json_text import plain
from auditor.model.object import Acl
from auditor.model.run_lines import ObjectLine
from auditor.reports.lines import encode_line

MOST_RESTORED: Final = 50
"""Largest number of different ACLs that a job of their own brings back."""
SNAPSHOT: Final = "acl-snapshot.jsonl.gz"
OTHERS: Final = "restore-others.jsonl"
ROLE: Final = "job-role.json"
STEMS: Final = {PRIVATE: ("acl-changes", "acl-job"), OWNER_TOO: ("acl-changes-foreign", "acl-job-foreign")}
"""The names of the manifest and of the job for each canned ACL."""
_PERMISSIONS: Final = frozenset({"FULL_CONTROL", "READ", "WRITE", "READ_ACP", "WRITE_ACP"})

Operation = dict[str, Any]


class JobFiles(NamedTuple):
    """A job that was written: the names of its request and of its manifest, and the number of its objects."""

    request: str
    manifest: str
    objects: int


class AclJobs:
    """Writes into a kit. canned jobs, the snapshot, and the jobs that restore. bucket: its name. account: number of its
    account; None if it is not known. token: beginning of the requests' tokens. restored: the ACLs for which a job is
    written; the objects with other ACLs are listed. most_rows: largest number of rows of a manifest.
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
        restored: Iterable[Acl],
        most_rows: int = MOST_ROWS,
    ) -> None:
        self._folder = folder
        self._bucket = bucket
        self._run_id = run_id
        self._versions = versions
        self._arns = arns
        self._account = account
        self._numbers = {acl: number for number, acl in enumerate(restored, 1) if _is_known(acl)}
        self._most_rows = most_rows
        self._open: dict[str, tuple[KitFile, str, str, Operation]] = {}
        self._parts: dict[str, int] = {}
        self._snapshot: KitFile | None = None
        self._others: KitFile | None = None
        self.changing: list[JobFiles] = []
        self.restoring: list[JobFiles] = []

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
        operation: Operation = {"CannedAccessControlList": canned}
        manifest, request = STEMS[canned]
        self._row(manifest, request, operation, line)
        if self._snapshot is None:
            self._snapshot = self._folder.packed(SNAPSHOT)
        values = {"key": line.key, "version_id": line.version_id, "owner": acl.owner, "grants": plain(acl.grants)}
        self._snapshot.write(encode_line(values))
        number = self._numbers.get(acl)
        if number is not None:
            name = f"restore-{number:02d}"
            self._row(name, name, {"AccessControlList": _batch_acl(acl)}, line)
            return
        if self._others is None:
            self._others = self._folder.file(OTHERS)
        self._others.write(encode_line(put_parameters(self._bucket, line, acl)))

    def end(self) -> None:
        """Write the requests of the jobs that are left, and the policy of their role."""
        for name in sorted(self._open):
            self._request(name)
        self.changing.sort()
        self.restoring.sort()
        if self.objects:
            self._folder.put(ROLE, json.dumps(self._role(), indent=1) + "\n")

    def _row(self, manifest: str, request: str, operation: Operation, line: ObjectLine) -> None:
        if manifest in self._open and self._open[manifest][0].lines >= self._most_rows:
            self._request(manifest)
        if manifest not in self._open:
            part = self._parts[manifest] = self._parts.get(manifest, 0) + 1
            suffix = "" if part == 1 else f"-{part}"
            file = self._folder.file(f"{manifest}{suffix}.csv")
            self._open[manifest] = (file, f"{manifest}{suffix}.csv", f"{request}{suffix}.json", operation)
        version_id = (line.version_id or "null") if self._versions else None
        self._open[manifest][0].write(row(self._bucket, line.key, version_id).encode())

    def _request(self, name: str) -> None:
        file, manifest, request, operation = self._open.pop(name)
        restores = name not in {stem for stem, _ in STEMS.values()}
        words = "bring back an ACL of" if restores else f"the ACL {operation['CannedAccessControlList']} for"
        value = job_request(
            Manifest(
                bucket=None,
                key=f"fix-kit/{self._run_id}/{manifest}",
                etag=file.md5,
                report=f"fix-kit/{self._run_id}/report-{request.removesuffix('.json')}",
                versions=self._versions,
            ),
            {"S3PutObjectAcl": {"AccessControlPolicy": operation}},
            description=f"{words} {file.lines} objects of {self._bucket}",
            token=f"{self._run_id}-{file.md5[:12]}",
            confirm=True,
            partition=self._arns.partition,
            account=self._account,
        )
        self._folder.put(request, json.dumps(value, indent=1) + "\n")
        done = self.restoring if restores else self.changing
        done.append(JobFiles(request, manifest, file.lines))

    def _role(self) -> dict[str, Any]:
        """Return the IAM policy of the jobs' role."""
        actions = ["s3:PutObjectVersionAcl"] if self._versions else ["s3:PutObjectAcl"]
        place = [self._arns.objects(NO_BUCKET, f"fix-kit/{self._run_id}/")]
        return document(
            statement("ChangeAcls", actions, [self._arns.objects(self._bucket)]),
            statement("ReadManifest", ["s3:GetObject", "s3:GetObjectVersion"], place),
            statement("WriteReport", ["s3:PutObject"], place),
        )


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
