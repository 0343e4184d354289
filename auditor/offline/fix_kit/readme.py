"""A kit that was written: its JSON, its README and its table. Text from the run stands in blocks, escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from auditor.hashing.batch.job import NO_ACCOUNT, NO_BUCKET, NO_ROLE
from auditor.model.json_codec import plain
from auditor.offline.fix_kit.acl_jobs import (
    KEY_ROLE,
    KEY_SNAPSHOT,
    MOST_RESTORED,
    NO_KEY,
    OTHERS,
    ROLE,
    SNAPSHOT,
    AclJobs,
    JobFiles,
    Kept,
    WrongKeys,
    kept_sentences,
)
from auditor.offline.fix_kit.policy_change import LeftOut, PolicyDraft, sentences
from auditor.offline.fix_kit.readiness import Assessment
from auditor.reports.phrases import shell_line
from auditor.reports.text_table import TableLayout, labelled
from auditor.runs.reading import RunReader
from auditor.text import counted, visible
from auditor.verdict.change import OBJECT_WRITER

POLICY_FILE: Final = "policy.json"


class Kit(Struct, frozen=True, kw_only=True):
    """A kit that was written. run: the run whose bucket it repairs. acls, keys: wrote the jobs on ACLs, and those that
    put objects under an allowed KMS key (E03).
    """

    run: RunReader
    place: str
    files: tuple[str, ...]
    acls_off: bool
    """True if ACLs are off already, so that the kit has the jobs on keys alone."""
    now: Assessment
    after: Assessment
    policy: PolicyDraft
    left_out: Mapping[LeftOut, int]
    """Number of objects with a grant that the policy does not carry, by the reason."""
    kept: Mapping[Kept, int]
    """Number of exposed objects that keep their ACL, by the reason."""
    acls: AclJobs
    keys: WrongKeys
    remarks: tuple[str, ...]
    has_policy_before: bool

    @property
    def bucket(self) -> str:
        return self.run.bucket_name

    @property
    def exit_code(self) -> int:
        """4 if something is not known, else 0."""
        return 4 if self.now.unknown else 0

    @property
    def what_if(self) -> tuple[str, ...]:
        """The commands that predict the effect of the policy, and that of ACLs turned off, safe to print."""
        if self.acls_off:
            return ()
        if self.policy.text is None:
            return (f"{self.ask} --acls-off",)
        policy = shell_line("--policy", str(Path(self.place, POLICY_FILE).absolute()))
        return f"{self.ask} {policy}", f"{self.ask} --acls-off {policy}"

    @property
    def ask(self) -> str:
        """The beginning of each of these commands."""
        return shell_line("auditor", "what-if", self.run.uri)

    def to_dict(self) -> dict[str, Any]:
        return {
            "run": self.run.run_id,
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
                "grants_left_out": plain({reason: number for reason, number in self.left_out.items() if number}),
            },
            "jobs": [one._asdict() for one in self.acls.changing],
            "exposed_objects_kept": plain(self.kept),
            "restore": {"jobs": [one._asdict() for one in self.acls.restoring], "others": self.acls.others},
            "keys": {"jobs": [one._asdict() for one in self.keys.changing], "kept": plain(self.keys.kept)},
            "what_if": list(self.what_if),
            "remarks": list(self.remarks),
        }


PREFERRED: Final = "BucketOwnerPreferred"
POLICY_BEFORE: Final = "policy-before.json"
BUCKET_ACL: Final = "bucket-acl-before.json"
_LABEL: Final = 18
_COLUMNS: Final = 100


def table(kit: Kit, columns: int) -> str:
    """Return the kit as a table for a terminal, safe to print."""
    layout = TableLayout(max(columns, 40), _LABEL)
    sections = [
        layout.listed("Fix kit", [f"{visible(kit.place)}, of the run {kit.run.run_id} of s3://{kit.bucket}"]),
        *_readiness(kit, layout),
        *([] if kit.acls_off else [layout.listed("Policy", _policy(kit)), layout.listed("ACL jobs", _jobs(kit))]),
        *([layout.listed("Key jobs", _key_jobs(kit))] if kit.keys.changing or kit.keys.kept else []),
        layout.listed("Back", _back(kit)),
        layout.listed("Remarks", kit.remarks),
        # People copy the commands: they are never cut.
        [labelled("" if number else "Effect", command, _LABEL) for number, command in enumerate(kit.what_if)],
        layout.listed("Next", ["read README.md there: nothing was changed; sending each call is up to you"]),
    ]
    return _text(sections)


def _readiness(kit: Kit, layout: TableLayout) -> Iterator[Iterator[str]]:
    if kit.acls_off:
        yield layout.listed("ACLs", ["they are off (BucketOwnerEnforced)"])
        return
    for label, found in (("ACLs off, now", kit.now), ("after the kit", kit.after)):
        yield layout.listed(label, _state(found))


def _state(found: Assessment) -> Iterator[str]:
    yield found.state.value
    yield from found.blocks
    yield from (f"not known: {sentence}" for sentence in found.unknown)


def _policy(kit: Kit) -> Iterator[str]:
    draft = kit.policy
    if draft.text is not None:
        yield f"{POLICY_FILE}: {counted(draft.added, 'statement')} added, {draft.size:,} bytes in all"
    yield from draft.reasons
    yield from draft.left_out
    yield from sentences(kit.left_out)


def _jobs(kit: Kit) -> Iterator[str]:
    for job in kit.acls.changing:
        yield f"{job.request} with {job.manifest}: {counted(job.objects, 'object')}"
    if not kit.acls.changing:
        yield "no object is exposed by an ACL that a job could change"
    yield from kept_sentences(kit.kept, "exposed object")


def _key_jobs(kit: Kit) -> Iterator[str]:
    for job in kit.keys.changing:
        yield f"{job.request} with {job.manifest}: {counted(job.objects, 'object')} under an allowed KMS key"
    yield from kept_sentences(kit.keys.kept, "object")


def _back(kit: Kit) -> Iterator[str]:
    if jobs := kit.acls.restoring:
        names = dict.fromkeys((jobs[0].request, jobs[-1].request))
        yield f"{' to '.join(names)}: {counted(sum(job.objects for job in jobs), 'object')}"
    if kit.acls.others:
        yield f"{OTHERS}: {counted(kit.acls.others, 'object')} with further ACLs, one line each"
    if kit.policy.text is not None:
        yield f"{POLICY_BEFORE}: the present policy" if kit.has_policy_before else "there is no bucket policy now"


def _text(sections: Iterable[Iterable[str]]) -> str:
    return "".join(f"{line}\n" for section in sections for line in section)


def readme(kit: Kit) -> str:
    """Return README.md."""
    layout, off = TableLayout(_COLUMNS, _LABEL), kit.acls_off
    last = [_audit_again(kit, "E03 finds nothing any more")] if off else [*_last_steps(kit)]
    steps = [*(() if off else (*_policy_step(kit), *_job_steps(kit))), *_key_steps(kit), *last]
    ready = [
        "## Is the bucket ready for ACLs to be turned off?",
        _block(_readiness(kit, layout)),
        "Not seen by any run: programs that upload with an ACL. With ACLs off, S3 refuses such uploads"
        " (AccessControlListNotSupported), except those with `bucket-owner-full-control`.",
    ]
    parts = [
        f"# Fix kit for s3://{kit.bucket}",
        f"Made from the run {kit.run.run_id}. Nothing was changed and no call was sent: each step below is for you to"
        " review and to send. The files describe the objects as the run saw them. If the run is not from today, audit"
        " again first.",
        *(["ACLs are off on this bucket (BucketOwnerEnforced): the kit changes only KMS keys."] if off else ready),
        "## Steps",
        *(f"{number}. {step}" for number, step in enumerate(steps, 1)),
        "## How to go back",
        *(_keys_back(kit) if off else _going_back(kit)),
        *(["## What the kit leaves as it is"] if kit.keys.kept or not off else []),
        *_left(kit, layout),
    ]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _block(sections: Iterable[Iterable[str]]) -> str:
    text = _text(sections)
    return f"```text\n{text}```" if text else ""


def _audit_again(kit: Kit, wanted: str) -> str:
    versions = " --versions" if kit.run.begun_with.target.versions else ""
    return f"Audit again, and see that {wanted}:\n\n       auditor audit s3://{kit.bucket}{versions}"


def _policy_step(kit: Kit) -> Iterator[str]:
    if kit.policy.text is None:
        yield "The kit has no policy.json: " + "; ".join(kit.policy.reasons) + "."
        return
    before = f" Compare it with `{POLICY_BEFORE}`, the present one." if kit.has_policy_before else ""
    yield (
        f"Review `{POLICY_FILE}`: the statements `FromAcls..` allow, key by key, what the ACLs grant,"
        " and `PublicByIntent..` what exceptions say is public by intent."
        f"{before} A prefix also covers objects that are added below it later. Ask what it does:\n\n"
        f"       {kit.what_if[0]}\n\n"
        "   Exit code 3 says that it would open an object to somebody: do not put it then. Otherwise put it:\n\n"
        f"       aws s3api put-bucket-policy --bucket {kit.bucket} --policy file://{POLICY_FILE}\n\n"
        "   S3 refuses a canonical ID whose account no longer exists: remove it from the policy."
        " Do this step before the next one: otherwise the parties that the ACLs name lose access in between."
    )


def _job_steps(kit: Kit) -> Iterator[str]:
    if not kit.acls.changing:
        return
    yield (
        f"Make a role for S3 Batch Operations with the policy `{ROLE}`, which trusts"
        " `batchoperations.s3.amazonaws.com`, and choose a bucket for the manifests. In each"
        f" `.json` of a job replace `{NO_BUCKET}` and `{NO_ROLE}`, and `{NO_ACCOUNT}` where it occurs. Ask what"
        f" closes when no public grant counts, grants by intent included:\n\n       {kit.ask} --ignore-public-acls"
    )
    for job in kit.acls.changing:
        yield (
            f"Review `{job.manifest}` ({counted(job.objects, 'object')}), upload it, and create the job. It waits for"
            f" your confirmation:\n\n{_commands(kit, job)}\n\n"
            "   The ETag in the request is the file's MD5. If `put-object` prints another one, use that."
        )


def _key_steps(kit: Kit) -> Iterator[str]:
    for job in kit.keys.changing:
        yield (
            f"Review `{job.manifest}` ({counted(job.objects, 'object')} under a KMS key that [rules.E03] does not"
            f" allow), and upload it. Make a role for S3 Batch Operations with the policy `{KEY_ROLE}`, which trusts"
            f" `batchoperations.s3.amazonaws.com`. In `{job.request}` replace `{NO_BUCKET}` and `{NO_ROLE}`, and"
            f" `{NO_ACCOUNT}` or `{NO_KEY}` where it occurs. The job changes the key in place (UpdateObjectEncryption):"
            " no object is rewritten, ETag and LastModified stay, and no event is sent. S3 takes a key of another"
            f" account only if that account allows it:\n\n{_commands(kit, job)}"
        )


def _commands(kit: Kit, job: JobFiles) -> str:
    key = f"fix-kit/{kit.run.run_id}/{job.manifest}"
    return (
        f"       aws s3api put-object --bucket MANIFESTS --key {key} --body {job.manifest}\n"
        f"       aws s3control create-job --cli-input-json file://{job.request}\n"
        "       aws s3control update-job-status --account-id ACCOUNT --job-id JOB --requested-job-status Ready"
    )


def _last_steps(kit: Kit) -> Iterator[str]:
    yield _audit_again(kit, "nothing is exposed except objects that the kit leaves as they are")
    yield (
        "When nothing above stands in the way any more, ask which objects would open or close without ACLs:\n\n"
        f"       {kit.what_if[-1]}\n\n"
        "   If the answer is what you want, give the bucket a private ACL and turn ACLs off. Whoever uploads"
        " by a grant of the bucket's ACL needs a statement in the policy first; access logs need one for"
        " `logging.s3.amazonaws.com`. CloudFront's legacy logs always need the ACL:\n\n"
        f"       aws s3api put-bucket-acl --bucket {kit.bucket} --acl private\n"
        f"       aws s3api put-bucket-ownership-controls --bucket {kit.bucket}"
        " --ownership-controls 'Rules=[{ObjectOwnership=BucketOwnerEnforced}]'"
    )


def _going_back(kit: Kit) -> Iterator[str]:
    others = kit.acls.others
    ownership = PREFERRED if kit.run.begun_with.facts.ownership == PREFERRED else OBJECT_WRITER
    yield (
        f"- To turn ACLs on again: `aws s3api put-bucket-ownership-controls` with `ObjectOwnership={ownership}`."
        " The ACLs and owners that the objects had before come back."
    )
    if BUCKET_ACL in kit.files:
        yield f"- The bucket's own ACL: `aws s3api put-bucket-acl --cli-input-json file://{BUCKET_ACL}`."
    if kit.policy.text is not None and kit.has_policy_before:
        yield f"- The policy: `aws s3api put-bucket-policy --bucket {kit.bucket} --policy file://{POLICY_BEFORE}`."
    elif kit.policy.text is not None:
        yield f"- The policy: `aws s3api delete-bucket-policy --bucket {kit.bucket}`; there was none."
    if kit.acls.changing:
        yield (
            f"- The ACLs: `{SNAPSHOT}` has the ACL of each object as it was read. A job sets one ACL, so that each of"
            f" the most frequent ACLs, at most {MOST_RESTORED}, has a job of its own, `restore-NN.json` with"
            " `restore-NN.csv`: upload and create them as above. While BlockPublicAcls is on, S3 refuses to bring back"
            " public grants."
        )
    yield from _keys_back(kit)
    if others:
        yield (
            f"- {counted(others, 'object')} with further ACLs: `{OTHERS}` has the parameters of a call each:\n\n"
            '      while IFS= read -r line; do aws s3api put-object-acl --cli-input-json "$line"; done < ' + OTHERS
        )


def _keys_back(kit: Kit) -> Iterator[str]:
    if kit.keys.changing:
        yield (
            f"- The KMS keys: `{KEY_SNAPSHOT}` has the key of each object as it was read. `aws s3api"
            " update-object-encryption` switches one object back to it, if the key belongs to the bucket's account."
        )


def _left(kit: Kit, layout: TableLayout) -> Iterator[str]:
    """Yield the blocks on what the kit leaves as it is. A kit for keys alone has no words on ACLs."""
    if not kit.acls_off:
        yield _block([layout.listed("Policy", _policy(kit)), layout.listed("ACL jobs", _jobs(kit))])
    if kit.keys.kept:
        yield _block([layout.listed("Key jobs", _key_jobs(kit))])
    if kit.acls_off:
        return
    if kit.remarks:
        yield _block([layout.listed("Remarks", kit.remarks)])
    summary = kit.run.summary
    if exceptions := [one for one in summary.exceptions if one.matched] if summary else []:
        yield "Exceptions of the run's configuration, which say what is public by intent:"
        rows = (
            f"{visible(one.id)}: {visible(one.reason)} (owner {visible(one.owner or 'not named')}, until"
            f" {one.until or 'for ever'}, {counted(one.matched, 'match').replace('matchs', 'matches')})"
            for one in exceptions
        )
        yield _block([layout.listed("Exceptions", rows)])
