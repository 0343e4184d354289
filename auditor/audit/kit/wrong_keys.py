"""Put the objects that E03 found under an allowed KMS key, by a job that rewrites no object."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

from auditor.audit.kit.folder import KitFile
from auditor.audit.kit.grants import KitObject
from auditor.audit.kit.jobs import JobFiles, JobName, JobWriter
from auditor.aws.iam.policy import statement
from auditor.model.bucket import Encryption
from auditor.model.json_codec import encode_line
from auditor.model.object import HELD, Head
from auditor.rules.encryption import e03_wrong_key
from auditor.runs.bucket_file import BucketFile

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


class WrongKeys:
    """Writes into a kit the job that puts the objects with an E03 finding under an allowed key, and their present keys.

    jobs: writes the job. file: bucket.json of the run, whose configuration has the allowed keys.
    """

    def __init__(self, jobs: JobWriter, file: BucketFile) -> None:
        self._jobs = jobs
        self._now = file.now
        self.key = _allowed(file)
        default = file.facts.encryption
        bucket_key = isinstance(default, Encryption) and default.bucket_key_enabled
        sse = {"SSEKMS": {"KMSKeyArn": self.key, "BucketKeyEnabled": bucket_key}}
        self._operation = {"S3UpdateObjectEncryption": {"ObjectEncryption": sse}}
        self._snapshot: KitFile | None = None
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
        if self._snapshot is None:
            return
        arns = self._jobs.arns
        keys = sorted({self.key, *self._present})
        named = keys if len(keys) <= MOST_KEYS else [arns.anywhere("kms", "key/*")]
        role = self._jobs.role(
            statement("ChangeKeys", ["s3:UpdateObjectEncryption"], [arns.objects(self._jobs.bucket)]),
            statement("UseKeys", _ACTIONS, named),
        )
        self._jobs.folder.put(KEY_ROLE, json.dumps(role, indent=1) + "\n")

    def _change(self, one: KitObject, head: Head) -> None:
        line = one.line
        self._jobs.add(NAME, self._operation, line)
        if self._snapshot is None:
            self._snapshot = self._jobs.folder.packed(KEY_SNAPSHOT)
        key = head.sse_kms_key_id
        values: dict[str, Any] = {"key": line.key, "version_id": line.version_id, "sse_kms_key_id": key}
        self._snapshot.write(encode_line({**values, "bucket_key_enabled": bool(head.bucket_key_enabled)}))
        if key is not None and len(self._present) <= MOST_KEYS:
            self._present.add(key)

    def _is_locked(self, head: Head) -> bool:
        """True if Object Lock protects the object: S3 then refuses to change its key (UpdateObjectEncryption)."""
        held = HELD in (head.object_lock_event_hold, head.object_lock_legal_hold_status)
        until = head.object_lock_retain_until_date
        return held or (head.object_lock_mode is not None and (until is None or until > self._now))


def _allowed(file: BucketFile) -> str:
    """Return the ARN of the key for the job: an allowed one in the bucket's region, one of the bucket's own account
    first, because S3 refuses others by default; NO_KEY if the configuration names none.
    """
    options = (file.configuration.get("rules") or {}).get(RULE) or {}
    arns = [key.split(":") for key in options.get("keys", ()) if key.startswith("arn:")]
    here = [parts for parts in arns if not isinstance(file.facts.region, str) or parts[3] == file.facts.region]
    here.sort(key=lambda parts: parts[4] != file.facts.owner_account)
    return ":".join(here[0]) if here else NO_KEY
