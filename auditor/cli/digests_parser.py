"""Declare the commands on digests: hash, work, verify, digests and ledger."""

from __future__ import annotations

from auditor.cli.flags import (
    DIGESTS,
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
)
from auditor.config.settings import CHANNELS


def hash_command(add: Add) -> None:
    parser = command(add, "hash", "hash the objects that the ledger does not know, in this process")
    target_flags(parser)
    settings_flags(parser, "allow_empty")
    settings_flags(parser, "ledger", "algorithms", "streams", "accept_cost")
    pace_flags(parser)
    connection_flags(parser)
    format_flag(parser)


def work_command(add: Add) -> None:
    parser = command(add, "work", "hash the objects that the queue names, until it is empty")
    settings_flags(parser, queue="the queue that audits send to")
    settings_flags(parser, "ledger", "algorithms", "streams")
    parser.add_argument(
        "--idle", metavar="SECONDS", default="20", help="end after the queue has been empty for this long (20)"
    )
    settings_flags(parser, engine="which client reads: direct, aioboto3, boto3", concurrency="most objects in flight")
    connection_flags(parser)
    format_flag(parser)


def digests_command(add: Add) -> None:
    summary = "export and import digests, write their history, retire keys, acknowledge findings"
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
        help="their form: of sha256sum, sha1sum and md5sum; BagIt's; or a table (by default the auditor finds out)",
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
        "mark the last findings of keys as looked into: `auditor verify` counts them apart",
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
    settings_flags(parser, "ledger", engine="which client reads: direct, aioboto3, boto3")
    settings_flags(parser, "max_rate")
    connection_flags(parser)
    format_flag(parser)


def ledger_command(add: Add) -> None:
    parser = command(add, "ledger", "show the ledger's record of one key and its history, or check or repair a ledger")
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
        "--repair",
        nargs="?",
        const="",
        metavar="LEDGER",
        help="write each damaged digest of this ledger anew that a sound line of the history recorded; then check it",
    )
    _ledger_only(parser)
    format_flag(parser)


def _ledger_only(parser: Group) -> None:
    """Add the flags of a command that calls the ledger and never S3."""
    settings_flags(parser, "ledger", endpoint_url="where DynamoDB is, unless it has its own endpoint")
    settings_flags(parser, "profile", region="the table's region")
    config_flag(parser)


def verify_command(add: Add) -> None:
    parser = command(add, "verify", "read objects again and compare them with the ledger")
    target_flags(parser)
    settings_flags(parser, "allow_empty")
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
        accept_cost="also read objects of storage classes that charge for reading (IA, Glacier IR ..)",
    )
    group(parser, RESULTS).add_argument(
        "--combined", metavar="FILE", help="write a line for each object to this file; -: to stdout"
    )
    settings_flags(parser, out="where reports go: a directory or s3://BUCKET/PREFIX")
    pace_flags(parser)
    settings_flags(parser, *CHANNELS)
    connection_flags(parser)
    format_flag(parser)
