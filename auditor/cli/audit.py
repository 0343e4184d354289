"""`auditor audit`."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
from contextlib import AsyncExitStack
from typing import Any, Final

from auditor.cli.context import other_endpoint, print_json, settings_of, stop_on_signals, targets_of
from auditor.errors import RunError, UsageError
from auditor.gather import Stop
from auditor.ledgers import open_ledger
from auditor.pipeline import Audit, Places, check_output
from auditor.plan import select
from auditor.progress import make_progress
from auditor.queues import open_queue
from auditor.reports import table
from auditor.reports.summary import exit_code
from auditor.rules import RULES
from auditor.settings import Settings
from auditor.stores import Store, open_store
from auditor.target import Target

_WORST_FIRST: Final = (1, 4, 3, 0)


def run(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    targets = targets_of(options, settings)
    select(RULES, settings.rules, settings.only, settings.ignore)
    if options.resume and len(targets) > 1:
        raise UsageError("--resume goes on with one run: give its one target")
    return asyncio.run(_audit_all(targets, settings, options))


async def _audit_all(targets: list[Target], settings: Settings, options: argparse.Namespace) -> int:
    stop = Stop()
    stop_on_signals(stop)
    codes = []
    async with AsyncExitStack() as stack:
        store = await asyncio.to_thread(_open_store, settings)
        stack.enter_context(store)
        check_output(store, targets)
        places = await _open_places(stack, settings, store)
        progress = make_progress()
        stack.callback(progress.close)
        for target in targets:
            if stop:
                sys.stderr.write(f"auditor: {target.uri} was not audited: {stop.reason}\n")
                codes.append(4)
                continue
            audit = Audit(target, settings, places, stop, watch=progress.update, run_id=options.resume)
            codes.append(await _audit_one(audit, target, settings, options.format))
    return next(code for code in _WORST_FIRST if code in codes)


def _open_store(settings: Settings) -> Store:
    return open_store(
        settings.out, endpoint_url=settings.endpoint_url, profile=settings.profile, region=settings.region
    )


async def _open_places(stack: AsyncExitStack, settings: Settings, store: Store) -> Places:
    ledger = queue = None
    if settings.ledger is not None:
        ledger = await stack.enter_async_context(
            open_ledger(
                settings.ledger,
                region=settings.region,
                endpoint_url=other_endpoint("dynamodb", settings),
                profile=settings.profile,
            )
        )
    if settings.queue is not None:
        queue = await stack.enter_async_context(
            open_queue(settings.queue, region=settings.region, profile=settings.profile)
        )
    return Places(store=store, ledger=ledger, queue=queue)


async def _audit_one(audit: Audit, target: Target, settings: Settings, output: str) -> int:
    """Audit and print one target. A run that fails does not keep the other targets from theirs."""
    try:
        summary = await audit.run()
    except RunError as error:
        sys.stderr.write(f"auditor: {error}\n")
        return error.exit_code
    except asyncio.CancelledError:
        sys.stderr.write(f"auditor: {target.uri}: given up; what was written is in place\n")
        return 4
    _print(summary, settings, output)
    return exit_code(summary, settings.fail_on)


def _print(summary: dict[str, Any], settings: Settings, output: str) -> None:
    if output == "json":
        print_json(summary)
    else:
        sys.stdout.write(table.render(summary, settings.fail_on))
        sys.stdout.flush()
    if (resume := summary["resume"]) is not None:
        target = summary["target"]
        uri = shlex.quote(f"s3://{target['bucket']}/{target['prefix']}")
        sys.stderr.write(
            f"auditor: not complete: {resume['reason']}; go on with: auditor audit {uri} --resume {resume['run']}"
            " and the same flags\n"
        )
