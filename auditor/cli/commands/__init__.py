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
        Command("diff", "run_folders", "print the changes between two runs of one target"),
        Command("what-if", "what_if", "predict what another policy, or no ACLs, would change for the objects of a run"),
        Command("fix-kit", "what_if", "write the policy, jobs and steps that close the exposures in a run"),
        Command("verify", "verify", "read objects again and compare them with the ledger"),
    ),
    "before the first audit": (
        Command("demo", "demo", "audit a bucket with planted problems, on a simulated AWS inside this process"),
        Command("estimate", "estimate", "list a bucket, and print the calls that an audit would send and their cost"),
        Command("policy", "policy", "print the smallest IAM policy that an audit needs"),
        Command("rules", "rules", "list the rules, or explain some of them"),
    ),
    "a finished run (only probe sends requests to its bucket)": (
        Command("report", "run_folders", "rewrite the page of a run, or the index page of all targets"),
        Command("export", "run_folders", "write a run in a format that other programs read"),
        Command("sql", "sql", "run an SQL query on a run, or list its tables"),
        Command("judge", "run_folders", "judge a run again, with other rules or settings"),
        Command("check", "run_folders", "prove that no part of a run was altered, truncated, removed or added"),
        Command("accept", "accept", "print an [[exceptions]] entry that covers a finding or a group of the page"),
        Command("who", "accept", "name an account or another party, and count its access in a run"),
        Command("probe", "probe", "ask S3 as a stranger whether the verdicts of a run hold"),
    ),
    "digests of the bytes": (
        Command("hash", "hash", "hash the objects that the ledger does not know yet"),
        Command("work", "hash", "hash the objects named in the queue until it is empty"),
        Command("digests", "", "export and import digests, write their history, retire keys, acknowledge findings"),
        Command("ledger", "ledger", "show the ledger's record of one key and its history, or check or repair a ledger"),
    ),
    "large buckets, and shell completion": (
        Command("renew", "renew", "read again the objects that S3's events on a queue report as changed"),
        Command("plan", "estimate", "split a bucket or prefix into ranges with about the same number of keys"),
        Command("inventory", "policy", "print an S3 Inventory configuration for a bucket, with its policy and price"),
        Command("completion", "rules", "print the completion script for a shell"),
    ),
}
ACTIONS: Final = {
    "digests": (
        Command("export", "digests", "write digests from the ledger in the form of sha256sum"),
        Command("import", "digests", "record a manifest's digests as expected digests for `auditor verify`"),
        Command("history", "digests", "write the history of all keys"),
        Command("import-report", "digests", "record the checksums in an S3 Batch Operations report"),
        Command("retire", "digests", "stop expecting keys: `auditor verify` counts them as retired, not missing"),
        Command("acknowledge", "digests", "mark the last findings of keys as investigated: verify counts them apart"),
    )
}
