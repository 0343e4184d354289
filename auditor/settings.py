"""What a run is told: every setting by name, its default, and how its text is read; the first layer to name it wins."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from auditor.aws import check_endpoint
from auditor.engines import DEFAULT_ENGINE, ENGINES
from auditor.errors import UsageError
from auditor.hashing import ALGORITHMS
from auditor.messages import MAX_HOPS
from auditor.models import Severity
from auditor.spans import long_span, percent, span

ENV_PREFIX: Final = "AUDITOR_"
MAX_CHUNK_MIB: Final = 1024
MAX_STREAMS: Final = 64
_NEVER: Final = "never"
_UNITS: Final = ("KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB")
_UNIT_BYTES: Final[dict[str, int]] = {
    "": 1,
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgt", 1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)},
}

LEVELS: Final = ("exposure", "metadata", "fixity")
"""How much an audit may look at: `exposure` sends no HEAD; the others ask whatever the rules need."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A hole that the owner accepts: it stays counted and does not raise exit code 4.

    prefix: objects whose key begins so. rule: a rule left undecided for the whole run. action, code: only holes of
    this kind. None matches anything. reason: why it is accepted; it is required.
    """

    reason: str
    prefix: str | None = None
    rule: str | None = None
    action: str | None = None
    code: str | None = None


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


Parse = Callable[[Any, str], Any]
"""Reads a raw value (text of a flag or variable, or a TOML or JSON value); raises UsageError naming its source."""


def _fail(source: str, value: Any, wanted: str) -> UsageError:
    return UsageError(f"{source} is {str(value)[:100]!r}: give {wanted}")


def text(value: Any, source: str) -> str:
    if not isinstance(value, str) or not value:
        raise _fail(source, value, "a text that is not empty")
    return value


def flag(value: Any, source: str) -> bool:
    if isinstance(value, bool):
        return value
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if not isinstance(value, str) or value.lower() not in words:
        raise _fail(source, value, "true or false")
    return words[value.lower()]


def words(value: Any, source: str) -> tuple[str, ...]:
    """A list, or one text with commas."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) for part in parts):
        raise _fail(source, value, "names with commas between them, or a list of texts")
    return tuple(part.strip() for part in parts if part.strip())


def _number(value: Any, source: str, kind: type, minimum: float, wanted: str) -> Any:
    if isinstance(value, bool) or (kind is int and isinstance(value, float)):
        raise _fail(source, value, wanted)
    try:
        number = kind(value)
    except (TypeError, ValueError, OverflowError):
        raise _fail(source, value, wanted) from None
    if not minimum <= number < float("inf"):
        raise _fail(source, value, wanted)
    return number


def whole(value: Any, source: str) -> int:
    return int(_number(value, source, int, 1, "a whole number of at least 1"))


def chunk(value: Any, source: str) -> int:
    wanted = f"a whole number of MiB from 1 to {MAX_CHUNK_MIB}"
    number = int(_number(value, source, int, 1, wanted))
    if number > MAX_CHUNK_MIB:
        raise _fail(source, value, wanted)
    return number


def hops(value: Any, source: str) -> int:
    wanted = f"a whole number from 1 to {MAX_HOPS - 1}"
    number = int(_number(value, source, int, 1, wanted))
    if number >= MAX_HOPS:
        raise _fail(source, value, wanted)
    return number


def seconds(value: Any, source: str) -> float:
    return float(_number(value, source, float, 0.001, "a number of seconds above 0"))


def concurrency(value: Any, source: str) -> int | None:
    wanted = "a whole number from 1 to 1000, or auto"
    if value == "auto":
        return None
    number = int(_number(value, source, int, 1, wanted))
    if number > 1000:
        raise _fail(source, value, wanted)
    return number


def streams(value: Any, source: str) -> int | None:
    wanted = f"a whole number from 1 to {MAX_STREAMS}, or auto"
    if value == "auto":
        return None
    number = int(_number(value, source, int, 1, wanted))
    if number > MAX_STREAMS:
        raise _fail(source, value, wanted)
    return number


def rate(value: Any, source: str) -> float | None:
    if value == "unlimited":
        return None
    return float(_number(value, source, float, 0.001, "calls a second as a number above 0, or unlimited"))


def severity(value: Any, source: str) -> Severity | None:
    if value == _NEVER:
        return None
    if value not in list(Severity):
        raise _fail(source, value, f"{', '.join(Severity)} or {_NEVER}")
    return Severity(value)


def engine(value: Any, source: str) -> str:
    if not isinstance(value, str) or value not in ENGINES:
        raise UsageError(f"{source} is {str(value)[:100]!r}, which is no engine: use {' or '.join(ENGINES)}")
    return value


def level(value: Any, source: str) -> str:
    if not isinstance(value, str) or value not in LEVELS:
        raise _fail(source, value, " or ".join(LEVELS))
    return value


def algorithms(value: Any, source: str) -> tuple[str, ...]:
    names = words(value, source)
    if not names or any(name not in ALGORITHMS for name in names):
        raise _fail(source, value, f"one or more of {', '.join(ALGORITHMS)}")
    return tuple(dict.fromkeys(names))


def endpoint(value: Any, source: str) -> str:
    check_endpoint(text(value, source), source)
    return str(value)


def account(value: Any, source: str) -> str:
    if not re.fullmatch(r"[0-9]{12}", text(value, source)):
        raise _fail(source, value, "an account's 12 digits")
    return str(value)


def size(value: Any, source: str) -> int:
    """Bytes: a whole number, or one with a unit."""
    wanted = f"a size of at least 1 byte, as 500GB or 1TiB ({', '.join(_UNITS)})"
    match = re.fullmatch(r"([0-9]{1,18})(?:\.([0-9]{1,6}))? ?([A-Za-z]*)", str(value))
    if isinstance(value, bool | float) or match is None or match[3].lower() not in _UNIT_BYTES:
        raise _fail(source, value, wanted)
    fraction = match[2] or ""
    number: int = int(match[1] + fraction) * _UNIT_BYTES[match[3].lower()] // 10 ** len(fraction)
    if number < 1:
        raise _fail(source, value, wanted)
    return number


def role(value: Any, source: str) -> str:
    if not re.fullmatch(r"arn:[a-z-]+:iam::[0-9]{12}:role/[\w+=,.@/-]{1,512}", text(value, source), re.ASCII):
        raise _fail(source, value, "the ARN of an IAM role")
    return str(value)


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
    """AUDITOR_ENGINE and so on, one for each setting of PARSERS; an empty variable is no variable."""
    names = {name: f"{ENV_PREFIX}{name.upper()}" for name in PARSERS}
    return Layer({name: environ[var] for name, var in names.items() if environ.get(var)}, names.__getitem__)


def resolve(layers: Sequence[Layer], tables: Mapping[str, Any] | None = None) -> Settings:
    """Settings from layers, the first that names a setting wins. tables: `rules` and `accept_undecided`, parsed.

    Raises UsageError naming the flag, variable or line.
    """
    chosen: dict[str, Any] = dict(tables or {})
    for name, parse in PARSERS.items():
        for layer in layers:
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
