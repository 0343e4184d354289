"""Declare the commands and flags. A flag keeps its raw text; config/settings.py reads the text as it reads an
environment variable.
"""

from __future__ import annotations

import argparse

from auditor.cli.flags import (
    DIGESTS,
    OBJECTS,
    PACE,
    RESULTS,
    Add,
    Group,
    command,
    config_flag,
    connection_flags,
    format_flag,
    group,
    settings_flags,
)
from auditor.cli.run_parser import (
    accept_command,
    check_command,
    diff_command,
    explain_command,
    export_command,
    fix_kit_command,
    judge_command,
    report_command,
    sql_command,
    what_if_command,
    who_command,
)
from auditor.cli.suggesting import SuggestingParser
from auditor.config.settings import CHANNELS
from auditor.model.version import VERSION
from auditor.reports.formats import PRINTED


def make_parser() -> argparse.ArgumentParser:
    parser = SuggestingParser(
        prog="auditor",
        description="Who can read each object of an S3 bucket, how it is protected, and the digests of its bytes. "
        "It only ever reads the audited bucket.",
        epilog="Exit codes: 0 complete and clean; 1 failed; 2 wrong usage; 3 findings at or above --fail-on, or "
        "outcomes that it names (verify: digests that do not match, missing objects); "
        "4 something could not be looked at.",
    )
    parser.add_argument("--version", action="version", version=f"auditor {VERSION}")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    _audit(commands.add_parser, "audit", "audit the objects of buckets and prefixes")
    _estimate(commands.add_parser)
    _inventory(commands.add_parser)
    _hash(commands.add_parser)
    _work(commands.add_parser)
    _renew(commands.add_parser)
    _verify(commands.add_parser)
    _digests(commands.add_parser)
    _plan(commands.add_parser)
    _ledger(commands.add_parser)
    explain_command(commands.add_parser)
    what_if_command(commands.add_parser)
    fix_kit_command(commands.add_parser)
    diff_command(commands.add_parser)
    judge_command(commands.add_parser)
    check_command(commands.add_parser)
    accept_command(commands.add_parser)
    who_command(commands.add_parser)
    report_command(commands.add_parser)
    export_command(commands.add_parser)
    sql_command(commands.add_parser)
    _rules(commands.add_parser)
    _audit(commands.add_parser, "policy", "print the least IAM policy for such an audit")
    _demo(commands.add_parser)
    _completion(commands.add_parser)
    return parser


def _targets(parser: Group, number: str = "+") -> None:
    parser.add_argument(
        "targets", nargs=number, metavar="s3://BUCKET[/PREFIX]", help="a bucket, or the keys with a prefix"
    )
    settings_flags(parser, "versions")
    objects = group(parser, OBJECTS)
    objects.add_argument("--start-after", metavar="KEY", help="only keys after this one")
    objects.add_argument("--stop-at", metavar="KEY", help="only keys up to and including this one")


def _pace(parser: Group) -> None:
    settings_flags(parser, "engine", "concurrency", "max_rate", "max_calls")


def _audit(add: Add, name: str, summary: str) -> None:
    parser = command(add, name, summary)
    _targets(parser, "*")
    _estate(parser)
    settings_flags(parser, "level", "only", "ignore", "fail_on", "semantics", "key_policies", "out")
    settings_flags(parser, "source", "inventory")
    _pace(parser)
    settings_flags(parser, "ledger", "algorithms", "streams")
    settings_flags(group(parser, DIGESTS).add_mutually_exclusive_group(), "queue", "hash")
    settings_flags(parser, "accept_cost")
    batch = parser.add_argument_group(
        "S3 Batch Operations",
        "Large and archived objects can be left to it: manifests and jobs are written, no job is ever created.",
    )
    settings_flags(batch, "batch_over", "batch_manifest", "batch_role")
    settings_flags(parser, *CHANNELS)
    connection_flags(parser)
    if name == "audit":
        group(parser, RESULTS).add_argument(
            "--resume", metavar="RUN", help="go on with this interrupted run, in its folder"
        )
        group(parser, OBJECTS).add_argument(
            "--fill", metavar="RUN", help="ask again what this complete run could not read: its folder, path or URI"
        )
        group(parser, PACE).add_argument(
            "--jobs", metavar="N", type=int, help="audit ranges of keys in so many processes, under one --max-rate (1)"
        )
        settings_flags(parser, "max_cost", "keep", "every")
        format_flag(parser, PRINTED)
    else:
        _roles(parser)


