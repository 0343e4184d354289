"""Declare the commands that read a run folder: explain, what-if, fix-kit, diff, judge, check, report, export, sql."""

from __future__ import annotations

from typing import Final

from auditor.cli.flags import (
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
from auditor.reports.formats import FORMATS, PRINTED

_RUN: Final = "a run folder, or s3://BUCKET[/PREFIX]: the latest complete run of that target"


def explain_command(add: Add) -> None:
    parser = command(add, "explain", "say who can reach an object, and why: live, or from a run folder")
    parser.add_argument("objects", nargs="+", metavar="s3://BUCKET/KEY", help="whole keys")
    parser.add_argument(
        "--run",
        dest="run_folder",
        metavar="RUN",
        help=f"explain from {_RUN}; or by its ID; without a request",
    )
    parser.add_argument("--version-id", metavar="ID", help="this version, not the current one")
    settings_flags(parser, out="where the run with this ID is (./auditor-runs)")
    settings_flags(parser, "engine", "key_policies")
    connection_flags(parser)
    format_flag(parser)


def what_if_command(add: Add) -> None:
    parser = command(
        add, "what-if", "print what another policy, or no ACLs, would do to the objects of a run", "what_if"
    )
    parser.add_argument("run_folder", metavar="RUN", help=_RUN)
    change = parser.add_argument_group("the change")
    _either(change, "acls", ("--acls-off", False, "no ACL counts"), ("--acls-on", True, "ACLs count again"))
    policy = change.add_mutually_exclusive_group()
    policy.add_argument("--policy", metavar="FILE", help="the bucket policy is this one")
    policy.add_argument("--no-policy", action="store_true", help="there is no bucket policy")
    _either(
        change,
        "block",
        ("--block-public-access", True, "all four switches are on, of the bucket or its account"),
        ("--no-block-public-access", False, "the bucket's four switches are off"),
    )
    change.add_argument("--ignore-public-acls", action="store_true", help="BlockPublicAcls and IgnorePublicAcls are on")
    change.add_argument(
        "--restrict-public-policy", action="store_true", help="BlockPublicPolicy and RestrictPublicBuckets are on"
    )
    settings_flags(change, requester_pays="the requester pays")
    change.add_argument("--trust", action="append", metavar="X", help="this party is trusted too; may be repeated")
    results = group(parser, RESULTS)
    results.add_argument("--keys", metavar="FILE", help="write each changed object there, as JSON Lines")
    settings_flags(parser, "profile", endpoint_url="where the run's bucket is", region="region of the run's bucket")
    config_flag(parser)
    format_flag(
        parser, ("table", "json", "sarif"), "how the answer is printed; sarif: at the lines of the policy's file"
    )


def fix_kit_command(add: Add) -> None:
    parser = command(add, "fix-kit", "write the policy, jobs and steps that close what a run found open", "fix_kit")
    _run_folder(parser)
    group(parser, RESULTS).add_argument(
        "--out", dest="kit", metavar="DIR", required=True, help="write the kit there: a new or an empty directory"
    )
    _store(parser)
    format_flag(parser)


def _either(parser: Group, name: str, *flags: tuple[str, bool, str]) -> None:
    """Add flags that exclude each other, each with the value that it gives to the option `name`, and its help."""
    group = parser.add_mutually_exclusive_group()
    for flag, value, text in flags:
        group.add_argument(flag, dest=name, action="store_const", const=value, help=text)


def judge_command(add: Add) -> None:
    parser = command(add, "judge", "judge a run again, by other rules or settings")
    _run_folder(parser)
    parser.add_argument("--config", metavar="FILE", help="judge by this auditor.toml (by the run's own configuration)")
    parser.add_argument(
        "--all-rules",
        action="store_true",
        help="select among all rules of this version, not only those that judged the run",
    )
    settings_flags(parser, "level", "only", "ignore", "semantics")
    parser.add_argument("--trust", action="append", metavar="X", help="this party is trusted too; may be repeated")
    settings_flags(parser, "fail_on", out="where the new run folder goes (beside RUN)")
    _bucket(parser)
    format_flag(parser, PRINTED)


def accept_command(add: Add) -> None:
    summary = "print an entry of [[exceptions]], for auditor.toml, that covers a finding or a group of the page"
    parser = command(add, "accept", summary)
    parser.add_argument(
        "accepted",
        metavar="FINGERPRINT|GROUP",
        help="a finding's fingerprint, 32 hex digits, or a group's ID in rollups.json and on the page, 12 hex digits",
    )
    parser.add_argument("--run", dest="run_folder", metavar="RUN", required=True, help=f"the run that has it: {_RUN}")
    parser.add_argument("--owner", metavar="TEXT", default="", help="the person or team that answers for it")
    parser.add_argument("--reason", metavar="TEXT", default="", help="why it is accepted")
    parser.add_argument("--until", metavar="DAY", help="the last day on which it holds: YYYY-MM-DD (in 90 days)")
    _store(parser)


def who_command(add: Add) -> None:
    parser = command(add, "who", "name an account or another party, and count its access in a run")
    parser.add_argument("id", metavar="ID", help="a canonical ID, an account, an ARN, a network, as a report names it")
    parser.add_argument("--run", dest="run_folder", metavar="RUN", help=f"count its access in {_RUN}")
    _store(parser)


def check_command(add: Add) -> None:
    parser = command(add, "check", "prove that no part of a run was altered, cut, left out or added")
    _run_folder(parser)
    _store(parser)
    format_flag(parser)


def report_command(add: Add) -> None:
    parser = command(add, "report", "write the page of a run, or the index page of all targets, anew")
    parser.add_argument(
        "run_folder",
        metavar="RUN|OUT",
        help="a run folder, or the place of all of them, for the index page of their targets: a path or URI",
    )
    parser.add_argument(
        "--out",
        dest="file",
        metavar="FILE",
        help="write the page there (report.html; for OUT its index.html); -: stdout",
    )
    _store(parser)


def export_command(add: Add) -> None:
    parser = command(add, "export", "write a run in a format for other programs")
    _run_folder(parser)
    parser.add_argument(
        "--format",
        required=True,
        choices=tuple(FORMATS),
        help="; ".join(f"{name}: {one.words}" for name, one in FORMATS.items()),
    )
    parser.add_argument("--out", dest="file", metavar="FILE", help="write there, not to stdout")
    hub = parser.add_argument_group("AWS Security Hub, for asff")
    hub.add_argument("--account", metavar="NUMBER", help="the account that the findings are of (the run's)")
    hub.add_argument(
        "--send",
        action="store_true",
        help="import the findings into the Security Hub of the credentials' account, and archive those of the last run "
        "that are over",
    )
    settings_flags(parser, "endpoint_url", "profile")
    settings_flags(parser, region="region of the findings (the bucket's), and of the bucket that has the run folder")
    config_flag(parser)


def sql_command(add: Add) -> None:
    parser = command(add, "sql", "answer an SQL query on a run, or list its tables")
    _run_folder(parser)
    parser.add_argument("query", nargs="?", metavar="QUERY", help="one SELECT in DuckDB's SQL (the tables and columns)")
    results = group(parser, RESULTS)
    format_flag(
        parser,
        ("table", "csv", "jsonl"),
        "how the answer is printed: table has at most 1,000 rows, csv and jsonl have all",
    )
    results.add_argument(
        "--schema",
        choices=("athena", "duckdb"),
        help="print the statements with which this program reads such runs, no answer",
    )
    _store(parser)


def diff_command(add: Add) -> None:
    parser = command(add, "diff", "print what changed between two runs of one target")
    parser.add_argument("old", metavar="OLD", help=f"the earlier run: {_RUN}")
    parser.add_argument("new", metavar="NEW", help="the later run")
    _store(parser)
    format_flag(
        parser,
        ("table", "json", "jsonl"),
        "how the changes are printed: table names the first of each kind, json counts them, jsonl has each",
    )


def _run_folder(parser: Group) -> None:
    parser.add_argument("run_folder", metavar="RUN", help=_RUN)


def _store(parser: Group) -> None:
    """Add the flags for a run folder in a bucket, and for the settings file."""
    _bucket(parser)
    config_flag(parser)


def _bucket(parser: Group) -> None:
    settings_flags(parser, "endpoint_url", "profile", region="region of the bucket that has the run folder")


RUN_COMMANDS: Final = (
    *(explain_command, what_if_command, fix_kit_command, diff_command, judge_command, check_command),
    *(accept_command, who_command, report_command, export_command, sql_command),
)
"""The functions that declare these commands."""
