"""Read the value of one setting from text, TOML or JSON. An error names `source`: the flag, the variable or the key."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from auditor.aws.plain import check_endpoint
from auditor.errors import UsageError
from auditor.model.bucket import Semantics
from auditor.model.digest import ALGORITHMS, FINDINGS, VerifyOutcome
from auditor.model.finding import FailOn, Severity
from auditor.model.reuse import NAMES, ReusePolicy
from auditor.model.trusted_entry import check_entry
from auditor.s3.engines import ENGINES, is_installed

N = TypeVar("N", bound=float)
MAX_CONCURRENCY: Final = 1000
MAX_STREAMS: Final = 8
MAX_RATE: Final = 1_000_000
_NEVER: Final = "never"
_UNITS: Final = ("KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB")

_UNIT_BYTES: Final[dict[str, int]] = {
    "": 1,
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgt", 1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)},
}

LEVELS: Final = ("exposure", "metadata", "fixity")
"""The values of the setting `level`, which limits the calls of an audit. `exposure` sends no HEAD; the other levels
send all calls that the rules need."""

LIVE: Final = "live"
MIXED: Final = "mixed"

Parse = Callable[[Any, str], Any]
"""A function that reads a raw value: the text of a flag or variable, or a TOML or JSON value. Its second argument names
the source of the value. It raises UsageError, which names the source.
"""


def _fail(source: str, value: Any, wanted: str) -> UsageError:
    return UsageError(f"{source} is {str(value)[:100]!r}: give {wanted}")


def text(value: Any, source: str) -> str:
    if not isinstance(value, str) or not value:
        raise _fail(source, value, "a text that is not empty")
    return value


def _matching(pattern: str, wanted: str) -> Callable[[Any, str], str]:
    """Return a reader of texts that match the whole pattern."""

    def read(value: Any, source: str) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value, re.ASCII):
            raise _fail(source, value, wanted)
        return value

    return read


def flag(value: Any, source: str) -> bool:
    if isinstance(value, bool):
        return value
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if not isinstance(value, str) or value.lower() not in words:
        raise _fail(source, value, "true or false")
    return words[value.lower()]


def words(value: Any, source: str) -> tuple[str, ...]:
    """Read names from a list, or from one text that separates them by commas. Raises UsageError, naming `source`."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) for part in parts):
        raise _fail(source, value, "names separated by commas, or a list of strings")
    return tuple(part.strip() for part in parts if part.strip())


def trusted(value: Any, source: str) -> frozenset[str]:
    """Read the entries of the setting `trusted`. Raises UsageError, naming `source`, for an entry of no known form."""
    entries = words(value, source)
    for entry in entries:
        try:
            check_entry(entry)
        except ValueError as error:
            raise UsageError(f"{source} has {entry[:100]!r}: {error}") from None
    return frozenset(entries)


def _number(kind: type[N], minimum: float, wanted: str, most: float = 1e308) -> Callable[[Any, str], N]:
    """Return a reader of numbers from `minimum` to `most`; by default any but infinity."""

    def read(value: Any, source: str) -> N:
        if isinstance(value, bool) or (kind is int and isinstance(value, float)):
            raise _fail(source, value, wanted)
        try:
            number = kind(value)
        except (TypeError, ValueError, OverflowError):
            raise _fail(source, value, wanted) from None
        if not minimum <= number <= most:
            raise _fail(source, value, wanted)
        return number

    return read


def _or_none(word: str, read: Callable[[Any, str], N]) -> Callable[[Any, str], N | None]:
    """Return a reader that gives None for a word, and reads any other value by `read`."""
    return lambda value, source: None if value == word else read(value, source)


whole = _number(int, 1, "a whole number of at least 1")
seconds = _number(float, 0.001, "a number of seconds above 0")
concurrency = _or_none("auto", _number(int, 1, f"a whole number from 1 to {MAX_CONCURRENCY}, or auto", MAX_CONCURRENCY))
streams = _or_none("auto", _number(int, 1, f"a whole number from 1 to {MAX_STREAMS}, or auto", MAX_STREAMS))
rate = _or_none(
    "unlimited",
    _number(float, 0.001, f"calls a second as a number above 0, at most {MAX_RATE:,}, or unlimited", MAX_RATE),
)
dollars = _number(float, 0.000001, "dollars as a number of 0.000001 or more")


def fail_on(value: Any, source: str) -> Severity | FailOn | None:
    """Read "never", a severity, or a severity after "new:". Raises UsageError, naming `source`."""
    if value == _NEVER:
        return None
    name = value.removeprefix("new:") if isinstance(value, str) else value
    if name not in list(Severity):
        raise _fail(
            source, value, f"{', '.join(Severity)} or {_NEVER}, or new:{Severity.HIGH} and so on for new findings"
        )
    return Severity(name) if name == value else FailOn(Severity(name), new=True)