def _estate(parser: Group) -> None:
    objects = group(parser, OBJECTS)
    objects.add_argument(
        "--all-buckets", action="store_true", help="every bucket of the account, in place of those named"
    )
    objects.add_argument(
        "--estate", metavar="FILE", help="every bucket of the accounts in this file, by a role of each"
    )


def _plan(add: Add) -> None:
    parser = command(add, "plan", "cut a bucket or prefix into ranges of keys that take about as long as each other")
    _targets(parser)
    objects = group(parser, OBJECTS)
    objects.add_argument("--ranges", metavar="N", type=int, default=64, help="number of ranges (64)")
    objects.add_argument("--listing", action="store_true", help="list pages of the bucket, even if a run has its keys")
    settings_flags(parser, "engine", "max_rate", out="where the last run of the target is (./auditor-runs)")
    connection_flags(parser)
    format_flag(parser)


def _estimate(add: Add) -> None:
    parser = command(add, "estimate", "list only, and say which calls such an audit would send, and what they cost")
    _targets(parser)
    settings_flags(parser, "level", "only", "ignore", "semantics", "key_policies")
    settings_flags(parser, "engine", "concurrency", "max_rate")
    settings_flags(parser, "ledger", "algorithms", "hash", "accept_cost", "batch_over")
    connection_flags(parser)
    format_flag(parser)


def _inventory(add: Add) -> None:
    parser = command(add, "inventory", "print the S3 Inventory to set up for a bucket, its policy and its price")
    parser.add_argument("target", metavar="s3://BUCKET[/PREFIX]", help="the bucket, or the keys with a prefix")
    settings_flags(parser, "versions", inventory="where the reports are to go: s3://BUCKET/PREFIX, another bucket")
    parser.add_argument("--weekly", action="store_true", help="a report each Sunday, not each day")
    parser.add_argument("--parquet", action="store_true", help="reports in Parquet, which need duckdb, not in CSV")
    settings_flags(parser, "profile", "region", expected_owner="the account (12 digits) that owns the bucket")
    config_flag(parser)
    format_flag(parser)


def _roles(parser: Group) -> None:
    parser.add_argument(
        "--audited-keys",
        metavar="ARN,..",
        help="KMS keys of the audited objects: with --hash or --role hashing, objects under SSE-KMS need them",
    )
    parser.add_argument(
        "--reports-key",
        metavar="ARN",
        help="KMS key of the bucket that --out names; with --role, of all that the stack makes",
    )
    parser.add_argument(
        "--inventory-key", metavar="ARN", help="KMS key of the S3 Inventory reports that --inventory names"
    )
    deployed = parser.add_argument_group(
        "the role of a deployed function",
        "It allows all that an event may ask for: rules and --versions do not matter.",
    )
    deployed.add_argument(
        "--role", choices=("audit", "hashing", "verify"), help="the role of this function, at --level (metadata)"
    )
    deployed.add_argument("--stage", metavar="NAME", help="stage of the deployment (prod)")
    deployed.add_argument("--vpc", action="store_true", help="the functions are in a VPC")
    deployed.add_argument(
        "--state-machine", action="store_true", help="a state machine audits large buckets (scale=map)"
    )
    deployed.add_argument(
        "--file-system", metavar="ARN", help="access point of the shared file system (EFS) that the functions mount"
    )


