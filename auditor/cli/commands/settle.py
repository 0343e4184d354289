"""The commands `auditor digests retire` and `acknowledge`: record a person's decision on keys in the ledger."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from msgspec.structs import asdict

from auditor.aio import loop as loops
from auditor.cli.options import settings_of
from auditor.cli.output import first_word, print_result
from auditor.config.resources import check_ledger, ledger_of
from auditor.config.settings import Settings
from auditor.errors import RunError, UsageError
from auditor.ledger.base import Event, KeyHistory
from auditor.ledger.history import LONGEST
from auditor.model.dates import now_in_utc
from auditor.model.target import Target, parse_target
from auditor.text import visible
from auditor.verify.history import acknowledgements

Told = list[tuple[Target, list[Event]]]
"""For each key, the events that were written into the ledger's history. The key is a Target whose prefix is the whole
key."""


def run(options: argparse.Namespace) -> int:
    settings = settings_of(options, "ledger")
    targets = list(dict.fromkeys(map(parse_target, options.targets)))
    for target in targets:
        if not target.prefix:
            raise UsageError(f"{target.uri} names no key: write s3://BUCKET/KEY, the whole key")
    word = {"by": _text(options.by, "--by"), "reason": _text(options.reason, "--reason")}
    check_ledger(settings)
    first_word(f"asking the ledger {visible(settings.ledger or '')}")
    _print(loops.run(_tell(settings, targets, options.action, options.version, word)), options.format)
    return 0


def _text(text: str, flag: str) -> str:
    if not text.strip() or len(text) > LONGEST:
        raise UsageError(f"{flag} takes 1 to {LONGEST:,} characters that the history keeps: say it in these")
    return text.strip()


async def _tell(
    settings: Settings, targets: Sequence[Target], action: str, version: str | None, word: dict[str, str]
) -> Told:
    """Write a person's decision on each key into the ledger's history, and return the written events. All events are
    made before the first is written: if one key is wrong, nothing is written.

    targets: the keys, each as the prefix of a Target. action: the decision, "retire" or "acknowledge". version: ID of
    the version that the decision is on; None: all versions. word: who decided ("by") and why ("reason").
    """
    events_of = _retired if action == "retire" else _acknowledged
    async with ledger_of(settings) as ledger:
        told = [(target, await events_of(ledger, target, version, word)) for target in targets]
        for target, events in told:
            await ledger.note(target.bucket, events)
    return told


async def _retired(ledger: KeyHistory, target: Target, version: str | None, word: dict[str, str]) -> list[Event]:
    record = await ledger.subject(target.bucket, target.prefix)
    if record is None:
        raise RunError(f"the ledger knows nothing of {visible(target.uri)}: give the whole key, to the letter")
    if version is not None and version not in [one.version_id for one in record.versions]:
        known = ", ".join(visible(one.version_id) for one in record.versions[-5:]) or "none"
        raise RunError(
            f"the ledger has no version {visible(version)[:100]} of {visible(target.uri)}: its versions are {known}"
        )
    return [Event(key=target.prefix, at=now_in_utc(), what="retired", version_id=version, detail=word)]


async def _acknowledged(ledger: KeyHistory, target: Target, version: str | None, word: dict[str, str]) -> list[Event]:
    history = await ledger.history(target.bucket, target.prefix)
    events = acknowledgements(history, now_in_utc(), word["by"], word["reason"])
    chosen = [event for event in events if version in (None, event.version_id)]
    if not chosen:
        raise RunError(
            f"the history of {visible(target.uri)} ends with no finding: acknowledge what `auditor verify` found last"
        )
    return chosen


def _print(told: Told, output: str) -> None:
    each = [{"bucket": target.bucket, **asdict(event)} for target, events in told for event in events]
    print_result(output, {"events": each}, lambda: "".join(_lines(told)))


def _lines(told: Told) -> Iterator[str]:
    for target, events in told:
        for event in events:
            version = "" if event.version_id is None else f", version {visible(event.version_id)}"
            finding = f" {event.detail['finding']}" if "finding" in event.detail else ""
            yield f"{event.what}{finding}: {visible(target.uri)}{version}\n"
