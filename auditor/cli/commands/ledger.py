"""The command `auditor ledger`: show the ledger's record of one key, or check or repair a whole ledger."""

from __future__ import annotations

import argparse

from auditor.cli import signals
from auditor.cli.ledger_check import CHECK, REPAIR
from auditor.cli.options import settings_of
from auditor.cli.output import first_word, print_result
from auditor.config.resources import check_ledger, ledger_of
from auditor.config.settings import Settings
from auditor.errors import RunError, UsageError
from auditor.ledger.base import Event, KeyRecord
from auditor.model.target import Target, parse_target
from auditor.reports import key_history as evidence
from auditor.text import visible


def run(options: argparse.Namespace) -> int:
    if options.repair is not None:
        return REPAIR.run(options, options.repair)
    if options.check is not None:
        return CHECK.run(options, options.check)
    settings = settings_of(options, "ledger")
    if options.target is None:
        raise UsageError("no key is named: write s3://BUCKET/KEY, or --check or --repair for the whole ledger")
    target = parse_target(options.target)
    if not target.prefix:
        raise UsageError(f"{target.uri} names no key: write s3://BUCKET/KEY, the whole key")
    check_ledger(settings)
    first_word(f"asking the ledger {visible(settings.ledger or '')}")
    subject, history = signals.run(_ask(settings, target))
    if subject is None and not history:
        raise RunError(f"the ledger knows nothing of {visible(target.uri)}: give the whole key, to the letter")
    document = evidence.as_json(target.bucket, target.prefix, subject, history)
    print_result(options.format, document, lambda: evidence.as_table(target.uri, subject, history))
    return 0


async def _ask(settings: Settings, target: Target) -> tuple[KeyRecord | None, list[Event]]:
    async with ledger_of(settings) as ledger:
        return await ledger.subject(target.bucket, target.prefix), await ledger.history(target.bucket, target.prefix)