def _hash(add: Add) -> None:
    parser = command(add, "hash", "hash the objects that the ledger does not know, in this process")
    _targets(parser)
    settings_flags(parser, "ledger", "algorithms", "streams", "accept_cost")
    _pace(parser)
    connection_flags(parser)
    format_flag(parser)


def _work(add: Add) -> None:
    parser = command(add, "work", "hash the objects that the queue names, until it is empty")
    settings_flags(parser, queue="the queue that audits send to")
    settings_flags(parser, "ledger", "algorithms", "streams")
    parser.add_argument("--idle", metavar="SECONDS", default="20", help="end when the queue was empty for so long (20)")
    settings_flags(parser, engine="which client reads: direct, aioboto3, boto3", concurrency="most objects in flight")
    connection_flags(parser)
    format_flag(parser)


def _renew(add: Add) -> None:
    parser = command(add, "renew", "read the objects again that S3's events on a queue name, until it is empty")
    parser.add_argument("--events", metavar="SQS-URL", required=True, help="the queue that S3 sends its events to")
    settings_flags(parser, out="where the run folders are")
    parser.add_argument("--idle", metavar="SECONDS", default="20", help="end when the queue was empty for so long (20)")
    settings_flags(parser, "engine", "max_rate", *CHANNELS)
    connection_flags(parser)


def _digests(add: Add) -> None:
    summary = "write the ledger's digests or history, import manifests, or retire and acknowledge what verifying found"
    actions = add("digests", help=summary, description=f"{summary[0].upper()}{summary[1:]}.").add_subparsers(
        title="actions", dest="action", metavar="ACTION", required=True
    )
    export = command(actions.add_parser, "export", "write digests that the ledger has, as sha256sum does", "digests")
    export.add_argument("target", metavar="s3://BUCKET[/PREFIX]", help="whose digests")
    export.add_argument("--algorithm", dest="algorithms", metavar="NAME", help="which digests (sha256)")
    export.add_argument(
        "--manifest",
        choices=("sha256sum", "bagit", "csv"),
        default="sha256sum",
        help="its form: of sha256sum, sha1sum and md5sum; BagIt's; or a table of all digests",
    )
    export.add_argument("--relative", action="store_true", help="name keys without the prefix")
    export.add_argument(
        "--strict", action="store_true", help="fail, and keep no FILE, if a key lacks its present digest"
    )
    export.add_argument("--out", dest="file", metavar="FILE", help="write the manifest there, not to stdout")
    _ledger_only(export)
    imported = command(
        actions.add_parser, "import", "record a manifest's digests as expected digests for `auditor verify`", "digests"
    )
    imported.add_argument("files", nargs="+", metavar="FILE", help="manifests; names in them are keys below the prefix")
    imported.add_argument("target", metavar="s3://BUCKET[/PREFIX]", help="whose digests they are")
    settings_flags(imported, algorithms="only digests of these (all that a manifest has)")
    imported.add_argument(
        "--manifest",
        choices=("auto", "sha256sum", "bagit", "csv"),
        default="auto",
        help="their form: of sha256sum, sha1sum and md5sum; BagIt's; or a table; found out when left out",
    )
    _ledger_only(imported)
    format_flag(imported)
    history = command(actions.add_parser, "history", "write the history of all keys, line by line", "digests")
    history.add_argument("target", metavar="s3://BUCKET[/PREFIX]", help="whose history")
    history.add_argument("--format", dest="form", choices=("csv", "json-lines"), default="csv", help="its form (csv)")
    history.add_argument("--out", dest="file", metavar="FILE", help="write the history there, not to stdout")
    _ledger_only(history)
    _import_report(actions.add_parser)
    _settle(actions.add_parser, "retire", "stop expecting keys: `auditor verify` counts them as retired, not missing")
    _settle(
        actions.add_parser,
        "acknowledge",
        "say that the last findings of keys were looked into, so that the same ones count apart",
    )


