"""Declare the commands and flags. A flag keeps its raw text; config/settings.py reads the text as it reads an
environment variable.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module

from auditor.cli.options import settings_of, targets_of
from auditor.config.settings import SETTINGS
from auditor.model.version import VERSION

Group = argparse._ActionsContainer


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
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
    _hash(commands.add_parser)
    _work(commands.add_parser)
    _verify(commands.add_parser)
    _digests(commands.add_parser)
    _ledger(commands.add_parser)
    _rules(commands.add_parser)
    _audit(commands.add_parser, "policy", "print the least IAM policy for such an audit")
    _demo(commands.add_parser)
    return parser


Add = Callable[..., argparse.ArgumentParser]


def _command(add: Add, name: str, summary: str, module: str | None = None) -> Group:
    """Add a command to the parser. module: name of the command's module in auditor.cli.commands, which has a function
    `run(options) -> int`; None: the module is named as the command.

    The module is imported when the command runs, because the import is slow. Wrong settings are refused before the
    import.
    """

    def run(options: argparse.Namespace) -> int:
        if "config" in options:
            settings = settings_of(options)
            if "start_after" in options:
                targets_of(options, settings)
        code: int = import_module(f"auditor.cli.commands.{module or name}").run(options)
        return code

    parser = add(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
    parser.set_defaults(run=run)
    parser.add_argument("-v", "--verbose", action="count", default=0, help="more on stderr; twice for all of it")
    return parser


def _settings(parser: Group, *names: str, **helps: str) -> None:
    """Add the flags of the settings with these names. helps: settings with a help text for this command alone."""
    for name in (*names, *helps):
        setting = SETTINGS[name]
        text, metavar = helps.get(name, setting.help), setting.flag.partition(" ")[2]
        if metavar:
            parser.add_argument(setting.option, dest=name, metavar=metavar, help=text)
        else:
            parser.add_argument(setting.option, dest=name, action="store_const", const=True, help=text)


def _targets(parser: Group) -> None:
    parser.add_argument(
        "targets", nargs="+", metavar="s3://BUCKET[/PREFIX]", help="a bucket, or the keys with a prefix"
    )
    _settings(parser, "versions")
    parser.add_argument("--start-after", metavar="KEY", help="only keys after this one")
    parser.add_argument("--stop-at", metavar="KEY", help="only keys up to and including this one")


def _connection(parser: Group) -> None:
    _settings(parser, "endpoint_url", "profile", "region", "expected_owner", "requester_pays")
    _config(parser)


def _config(parser: Group) -> None:
    parser.add_argument("--config", metavar="FILE", help="settings file (auditor.toml, when there is one)")


def _pace(parser: Group) -> None:
    _settings(parser, "engine", "concurrency", "max_rate", "max_calls")


def _format(parser: Group) -> None:
    parser.add_argument("--format", choices=("table", "json"), default="table", help="how results are printed")


def _audit(add: Add, name: str, summary: str) -> None:
    parser = _command(add, name, summary)
    _targets(parser)
    _pace(parser)
    _settings(parser, "level", "only", "ignore", "fail_on", "out", "ledger", "algorithms", "streams")
    _settings(parser.add_mutually_exclusive_group(), "queue", "hash")
    _settings(parser, "accept_cost")
    batch = parser.add_argument_group(
        "S3 Batch Operations",
        "Large and archived objects can be left to it: manifests and jobs are written, no job is ever created.",
    )
    _settings(batch, "batch_over", "batch_manifest", "batch_role")
    _connection(parser)
    if name == "audit":
        parser.add_argument("--resume", metavar="RUN", help="go on with this interrupted run, in its folder")
        _format(parser)
    else:
        _roles(parser)


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
    deployed = parser.add_argument_group(
        "the role of a deployed function",
        "It allows all that an event may ask for: rules and --versions do not matter.",
    )
    deployed.add_argument(
        "--role", choices=("audit", "hashing", "verify"), help="the role of this function, at --level (metadata)"
    )
    deployed.add_argument("--stage", metavar="NAME", help="stage of the deployment (prod)")
    deployed.add_argument("--topic", metavar="ARN", help="topic for alerts, where the deployment was given one")
    deployed.add_argument("--vpc", action="store_true", help="the functions are in a VPC")


def _hash(add: Add) -> None:
    parser = _command(add, "hash", "hash the objects that the ledger does not know, in this process")
    _targets(parser)
    _settings(parser, "ledger", "algorithms", "streams", "accept_cost")
    _pace(parser)
    _connection(parser)
    _format(parser)


def _work(add: Add) -> None:
    parser = _command(add, "work", "hash the objects that the queue names, until it is empty")
    _settings(parser, queue="the queue that audits send to")
    _settings(parser, "ledger", "algorithms", "streams")
    parser.add_argument("--idle", metavar="SECONDS", default="20", help="end when the queue was empty for so long (20)")
    _settings(parser, engine="which client reads: direct, aioboto3, boto3", concurrency="most objects in flight")
    _connection(parser)
    _format(parser)


def _digests(add: Add) -> None:
    summary = "write the ledger's digests or history, import manifests, or retire and acknowledge what verifying found"
    actions = add("digests", help=summary, description=f"{summary[0].upper()}{summary[1:]}.").add_subparsers(
        title="actions", dest="action", metavar="ACTION", required=True
    )
    export = _command(actions.add_parser, "export", "write digests that the ledger has, as sha256sum does", "digests")
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
    imported = _command(
        actions.add_parser, "import", "record a manifest's digests as expected digests for `auditor verify`", "digests"
    )
    imported.add_argument("files", nargs="+", metavar="FILE", help="manifests; names in them are keys below the prefix")
    imported.add_argument("target", metavar="s3://BUCKET[/PREFIX]", help="whose digests they are")
    _settings(imported, algorithms="only digests of these (all that a manifest has)")
    imported.add_argument(
        "--manifest",
        choices=("auto", "sha256sum", "bagit", "csv"),
        default="auto",
        help="their form: of sha256sum, sha1sum and md5sum; BagIt's; or a table; found out when left out",
    )
    _ledger_only(imported)
    _format(imported)
    history = _command(actions.add_parser, "history", "write the history of all keys, line by line", "digests")
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
    parser = _command(add, name, summary, "settle")
    parser.add_argument("targets", nargs="+", metavar="s3://BUCKET/KEY", help="whole keys")
    parser.add_argument("--by", required=True, metavar="NAME", help="the person who says so, for the history")
    parser.add_argument("--reason", required=True, metavar="TEXT", help="the reason, for the history")
    parser.add_argument("--version", metavar="ID", help="only this version of the key")
    _ledger_only(parser)
    _format(parser)


def _import_report(add: Add) -> None:
    parser = _command(
        add,
        "import-report",
        "record the checksums in the report of a compute checksum job of S3 Batch Operations",
        "import_report",
    )
    parser.add_argument(
        "reports", nargs="+", metavar="REPORT", help="its folder, manifest.json or a CSV: a path or s3://BUCKET/KEY"
    )
    _settings(parser, "ledger", engine="which client looks: direct, aioboto3, boto3")
    _settings(parser, "max_rate")
    _connection(parser)
    _format(parser)


def _ledger(add: Add) -> None:
    parser = _command(add, "ledger", "show the ledger's record of one key and its history, or check a whole ledger")
    parser.add_argument("target", nargs="?", metavar="s3://BUCKET/KEY", help="the whole key")
    parser.add_argument(
        "--check",
        nargs="?",
        const="",
        metavar="LEDGER",
        help="check the seals of all digests and lines of this ledger (of --ledger); exit 3 for damage",
    )
    _ledger_only(parser)
    _format(parser)


def _ledger_only(parser: Group) -> None:
    """Add the flags of a command that calls the ledger and never S3."""
    _settings(parser, "ledger", endpoint_url="where DynamoDB is, unless it has its own endpoint")
    _settings(parser, "profile", region="the table's region")
    _config(parser)


def _verify(add: Add) -> None:
    parser = _command(add, "verify", "read objects again and compare them with the ledger")
    _targets(parser)
    _settings(parser, ledger="the ledger that they are compared with: sqlite:PATH or dynamodb:TABLE")
    parser.add_argument(
        "--algorithm",
        dest="compared",
        metavar="NAME,..",
        help="compare these digests where the ledger has one of them (all that it has)",
    )
    _settings(parser.add_mutually_exclusive_group(), "max_age", "percent")
    _settings(
        parser,
        "every",
        "grace",
        "fail_on_outcomes",
        "record",
        accept_cost="read objects too whose storage class is charged for reading (IA, Glacier IR ..)",
    )
    parser.add_argument("--combined", metavar="FILE", help="write a line for each object there, `-`: to stdout")
    _settings(parser, out="where reports go: a directory or s3://BUCKET/PREFIX")
    _pace(parser)
    _connection(parser)
    _format(parser)


def _rules(add: Add) -> None:
    parser = _command(add, "rules", "list the rules, or explain some")
    parser.add_argument("ids", nargs="*", metavar="RULE", help="explain these")
    _format(parser)


def _demo(add: Add) -> None:
    parser = _command(add, "demo", "audit a bucket with planted problems on an AWS inside this process")
    parser.add_argument(
        "--from", dest="source", metavar="DIR", help="load these files (the standard library's sources)"
    )
    _settings(parser, "engine")
    parser.add_argument("--out", metavar="DIR", help="where the run folders go (./auditor-runs)")
