"""A kit that was written: its files, the readiness of the bucket, and the commands that predict its effect."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from auditor.audit.kit.grants import LeftOut
from auditor.audit.kit.jobs import JobFiles
from auditor.audit.kit.policy import PolicyDraft
from auditor.audit.kit.readiness import Assessment
from auditor.model.exception import ExceptionUse
from auditor.text import visible

POLICY_FILE: Final = "policy.json"


class Kit(Struct, frozen=True, kw_only=True):
    """A kit that was written."""

    run: str
    source: str
    """Path or URI of the run's folder."""
    bucket: str
    versions: bool
    place: str
    files: tuple[str, ...]
    acls_off: bool
    """True if ACLs are off already, so that the kit has the jobs on keys alone."""
    now: Assessment
    after: Assessment
    policy: PolicyDraft
    has_policy_before: bool
    ownership: str
    """Object Ownership before the kit."""
    left_out: dict[LeftOut, int]
    """Number of objects with a grant that the policy does not carry, by the reason."""
    kept: dict[str, int]
    """Number of exposed objects that keep their ACL, by the reason."""
    changing: tuple[JobFiles, ...]
    restoring: tuple[JobFiles, ...]
    others: int
    """Number of changed objects that no job brings back, but a line of restore-others.jsonl."""
    key_jobs: tuple[JobFiles, ...]
    """The jobs that put objects under an allowed KMS key (E03)."""
    keys_kept: dict[str, int]
    """Number of objects under a wrong key that no job changes, by the reason."""
    remarks: tuple[str, ...]
    exceptions: tuple[ExceptionUse, ...]
    has_bucket_acl: bool
    """True if the bucket's own ACL grants something to others, and the kit has it."""

    @property
    def exit_code(self) -> int:
        """4 if something is not known, else 0."""
        return 4 if self.now.unknown else 0

    @property
    def what_if(self) -> tuple[str, ...]:
        """The commands that predict the effect of the policy, and that of ACLs turned off, safe to print."""
        if self.acls_off:
            return ()
        ask = f"auditor what-if {shlex.quote(self.source)}"
        if self.policy.text is None:
            return (visible(f"{ask} --acls-off"),)
        policy = f"--policy {shlex.quote(str(Path(self.place, POLICY_FILE).absolute()))}"
        return visible(f"{ask} {policy}"), visible(f"{ask} --acls-off {policy}")

    def to_dict(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "target": f"s3://{self.bucket}",
            "out": self.place,
            "files": list(self.files),
            "readiness": {"now": self.now.to_dict(), "after_kit": self.after.to_dict()},
            "policy": {
                "written": self.policy.text is not None,
                "bytes": self.policy.size,
                "statements_added": self.policy.added,
                "reasons": list(self.policy.reasons),
                "keys_left_out": list(self.policy.left_out),
                "grants_left_out": {reason.value: number for reason, number in self.left_out.items() if number},
            },
            "jobs": [one._asdict() for one in self.changing],
            "exposed_objects_kept": self.kept,
            "restore": {"jobs": [one._asdict() for one in self.restoring], "others": self.others},
            "keys": {"jobs": [one._asdict() for one in self.key_jobs], "kept": self.keys_kept},
            "what_if": list(self.what_if),
            "remarks": list(self.remarks),
        }
