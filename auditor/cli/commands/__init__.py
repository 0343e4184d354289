"""The commands of the command line, in the order of its first page: COMMANDS by the title of their group, and ACTIONS
of those commands that are several.

The module of a command NAME has two functions: declare_NAME(flags) declares its flags, and its docstring has the
examples of the help page; run_NAME(options) does its work, and returns the exit code.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import Final, NamedTuple

from auditor.cli.flags import Flags


class Command(NamedTuple):
    """One command, or one action of a command. name: as it is typed. module: the one that has its functions, in this
    package; "" for a command that only has actions. summary: one sentence, without capital and full stop.
    """

    name: str
    module: str
    summary: str

    def functions(self) -> tuple[Callable[[Flags], None], Callable[[argparse.Namespace], int]]:
        """Import the command's module, and return the functions that declare its flags and run it."""
        module, word = import_module(f"{__name__}.{self.module}"), self.name.replace("-", "_")
        return getattr(module, f"declare_{word}"), getattr(module, f"run_{word}")


COMMANDS: Final = {
    "every day": (
        Command("audit", "audit", "audit the objects of buckets and prefixes"),
        Command("explain", "explain", "say who can reach an object, and why: live, or from a run folder"),
        Command("diff", "run_folders", "print what changed between two runs of one target"),
        Command("what-if", "what_if", "print what another policy, or no ACLs, would do to the objects of a run"),
        Command("fix-kit", "what_if", "write the policy, jobs and steps that close what a run found open"),
        Command("verify", "verify", "read objects again and compare them with the ledger"),
    ),
    "before the first audit": (
        Command("demo", "demo", "audit a bucket with planted problems on an AWS inside this process"),
        Command("estimate", "estimate", "list a bucket, and print which calls an audit would send and what they cost"),
        Command("policy", "policy", "print the least IAM policy that an audit needs"),
        Command("rules", "rules", "list the rules, or explain some"),
    ),
    "a finished run: probe alone sends requests to its bucket": (
        Command("report", "run_folders", "write the page of a run, or the index page of all targets, anew"),
        Command("export", "run_folders", "write a run in a format for other programs"),
        Command("sql", "sql", "answer an SQL query on a run, or list its tables"),
        Command("judge", "run_folders", "judge a run again, by other rules or settings"),
        Command("check", "run_folders", "prove that no part of a run was altered, cut, left out or added"),
        Command("accept", "accept", "print an entry of [[exceptions]] that covers a finding or a group of the page"),
        Command("who", "accept", "name an account or another party, and count its access in a run"),
        Command("probe", "probe", "ask S3 as a stranger if the verdicts of a run hold"),
    ),
    "digests of the bytes": (
        Command("hash", "hash", "hash the objects that the ledger does not know, in this process"),
        Command("work", "hash", "hash the objects that the queue names, until it is empty"),
        Command("digests", "", "export and import digests, write their history, retire keys, acknowledge findings"),
        Command("ledger", "ledger", "show the ledger's record of one key and its history, or check or repair a ledger"),
    ),
    "large buckets, and a shell": (
        Command("renew", "renew", "read changed objects again: those that S3's events on a queue name"),
        Command("plan", "estimate", "cut a bucket or prefix into ranges with about the same number of keys"),
        Command("inventory", "policy", "print the S3 Inventory to set up for a bucket, its policy and its price"),
        Command("completion", "rules", "print the code that completes the auditor's commands and flags in a shell"),
    ),
}
ACTIONS: Final = {
    "digests": (
        Command("export", "digests", "write digests that the ledger has, as sha256sum does"),
        Command("import", "digests", "record a manifest's digests as expected digests for `auditor verify`"),
        Command("history", "digests", "write the history of all keys, line by line"),
        Command("import-report", "digests", "record the checksums that a report of S3 Batch Operations states"),
        Command("retire", "digests", "stop expecting keys: `auditor verify` counts them as retired, not missing"),
        Command("acknowledge", "digests", "mark the last findings of keys as looked into: verify counts them apart"),
    )
}
