"""What a run is told: every setting by name and its default, and how its text is read; the first layer wins."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from auditor.config.values import (
    Parse,
    account,
    algorithms,
    chunk,
    concurrency,
    endpoint,
    engine,
    flag,
    hops,
    level,
    long_span,
    percent,
    rate,
    role,
    seconds,
    severity,
    size,
    span,
    streams,
    text,
    whole,
    words,
)
from auditor.errors import UsageError
from auditor.model.finding import Severity
from auditor.rules.exceptions import Acceptance
from auditor.s3.engines import DEFAULT_ENGINE

ENV_PREFIX: Final = "AUDITOR_"
NO_SETTINGS: Final = tuple(f"{ENV_PREFIX}{name}" for name in ("CONFIG", "HANDS_ON", "LOG_LEVEL", "SERVICE", "TOPIC"))
"""Variables that are read elsewhere: by the command line and the functions, or by the functions alone."""

_NOT_OURS: Final = f"{ENV_PREFIX}VERSION"
"""What a pipeline is likely to call the version that it installs."""

_ALIKE: Final = 0.8
"""Of difflib's measure, 0 to 1: AUDITOR_MAXRATE and AUDITOR_BUCKET are mistyped, AUDITOR_BIN is somebody's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """concurrency: None is auto. max_rate: calls a second, None is unlimited. fail_on: None is never. retry_seconds:
    time in which one call is tried again. chunk_mib: how much of an object is read at once. streams: None is auto.
    max_hops: workers that may leave one object unfinished. dead_letter_queue: None: the queue is asked for its own.
    accept_cost: objects whose reading is charged are hashed too. batch_over: bytes above which an object is left to S3
    Batch Operations. batch_manifest: where its manifests go; None: the run folder. Where neither is given nothing is
    left to it. batch_role: ARN of the role that its jobs run as. max_age, percent, every, grace, record: of `verify`;
    seconds, but for the percentage: what is due (both None: everything), from one run to the next, and what is in
    flight.
    """

    engine: str = DEFAULT_ENGINE
    concurrency: int | None = None
    max_rate: float | None = 2000.0
    max_calls: int | None = None
    versions: bool = False
    level: str | None = None
    only: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: Severity | None = Severity.HIGH
    out: str = "./auditor-runs"
    ledger: str | None = None
    algorithms: tuple[str, ...] = ("sha256",)
    queue: str | None = None
    dead_letter_queue: str | None = None
    hash: bool = False
    accept_cost: bool = False
    batch_over: int | None = None
    batch_manifest: str | None = None
    batch_role: str | None = None
    max_age: float | None = None
    percent: float | None = None
    every: float = 86_400.0
    grace: float = 900.0
    record: bool = False
    endpoint_url: str | None = None
    profile: str | None = None
    region: str | None = None
    expected_owner: str | None = None
    requester_pays: bool = False
    trusted: frozenset[str] = frozenset()
    keep_metadata: bool = False
    accept_undecided: tuple[Acceptance, ...] = ()
    rules: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    buckets: tuple[str, ...] = ()
    retry_attempts: int = 10
    retry_seconds: float = 60.0
    part_lines: int = 50_000
    part_seconds: float = 60.0
    chunk_mib: int = 1
    streams: int | None = None
    max_hops: int = 200


_DUE: Final = ("max_age", "percent")

PARSERS: Final[dict[str, Parse]] = {
    "engine": engine,
    "concurrency": concurrency,
    "max_rate": rate,
    "max_calls": whole,
    "versions": flag,
    "level": level,
    "only": words,
    "ignore": words,
    "fail_on": severity,
    "out": text,
    "ledger": text,
    "algorithms": algorithms,
    "queue": text,
    "dead_letter_queue": text,
    "hash": flag,
    "accept_cost": flag,
    "batch_over": size,
    "batch_manifest": text,
    "batch_role": role,
    "max_age": long_span,
    "percent": percent,
    "every": long_span,
    "grace": span,
    "record": flag,
    "endpoint_url": endpoint,
    "profile": text,
    "region": text,
    "expected_owner": account,
    "requester_pays": flag,
    "trusted": lambda value, source: frozenset(words(value, source)),
    "keep_metadata": flag,
    "buckets": words,
    "retry_attempts": whole,
    "retry_seconds": seconds,
    "part_lines": whole,
    "part_seconds": seconds,
    "chunk_mib": chunk,
    "streams": streams,
    "max_hops": hops,
}
"""Settings that a flag, a variable or a line of auditor.toml may give; the tables of auditor.toml are read apart."""


@dataclass(frozen=True, slots=True)
class Layer:
    """Raw values by setting name. source: how to name one of them to the user."""

    values: Mapping[str, Any]
    source: Callable[[str], str]


def environment_layer(environ: Mapping[str, str] = os.environ) -> Layer:
    """AUDITOR_ENGINE and so on, one for each setting of PARSERS; an empty variable is no variable.

    Raises UsageError for a variable whose name is almost that of one of ours; one that is like none is somebody else's.
    """
    names = {name: f"{ENV_PREFIX}{name.upper()}" for name in PARSERS}
    known = {*names.values(), *NO_SETTINGS, _NOT_OURS}
    for variable in sorted(environ):
        if variable.startswith(ENV_PREFIX) and variable not in known and environ[variable]:
            _check_spelling(variable, known - {_NOT_OURS})
    return Layer({name: environ[var] for name, var in names.items() if environ.get(var)}, names.__getitem__)


def _check_spelling(variable: str, known: Iterable[str]) -> None:
    names = [name.removeprefix(ENV_PREFIX) for name in known]
    if meant := difflib.get_close_matches(variable.removeprefix(ENV_PREFIX), names, 1, _ALIKE):
        raise UsageError(
            f"the variable {variable[:100]!r} is unknown: write {ENV_PREFIX}{meant[0]} if that is meant, or unset it"
        )


def _layers_for(name: str, layers: Sequence[Layer]) -> Sequence[Layer]:
    """What is due is for one layer to say: an event's share takes the place of an age that the environment names."""
    if name not in _DUE:
        return layers
    return [layer for layer in layers if any(layer.values.get(one) is not None for one in _DUE)][:1]


def resolve(layers: Sequence[Layer], tables: Mapping[str, Any] | None = None) -> Settings:
    """Settings from layers, the first that names a setting wins. tables: `rules` and `accept_undecided`, parsed.

    Raises UsageError naming the flag, variable or line.
    """
    chosen: dict[str, Any] = dict(tables or {})
    for name, parse in PARSERS.items():
        for layer in _layers_for(name, layers):
            if layer.values.get(name) is not None:
                chosen[name] = parse(layer.values[name], layer.source(name))
                break
    settings = Settings(**chosen)
    if (settings.queue or settings.hash) and not settings.ledger:
        raise UsageError("--queue and --hash need a ledger to know what is hashed: add --ledger sqlite:PATH")
    if settings.queue and settings.hash:
        raise UsageError("--queue and --hash exclude each other: hash here, or let the worker do it")
    if settings.max_age is not None and settings.percent is not None:
        raise UsageError("--max-age and --percent exclude each other: say by age or by share what is due")
    if (settings.batch_over or settings.batch_manifest) and not settings.ledger:
        raise UsageError(
            "--batch-over and --batch-manifest need a ledger to know what is hashed: add --ledger sqlite:PATH"
        )
    return settings
