"""Declare the commands and flags. A flag keeps its raw text; config/settings.py reads the text as it reads an
environment variable.
"""

from __future__ import annotations

import argparse

from auditor.cli.digests_parser import (
    digests_command,
    hash_command,
    ledger_command,
    verify_command,
    work_command,
)
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
    pace_flags,
    settings_flags,
    target_flags,
    whole_number,
)
from auditor.cli.run_parser import RUN_COMMANDS
from auditor.cli.suggesting import HelpAll, SuggestingParser
from auditor.config.settings import CHANNELS
from auditor.model.version import VERSION
from auditor.reports.formats import PRINTED


def make_parser() -> argparse.ArgumentParser:
    parser = SuggestingParser(
        prog="auditor",
        description="Who can read each object of an S3 bucket, how it is protected, and the digests of its bytes. "
        "It only ever reads the audited bucket.",
        epilog="help COMMAND prints the page of a command. Exit codes: 0 complete and clean; 1 failed; "
        "2 wrong usage; 3 findings at or above --fail-on, or outcomes that it names (verify: digests that do not "
        "match, missing objects); 4 something could not be looked at.",
    )
    parser.add_argument("-V", "--version", action="version", version=f"auditor {VERSION}")
    parser.add_argument("--help-all", action=HelpAll, nargs=0, help=argparse.SUPPRESS)
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    _audit(commands.add_parser, "audit", "audit the objects of buckets and prefixes")
    _estimate(commands.add_parser)
    _inventory(commands.add_parser)
    hash_command(commands.add_parser)
    work_command(commands.add_parser)
    _renew(commands.add_parser)
    verify_command(commands.add_parser)
    digests_command(commands.add_parser)
    _plan(commands.add_parser)
    ledger_command(commands.add_parser)
    for declare in RUN_COMMANDS:
        declare(commands.add_parser)
    _rules(commands.add_parser)
    _audit(commands.add_parser, "policy", "print the least IAM policy that an audit needs")
    _demo(commands.add_parser)
    _completion(commands.add_parser)
    return parser


def _audit(add: Add, name: str, summary: str) -> None:
    parser = command(add, name, summary)
    target_flags(parser, "*")
    _estate(parser)
    settings_flags(parser, "allow_empty", "level", "only", "ignore", "fail_on", "semantics", "key_policies", "out")
    settings_flags(parser, "source", "inventory")
    pace_flags(parser)
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
            "--fill",
            metavar="RUN",
            help="read again what this complete run could not read; RUN is its folder, a path or URI",
        )
        group(parser, PACE).add_argument(
            "--jobs",
            metavar="N",
            type=whole_number,
            help="audit the ranges of a bucket in N processes, under one --max-rate (1)",
        )
        settings_flags(parser, "max_cost", "keep", "every")
        format_flag(parser, PRINTED)
    else:
        _roles(parser)


def _estate(parser: Group) -> None:
    objects = group(parser, OBJECTS)
    objects.add_argument("--all-buckets", action="store_true", help="every bucket of the account")
    objects.add_argument(
        "--estate", metavar="FILE", help="every bucket of the accounts in this TOML file, each account by its role"
    )


def _plan(add: Add) -> None:
    parser = command(add, "plan", "cut a bucket or prefix into ranges with about the same number of keys")
    target_flags(parser)
    objects = group(parser, OBJECTS)
    objects.add_argument("--ranges", metavar="N", type=whole_number, default=64, help="number of ranges (64)")
    objects.add_argument(
        "--listing", action="store_true", help="cut by the bucket's listing, even if a run folder has its keys"
    )
    settings_flags(parser, "engine", "max_rate", out="where the last run of the target is (./auditor-runs)")
    connection_flags(parser)
    format_flag(parser)


def _estimate(add: Add) -> None:
    parser = command(add, "estimate", "list a bucket, and print which calls an audit would send and what they cost")
    target_flags(parser)
    settings_flags(parser, "level", "only", "ignore", "semantics", "key_policies")
    settings_flags(parser, "engine", "concurrency", "max_rate", "keep", "every")
    settings_flags(parser, out="where the last run is whose facts --keep reuses: a directory or s3://BUCKET/PREFIX")
    settings_flags(parser, "ledger", "algorithms", "hash", "accept_cost", "batch_over")
    connection_flags(parser)
    format_flag(parser)


def _inventory(add: Add) -> None:
    parser = command(add, "inventory", "print the S3 Inventory to set up for a bucket, its policy and its price")
    parser.add_argument("target", metavar="s3://BUCKET[/PREFIX]", help="the bucket, or the keys with a prefix")
    settings_flags(
        parser, "versions", inventory="where S3 is to write the reports: s3://BUCKET/PREFIX in another bucket"
    )
    parser.add_argument("--weekly", action="store_true", help="a report each Sunday, not each day")
    parser.add_argument(
        "--parquet", action="store_true", help="reports in Parquet in place of CSV; reading them takes duckdb"
    )
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
        "--role",
        choices=("audit", "hashing", "renew", "verify"),
        help="the role of this function, at --level (metadata)",
    )
    deployed.add_argument("--stage", metavar="NAME", help="stage of the deployment (prod)")
    deployed.add_argument("--vpc", action="store_true", help="the functions are in a VPC")
    deployed.add_argument(
        "--state-machine", action="store_true", help="a state machine audits large buckets (scale=map)"
    )
    deployed.add_argument(
        "--file-system", metavar="ARN", help="access point of the shared file system (EFS) that the functions mount"
    )


def _renew(add: Add) -> None:
    parser = command(add, "renew", "read changed objects again: those that S3's events on a queue name")
    parser.add_argument("--events", metavar="SQS-URL", required=True, help="the queue that S3 sends its events to")
    settings_flags(parser, out="where the run folders are")
    parser.add_argument(
        "--idle", metavar="SECONDS", default="20", help="end after the queue has been empty for this long (20)"
    )
    settings_flags(parser, "engine", "max_rate", *CHANNELS)
    connection_flags(parser)


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
