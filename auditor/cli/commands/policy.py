"""The commands `auditor policy` and `inventory`: print what is to be set up before an audit, without a call."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.aws.plain import partition_of
from auditor.aws.session import make_session
from auditor.cli.command_frame import CommandFrame, command
from auditor.cli.flags import Flags
from auditor.cli.output import remark, say
from auditor.config.estate import read_estate
from auditor.config.settings import Settings
from auditor.config.values import MIXED, words
from auditor.errors import UsageError
from auditor.model.target import Target, parse_target
from auditor.offline.iam.policy import Access, audit_policy, every_bucket
from auditor.offline.iam.roles import (
    STAGE,
    Deployment,
    audit_role_policy,
    hashing_role_policy,
    renew_role_policy,
    verify_role_policy,
)
from auditor.rules import RULES
from auditor.rules.judge import select
from auditor.s3.inventory.fields import CSV, PARQUET
from auditor.s3.inventory.place import parse_place
from auditor.s3.inventory.setup import ID, InventoryRequest, configuration, destination_policy
from auditor.s3.prices import Prices, in_dollars, money, prices_with
from auditor.text import counted

_KEY: Final = re.compile(r"arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+")
_FILES: Final = re.compile(r"arn:[a-z-]+:elasticfilesystem:[a-z0-9-]+:[0-9]{12}:access-point/fsap-[0-9a-f]+")
_STAGE: Final = re.compile(r"[A-Za-z0-9-]+")
_BILLION: Final = 10**9
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
    reports = "KMS key of the bucket in --out; with --role, of everything that the stack makes"
    flags.add("--reports-key ARN", reports)
    flags.add("--inventory-key ARN", "KMS key of the S3 Inventory reports in --inventory")
    flags.words[_DEPLOYED] = "The role allows everything that an event may ask for, whatever the rules and --versions."
    flags.add("--role", "print the role of this function, at --level (metadata)", _DEPLOYED, choices=tuple(_ROLES))
    flags.add("--stage NAME", "stage of the deployment (prod)", _DEPLOYED)
    flags.add("--vpc", "the functions are in a VPC", _DEPLOYED)
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
    partition = _partition(settings)
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
        raise UsageError("--role and --estate cannot be combined: a function audits the buckets of its own account")
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
    if not options.role and (options.stage or options.vpc or options.file_system):
        raise UsageError(
            "--stage, --vpc and --file-system are a deployment's: add --role audit, hashing, renew or verify"
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
        raise UsageError(f"--stage {stage[:100]!r} is not a stage name: use letters, digits and hyphens")
    return Deployment(
        stage=stage,
        audited_keys=keys,
        reports_key=options.reports_key,
        inventory_key=options.inventory_key,
        in_vpc=options.vpc,
        file_system=options.file_system,
        **_members(Deployment, settings),
    )


def _partition(settings: Settings) -> str:
    return partition_of(make_session(settings.profile, settings.region).region_name)


def _members(kind: type[Struct], settings: Settings) -> dict[str, Any]:
    """Return the settings that have the name of a member of a Struct."""
    return {name: getattr(settings, name) for name in kind.__struct_fields__ if hasattr(settings, name)}


def _notes(role: str | None, settings: Settings, deployment: Deployment) -> Iterator[str]:
    if role is None and settings.source == MIXED and settings.inventory is None:
        yield "reading the reports of S3 Inventory needs permissions on their bucket: name it with --inventory"
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
        yield "this role reads its run folders through the policies of the reports bucket and its key (docs/deploy.md)"
        if settings.inventory is not None:
            yield "it reads the reports of S3 Inventory through the policies of their bucket and key (docs/deploy.md)"


def declare_inventory(flags: Flags) -> None:
    """Declare the flags of `auditor inventory`.

    auditor inventory s3://my-bucket
    auditor inventory s3://my-bucket --versions --inventory s3://reports/inventory --expected-owner 123456789012
    """
    flags.add("target s3://BUCKET[/PREFIX]", "the bucket, or the keys with a prefix")
    flags.settings("versions", inventory="where S3 should write the reports: s3://BUCKET/PREFIX in another bucket")
    flags.add("--weekly", "a report every Sunday instead of every day")
    flags.add("--parquet", "reports in Parquet instead of CSV; the auditor needs duckdb to read them")
    flags.settings("profile", "region", expected_owner="the account (12 digits) that owns the bucket")
    flags.config()
    flags.form()


@command()
def run_inventory(frame: CommandFrame) -> int:
    """Print the configuration of S3 Inventory, the policy of its destination and its price, and return 0. No call is
    made.
    """
    asked = _request(frame)
    prices = prices_with(frame.settings.prices)
    document = {
        "bucket": asked.target.bucket,
        "id": ID,
        "configuration": configuration(asked),
        "destination_policy": destination_policy(asked),
        "dollars_per_billion": in_dollars(prices.inventory * _BILLION),
        "placeholders": list(asked.placeholders),
    }
    frame.print_lines(document, _commands(asked, prices))
    if asked.placeholders:
        remark(f"replace {' and '.join(asked.placeholders)}, or name them with --inventory and --expected-owner")
    return 0


def _request(frame: CommandFrame) -> InventoryRequest:
    options, settings = frame.options, frame.settings
    given: dict[str, Any] = {} if settings.expected_owner is None else {"account": settings.expected_owner}
    if settings.inventory is not None:
        place = parse_place(settings.inventory)
        given |= {"bucket": place.bucket, "prefix": place.prefix}
    return InventoryRequest(
        target=parse_target(options.target, versions=settings.versions),
        form=PARQUET if options.parquet else CSV,
        frequency="Weekly" if options.weekly else "Daily",
        partition=_partition(settings),
        **given,
    )


def _commands(asked: InventoryRequest, prices: Prices) -> Iterator[str]:
    yield "# The policy of the destination: S3 may write reports of this bucket there. Add its statement to the one"
    yield "# that the bucket has, because put-bucket-policy replaces the whole policy."
    policy = shlex.quote(json.dumps(destination_policy(asked), indent=2))
    yield f"aws s3api put-bucket-policy --bucket {asked.bucket} --policy {policy}"
    yield ""
    dollars = money(prices.inventory * _BILLION)
    yield f"# The configuration. A report costs {dollars} for each 1,000,000,000 objects that it lists (price of"
    yield f"# {prices.as_of}, {prices.region}), and its storage. The first one comes within 48 hours."
    form = shlex.quote(json.dumps(configuration(asked), indent=2))
    yield (
        f"aws s3api put-bucket-inventory-configuration --bucket {asked.target.bucket} --id {ID}"
        f" --inventory-configuration {form}"
    )
