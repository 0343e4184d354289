"""The command `auditor policy`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.aws.iam.policy import Access, audit_policy, every_bucket
from auditor.aws.iam.roles import (
    STAGE,
    Deployment,
    audit_role_policy,
    hashing_role_policy,
    renew_role_policy,
    verify_role_policy,
)
from auditor.aws.partition import partition_of
from auditor.aws.session import make_session
from auditor.cli.command_frame import CommandFrame, command
from auditor.cli.flags import Flags
from auditor.cli.output import say
from auditor.config.estate import read_estate
from auditor.config.settings import Settings
from auditor.config.values import MIXED, words
from auditor.errors import UsageError
from auditor.model.target import Target
from auditor.rules import RULES
from auditor.rules.selection import select
from auditor.text import counted

_KEY: Final = re.compile(r"arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+")
_FILES: Final = re.compile(r"arn:[a-z-]+:elasticfilesystem:[a-z0-9-]+:[0-9]{12}:access-point/fsap-[0-9a-f]+")
_STAGE: Final = re.compile(r"[A-Za-z0-9-]+")
_KEYS: Final = ("audited_keys", "reports_key", "inventory_key")
_DEPLOYED: Final = "the role of a deployed function"
_ROLES: Final = {
    "audit": audit_role_policy,
    "hashing": hashing_role_policy,
    "renew": renew_role_policy,
    "verify": verify_role_policy,
}


def declare_policy(flags: Flags) -> None:
    """Declare the flags of `auditor policy`.

    auditor policy s3://my-bucket
    auditor policy --estate estate.toml --out s3://reports/audits
    auditor policy s3://my-bucket --role audit --stage prod --out s3://reports/audits
    """
    flags.show_daily("all-buckets versions level ledger queue hash out audited-keys role stage profile config")
    flags.audited()
    audited = "KMS keys of the audited objects: with --hash or --role hashing, objects under SSE-KMS need them"
    flags.add("--audited-keys ARN,..", audited)
    reports = "KMS key of the bucket that --out names; with --role, of all that the stack makes"
    flags.add("--reports-key ARN", reports)
    flags.add("--inventory-key ARN", "KMS key of the S3 Inventory reports that --inventory names")
    flags.words[_DEPLOYED] = "It allows all that an event may ask for: rules and --versions do not matter."
    flags.add("--role", "the role of this function, at --level (metadata)", _DEPLOYED, choices=tuple(_ROLES))
    flags.add("--stage NAME", "stage of the deployment (prod)", _DEPLOYED)
    flags.add("--vpc", "the functions are in a VPC", _DEPLOYED)
    flags.add("--state-machine", "a state machine audits large buckets (scale=map)", _DEPLOYED)
    shared = "access point of the shared file system (EFS) that the functions mount"
    flags.add("--file-system ARN", shared, _DEPLOYED)


@command()
def run_policy(frame: CommandFrame) -> int:
    """Print the least-privilege IAM policy on stdout, and remarks on it on stderr.

    It is the policy for an audit from the command line, or with --role the policy of one of the functions' roles.
    """
    options, settings = frame.options, frame.settings
    targets, roles = _objects(frame)
    deployment = _deployment(frame)
    partition = partition_of(make_session(settings.profile, settings.region).region_name)
    if options.role:
        policy = _ROLES[options.role](targets, deployment, partition)
    else:
        policy = audit_policy(targets, replace(access_of(settings, deployment), roles=roles), partition)
    sys.stdout.write(json.dumps(policy, indent=2) + "\n")
    for note in _notes(options.role, settings, deployment):
        say(note)
    if roles:
        say(
            f"{counted(len(roles), 'role')}: each needs, in its account, the policy of `auditor policy --all-buckets`"
            " and a trust policy that names this identity"
        )
    return 0


def _objects(frame: CommandFrame) -> tuple[Sequence[Target], Sequence[str]]:
    """Return the targets that the own credentials read, and the ARNs of the roles to assume for others."""
    options = frame.options
    if not options.all_buckets and options.estate is None:
        return frame.targets, ()
    if options.targets or (options.all_buckets and options.estate is not None):
        raise UsageError("give targets, --all-buckets or --estate: each of them says which buckets the policy is for")
    everything = [every_bucket(versions=frame.settings.versions)]
    if options.all_buckets:
        return everything, ()
    if options.role:
        raise UsageError("--role and --estate exclude each other: a function audits the buckets of its own account")
    accounts = read_estate(options.estate).accounts
    own = any(account.role is None for account in accounts)
    return everything if own else [], sorted(account.role for account in accounts if account.role)


def access_of(settings: Settings, deployment: Deployment) -> Access:
    """Return the access that an audit with these settings needs: its calls for each object, and the other AWS resources
    that it uses.
    """
    chosen = select(
        RULES, settings.rules, settings.only, settings.ignore, settings.level, ledger=settings.ledger is not None
    )
    given = _members(Access, settings) | {name: getattr(deployment, name) for name in _KEYS}
    if settings.source != MIXED:
        del given["inventory"]
    return Access(
        acl=any(rule.needs("acl") or rule.needs("owner") for rule in chosen),
        head=any(rule.needs("head") for rule in chosen),
        manifests=settings.batch_manifest,
        asks_inventory=settings.source == MIXED and settings.inventory is None,
        topics=tuple(topic for topic in (settings.topic, settings.chat_topic) if topic),
        **given,
    )


def _deployment(frame: CommandFrame) -> Deployment:
    """Read the flags that describe a deployment. Raises UsageError for a malformed ARN or name. Wildcards are
    malformed: with one, the policy would allow more than the user meant.
    """
    options, settings = frame.options, frame.settings
    if not options.role and (options.stage or options.vpc or options.file_system or options.state_machine):
        raise UsageError(
            "--stage, --vpc, --file-system and --state-machine are a deployment's: add --role audit, hashing, renew or"
            " verify"
        )
    if options.file_system and not _FILES.fullmatch(options.file_system):
        raise UsageError(
            f"--file-system {options.file_system[:100]!r} is not the ARN of an EFS access point,"
            " arn:..:elasticfilesystem:REGION:ACCOUNT:access-point/fsap-.."
        )
    keys = words(options.audited_keys or "", "--audited-keys")
    if options.inventory_key and settings.inventory is None:
        raise UsageError("--inventory-key is the key of the reports that --inventory names: give both")
    for key in [*keys, *(key for key in (options.reports_key, options.inventory_key) if key)]:
        if not _KEY.fullmatch(key):
            raise UsageError(f"{key[:100]!r} is not the ARN of a KMS key: IAM knows keys by their ARN, not by an alias")
    stage = options.stage or STAGE
    if not _STAGE.fullmatch(stage):
        raise UsageError(f"--stage {stage[:100]!r} is no stage: letters, digits and hyphens")
    return Deployment(
        stage=stage,
        audited_keys=keys,
        reports_key=options.reports_key,
        inventory_key=options.inventory_key,
        divides=options.state_machine,
        in_vpc=options.vpc,
        file_system=options.file_system,
        **_members(Deployment, settings),
    )


def _members(kind: type[Struct], settings: Settings) -> dict[str, Any]:
    """Return the settings that have the name of a member of a Struct."""
    return {name: getattr(settings, name) for name in kind.__struct_fields__ if hasattr(settings, name)}


def _notes(role: str | None, settings: Settings, deployment: Deployment) -> Iterator[str]:
    if role is None and settings.source == MIXED and settings.inventory is None:
        yield "to read the reports of S3 Inventory takes rights in their bucket: name it with --inventory"
    hashes = role in ("hashing", "verify") or (role is None and settings.hash)
    if hashes and not deployment.audited_keys:
        yield "objects under SSE-KMS are hashed only with kms:Decrypt on their keys: name them with --audited-keys"
    reads_policies = role in (None, "audit", "renew") and settings.key_policies
    if reads_policies and not deployment.audited_keys:
        yield "kms:GetKeyPolicy is allowed on every key: name the objects' keys with --audited-keys"
    if deployment.audited_keys and not hashes and not reads_policies:
        yield (
            "--audited-keys adds nothing here: without --hash, --role hashing or --role verify no object is decrypted,"
            " and without --key-policies no key's policy is read"
        )
    if role == "audit" and settings.level == "exposure":
        yield "this role reads its run folders by the policies of the reports bucket and its key (docs/deploy.md)"
        if settings.inventory is not None:
            yield "it reads the reports of S3 Inventory by the policies of their bucket and key (docs/deploy.md)"
