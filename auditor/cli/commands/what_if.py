"""The commands `auditor what-if` and `auditor fix-kit`: another policy for the bucket of a run, tried and prepared."""

from __future__ import annotations

import argparse
import json
import os
from typing import Final

from auditor.cli import signals
from auditor.cli.command_frame import CommandFrame, command, in_thread
from auditor.cli.flags import RESULTS, Flags
from auditor.cli.output import print_text
from auditor.cli.progress import columns
from auditor.config import values
from auditor.errors import UsageError
from auditor.offline.fix_kit.build import FixKit
from auditor.offline.fix_kit.readme import Kit, table
from auditor.offline.formats.sarif import as_sarif
from auditor.offline.what_if import WhatIf, WhatIfQuestion, lines_to, read_policy
from auditor.verdict.change import BucketChange, switches
from auditor.verdict.policy_text import statement_lines

_NO_FILE: Final = "SARIF names the lines of a policy file that open objects: add --policy FILE"
_CHANGE: Final = "the change"


def declare_what_if(flags: Flags) -> None:
    """Declare the flags of `auditor what-if`.

    auditor what-if s3://my-bucket --acls-off
    auditor what-if s3://my-bucket --policy policy.json --format sarif
    auditor what-if s3://my-bucket --block-public-access --keys changed.jsonl
    """
    flags.show_daily("acls-off policy no-policy block-public-access trust keys format profile config")
    flags.run_folder()
    with flags.either():
        flags.add("--acls-off", "no ACL applies", _CHANGE, dest="acls", action="store_const", const=False)
        flags.add("--acls-on", "ACLs apply again", _CHANGE, dest="acls", action="store_const", const=True)
    with flags.either():
        flags.add("--policy FILE", "the bucket policy is this one", _CHANGE)
        flags.add("--no-policy", "there is no bucket policy", _CHANGE)
    with flags.either():
        block = "all four switches are on, of the bucket or its account"
        flags.add("--block-public-access", block, _CHANGE, dest="block", action="store_const", const=True)
        unblock = "the bucket's four switches are off"
        flags.add("--no-block-public-access", unblock, _CHANGE, dest="block", action="store_const", const=False)
    flags.add("--ignore-public-acls", "BlockPublicAcls and IgnorePublicAcls are on", _CHANGE)
    flags.add("--restrict-public-policy", "BlockPublicPolicy and RestrictPublicBuckets are on", _CHANGE)
    flags.settings(section=_CHANGE, requester_pays="the requester pays")
    flags.trust(_CHANGE)
    flags.add("--keys FILE", "write each changed object to this file, as JSON Lines", RESULTS)
    flags.settings("profile", endpoint_url="URL of the bucket's S3 server", region="region of the run's bucket")
    flags.config()
    flags.form(("table", "json", "sarif"), "how the answer is printed; sarif names the lines of the policy file")


@command()
def run_what_if(frame: CommandFrame) -> int:
    """Ask the run what the change does, print the answer, and return its exit code."""
    options = frame.options
    if options.format == "sarif" and options.policy is None:
        raise UsageError(_NO_FILE)
    change = change_from(options)

    async def ask() -> WhatIf:
        stop = signals.stop_on_signals()
        with frame.reading(options.run_folder) as opened, lines_to(options.keys) as sink:
            question = WhatIfQuestion(opened, change, policy_name=options.policy, sink=sink, stopped=stop.is_set)
            return await in_thread(question.snapshot, question.answer)

    found = signals.run(ask())
    if options.format == "sarif":
        log = as_sarif(found.counts, _below_here(options.policy), statement_lines(found.change.policy or ""))
        print_text(json.dumps(log, indent=1) + "\n")
    else:
        frame.print(found.to_dict(), lambda: found.table(columns()))
    return found.exit_code


def change_from(options: argparse.Namespace) -> BucketChange:
    """Return the change that the flags name. Raises UsageError for a policy file that is none, and for a wrong entry of
    --trust.
    """
    policy = "" if options.no_policy else None
    if options.policy is not None:
        policy = read_policy(options.policy)
    entries = [entry for text in options.trust or () for entry in values.words(text, "--trust")]
    return BucketChange(
        acls=options.acls,
        policy=policy,
        block=options.block,
        switches=switches(acls=options.ignore_public_acls, policies=options.restrict_public_policy),
        requester_pays=bool(options.requester_pays),
        trusted=values.trusted(entries, "--trust"),
    )


def _below_here(path: str) -> str:
    """Return the path of a file relative to the working directory, with slashes; its name alone if it is elsewhere."""
    relative = os.path.relpath(path)
    return os.path.basename(path) if relative.startswith(os.pardir) else relative.replace(os.sep, "/")


def declare_fix_kit(flags: Flags) -> None:
    """Declare the flags of `auditor fix-kit`.

    auditor fix-kit s3://my-bucket --out kit
    auditor fix-kit s3://reports/bucket=b/run=20260101T000000Z-123456 --out kit --format json
    """
    flags.run_folder()
    flags.add("--out DIR", "write the kit to this directory: a new or an empty one", RESULTS, dest="kit", required=True)
    flags.run_store()
    flags.form()


@command()
def run_fix_kit(frame: CommandFrame) -> int:
    """Write the kit of a run, print what was written, and return the exit code."""

    async def write() -> Kit:
        stop = signals.stop_on_signals()
        with frame.reading(frame.options.run_folder) as opened:
            work = FixKit(opened, frame.options.kit, stop.is_set)
            return await in_thread(work.snapshot, work.write)

    kit = signals.run(write())
    frame.print(kit.to_dict(), lambda: table(kit, columns()))
    return kit.exit_code