def outcomes(value: Any, source: str) -> tuple[VerifyOutcome, ...]:
    """Read names of verification outcomes; "never" gives an empty tuple. Raises UsageError, naming `source`."""
    found = words(value, source)
    if not found or not {*FINDINGS, _NEVER}.issuperset(found):
        raise _fail(source, value, f"some of {', '.join(FINDINGS)}, or {_NEVER}")
    return tuple(VerifyOutcome(name) for name in dict.fromkeys(found) if name != _NEVER)


def engine(value: Any, source: str) -> str:
    if not isinstance(value, str) or value not in ENGINES:
        raise UsageError(f"{source} is {str(value)[:100]!r}, which is not an engine: use {' or '.join(ENGINES)}")
    if not is_installed(value):
        raise UsageError(
            f"{source} is {value}, whose package is not installed: from the project's folder, pip install '.[{value}]';"
            " in a deployment --param engines=all"
        )
    return value


level = _matching("|".join(LEVELS), " or ".join(LEVELS))
source = _matching(f"{LIVE}|{MIXED}", f"{LIVE} or {MIXED}")


def semantics(value: Any, source: str) -> Semantics | None:
    """Read the kind of server whose rules of access to follow; "auto" gives None. Raises UsageError, naming
    `source`.
    """
    if value not in ("auto", *Semantics):
        raise _fail(source, value, f"{', '.join(Semantics)} or auto")
    return None if value == "auto" else Semantics(value)


def algorithms(value: Any, source: str) -> tuple[str, ...]:
    names = words(value, source)
    if not names or any(name not in ALGORITHMS for name in names):
        raise _fail(source, value, f"one or more of {', '.join(ALGORITHMS)}")
    return tuple(dict.fromkeys(names))


def endpoint(value: Any, source: str) -> str:
    check_endpoint(text(value, source), source)
    return str(value)


account = _matching("[0-9]{12}", "an account's 12 digits")


def size(value: Any, source: str) -> int:
    """Read a size such as 500GB, 1.5TiB or 1000 (bytes) as a number of bytes. Raises UsageError, naming `source`."""
    wanted = f"a size of at least 1 byte, such as 500GB or 1TiB ({', '.join(_UNITS)})"
    match = re.fullmatch(r"([0-9]{1,18})(?:\.([0-9]{1,6}))? ?([A-Za-z]*)", str(value))
    if isinstance(value, bool | float) or match is None or match[3].lower() not in _UNIT_BYTES:
        raise _fail(source, value, wanted)
    fraction = match[2] or ""
    number: int = int(match[1] + fraction) * _UNIT_BYTES[match[3].lower()] // 10 ** len(fraction)
    if number < 1:
        raise _fail(source, value, wanted)
    return number


topic = _matching(
    "arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}", "the ARN of an SNS topic that is not FIFO"
)
event_bus = _matching(
    "(arn:[a-z-]+:events:[a-z0-9-]+:[0-9]{12}:event-bus/)?[A-Za-z0-9._/-]{1,256}", "the name or the ARN of an event bus"
)
role = _matching(r"arn:[a-z-]+:iam::[0-9]{12}:role/[\w+=,.@/-]{1,512}", "the ARN of an IAM role")

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SPAN: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhdw])")
_SHARE: Final = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,9})?)%?")


def span(value: Any, source: str) -> float:
    """Read a duration such as 90d (days) or 15m (minutes), as seconds. Raises UsageError, naming `source`."""
    found = _SPAN.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise _fail(source, value, "a time like 90d, 36h, 15m or 30s")
    return float(found[1]) * _SECONDS[found[2]]


def long_span(value: Any, source: str) -> float:
    """Read a duration of a minute or more, such as 90d or 15m, as seconds. Raises UsageError, naming `source`."""
    if (seconds := span(value, source)) < 60:
        raise _fail(source, value, "a minute or more, like 90d or 12h")
    return seconds


def keep(value: Any, source: str) -> ReusePolicy:
    """Read the largest ages of kept facts: text such as "acl=1d,head=7d", or a table {"acl": "1d"}. Raises UsageError,
    naming `source`.
    """
    if isinstance(value, Mapping):
        pairs = [(str(name), given) for name, given in value.items()]
    else:
        parts = value.split(",") if isinstance(value, str) else ()
        pairs = [(name.strip(), given.strip()) for name, _, given in (part.partition("=") for part in parts)]
    names = [name for name, _ in pairs]
    if not pairs or not set(names) <= set(NAMES) or len(set(names)) < len(names):
        raise _fail(source, value, f"ages like acl=3d,head=8d, of {', '.join(NAMES)}, each once")
    return ReusePolicy({name: long_span(given, f"{source}: {name}") for name, given in pairs})


def percent(value: Any, source: str) -> float:
    """Read a percentage above 0 and up to 100, with or without "%". Raises UsageError, naming `source`."""
    found = None if isinstance(value, bool) else _SHARE.fullmatch(str(value))
    if found is None or not 0 < float(found[1]) <= 100:
        raise _fail(source, value, "a percentage above 0 and up to 100")
    return float(found[1])