def _settle(add: Add, name: str, summary: str) -> None:
    parser = command(add, name, summary, "settle")
    parser.add_argument("targets", nargs="+", metavar="s3://BUCKET/KEY", help="whole keys")
    parser.add_argument("--by", required=True, metavar="NAME", help="the person who says so, for the history")
    parser.add_argument("--reason", required=True, metavar="TEXT", help="the reason, for the history")
    parser.add_argument("--version", metavar="ID", help="only this version of the key")
    _ledger_only(parser)
    format_flag(parser)


def _import_report(add: Add) -> None:
    parser = command(
        add,
        "import-report",
        "record the checksums in the report of a compute checksum job of S3 Batch Operations",
        "import_report",
    )
    parser.add_argument(
        "reports", nargs="+", metavar="REPORT", help="its folder, manifest.json or a CSV: a path or s3://BUCKET/KEY"
    )
    settings_flags(parser, "ledger", engine="which client looks: direct, aioboto3, boto3")
    settings_flags(parser, "max_rate")
    connection_flags(parser)
    format_flag(parser)


def _ledger(add: Add) -> None:
    parser = command(add, "ledger", "show the ledger's record of one key and its history, or check a whole ledger")
    parser.add_argument("target", nargs="?", metavar="s3://BUCKET/KEY", help="the whole key")
    whole = parser.add_mutually_exclusive_group()
    whole.add_argument(
        "--check",
        nargs="?",
        const="",
        metavar="LEDGER",
        help="check the seals of all digests and lines of this ledger (of --ledger); exit 3 for damage",
    )
    whole.add_argument(
        "--shard",
        nargs="?",
        const="",
        metavar="LEDGER",
        help="give shards to this DynamoDB table, which an earlier release began without; exit 3 for a conflict",
    )
    _ledger_only(parser)
    format_flag(parser)


def _ledger_only(parser: Group) -> None:
    """Add the flags of a command that calls the ledger and never S3."""
    settings_flags(parser, "ledger", endpoint_url="where DynamoDB is, unless it has its own endpoint")
    settings_flags(parser, "profile", region="the table's region")
    config_flag(parser)


def _verify(add: Add) -> None:
    parser = command(add, "verify", "read objects again and compare them with the ledger")
    _targets(parser)
    settings_flags(parser, ledger="the ledger that they are compared with: sqlite:PATH or dynamodb:TABLE")
    group(parser, DIGESTS).add_argument(
        "--algorithm",
        dest="compared",
        metavar="NAME,..",
        help="compare these digests where the ledger has one of them (all that it has)",
    )
    settings_flags(group(parser, DIGESTS).add_mutually_exclusive_group(), "max_age", "percent")
    settings_flags(
        parser,
        "every",
        "grace",
        "fail_on_outcomes",
        "record",
        accept_cost="read objects too whose storage class is charged for reading (IA, Glacier IR ..)",
    )
    group(parser, RESULTS).add_argument(
        "--combined", metavar="FILE", help="write a line for each object there, `-`: to stdout"
    )
    settings_flags(parser, out="where reports go: a directory or s3://BUCKET/PREFIX")
    _pace(parser)
    settings_flags(parser, *CHANNELS)
    connection_flags(parser)
    format_flag(parser)


def _rules(add: Add) -> None:
    parser = command(add, "rules", "list the rules, or explain some")
    parser.add_argument("ids", nargs="*", metavar="RULE", help="explain these")
    format_flag(parser)


def _demo(add: Add) -> None:
    parser = command(add, "demo", "audit a bucket with planted problems on an AWS inside this process")
    parser.add_argument("--from", dest="files", metavar="DIR", help="load these files (the standard library's sources)")
    settings_flags(parser, "engine")
    parser.add_argument("--out", metavar="DIR", help="where the run folders go (./auditor-runs)")


def _completion(add: Add) -> None:
    parser = command(add, "completion", "print the code that completes the auditor's commands and flags in a shell")
    parser.add_argument("shell", choices=("bash", "zsh", "fish", "powershell"), help="the shell")
