"""Read JSON strictly, and turn Structs, and facts with the reasons for missing ones, into JSON values and back."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache, partial
from threading import Lock
from types import NoneType, UnionType
from typing import Annotated, Any, Final, NoReturn, TypeVar, Union, get_args, get_origin
from urllib.parse import unquote_plus

import msgspec
from msgspec import NODEFAULT, UNSET, Meta, Struct, StructMeta
from msgspec.structs import fields

from auditor.model.dates import iso_date, seconds_in_utc
from auditor.model.object import Skipped, Unread, Whole

T = TypeVar("T")
Reader = Callable[[Any], T]
"""A function that checks and converts a JSON value. It raises JsonError for a wrong one."""

MOST_MEMORY: Final = 128 * 1024 * 1024
"""Limit in bytes of memory_of() a text. The seal of a run of half a billion objects takes about so much."""
_SMALL: Final = 1024 * 1024
"""Number of bytes or characters up to which any text is parsed."""
LONGEST: Final = 1024
"""Largest number of bytes of a text: S3's limit for object keys. The other texts in messages are shorter."""

FORMAT: Final = 1
"""The format of each JSON file that an audit writes, its member `format`."""
_LARGEST: Final = 2**63
"""No number of a run, a size or a count, is larger."""
_DIGITS: Final = 20
"""Number of characters of the longest whole number that is read."""


class JsonError(ValueError):
    """A text is not JSON, or a value in it is wrong. The message names the value's path, never the value."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(f"{path or 'it'} {problem}")
        self.problem = problem
        self.path = path

    def below(self, member: str) -> JsonError:
        """Return this error with `member.` put before its path, so that the path begins at the outer object."""
        return JsonError(self.problem, f"{member}.{self.path}".rstrip(".").replace(".[", "["))


class OldFormatError(JsonError):
    """A JSON file has no member `format`: a development version wrote it."""

    def __init__(self) -> None:
        super().__init__("was written by a development version: audit again")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _whole(text: str) -> int:
    if len(text) > _DIGITS or abs(number := int(text)) > _LARGEST:
        raise JsonError("has a number that is too large")
    return number


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise JsonError("names a field twice")
    return members


def memory_of(data: bytes) -> int:
    """Return the bytes of memory that a JSON text takes at most while it is parsed: its text, once more as strings, and
    its values. No value is made for that.
    """
    width = 4 if _FOUR_BYTES.search(data) else 1 if data.isascii() else 2
    return len(data) * (1 + 2 * width) + 200 * (data.count(b"{") + data.count(b"[")) + 60 * data.count(b",")


_FOUR_BYTES: Final = re.compile(rb"[\xf0-\xff]|\\u[dD]")
_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant)
_UNIQUE: Final = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_refuse_duplicates)
_OURS: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_whole)


def parse_object(text: str | bytes, name: str = "it", *, unique: bool = False) -> dict[str, Any]:
    """Parse a text or UTF-8 bytes as one JSON object. Raises JsonError, whose message calls the text `name`. unique:
    True to refuse an object that has two members of one name, because programs differ in which one they take.
    """
    return _parsed(text, name, _UNIQUE if unique else _DECODER)


def _parsed(text: str | bytes, name: str, decoder: json.JSONDecoder) -> dict[str, Any]:
    if len(text) > _SMALL and memory_of(text if isinstance(text, bytes) else text.encode()) > MOST_MEMORY:
        raise JsonError("is too large", name)
    try:
        return as_object(decoder.decode(text if isinstance(text, str) else text.decode("utf-8-sig")))
    except JsonError as error:
        raise JsonError(error.problem, name) from None
    except (ValueError, RecursionError) as error:  # no JSON, no UTF-8, too many digits, nested too deep
        raise JsonError("is not JSON", name) from error


def encode_line(value: object) -> bytes:
    """Return a value of Structs, dicts and lists as a line of JSON: UTF-8 with a newline. A lone surrogate, which UTF-8
    cannot hold, becomes a question mark.
    """
    try:
        return _ENCODER.encode(value) + b"\n"
    except UnicodeEncodeError:
        return json.dumps(plain(value), ensure_ascii=False, separators=(",", ":")).encode(errors="replace") + b"\n"


_ENCODER: Final = msgspec.json.Encoder()


def decode(kind: type[T], data: bytes) -> T:
    """Read JSON in UTF-8 as a value of the type `kind`, mostly a Struct, whose members msgspec checks. Ignores members
    that the Struct does not declare. Raises JsonError.
    """
    if len(data) > _SMALL and memory_of(data) > MOST_MEMORY:
        raise JsonError("is too large")
    try:
        if not data.isascii():
            data.decode()  # a decoder passes over members that it does not know, whatever their bytes are
        found: T = _decoder(kind).decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _json_error(error) from error
    return found


_ONE_AT_A_TIME: Final = Lock()
"""msgspec prepares a Struct when a decoder of it is first made, and marks it as prepared before it is. A thread that
uses the Struct meanwhile ends the process.
"""


def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """Return the decoder of a type, whose Structs are then prepared."""
    with _ONE_AT_A_TIME:
        return _made(kind)


@cache
def _made(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


_MISFITS: Final[dict[str, str]] = {}
"""By a pattern, as repr() writes it: the problem of a text that does not match."""


def matching(pattern: str, problem: str) -> Meta:
    """Return the limit of a text that has to match all of this pattern. problem: of a text that does not."""
    whole = f"^{pattern}{END}"
    _MISFITS[repr(whole)] = problem
    return Meta(pattern=whole)


END: Final = r"$(?!\n)"
"""The end of a text in a pattern: Python takes `$` also before a newline at the end."""
PlainText = Annotated[
    str, Meta(min_length=1, max_length=LONGEST), matching("[ -~]*", "has characters that are not printable ASCII")
]
"""Printable ASCII, for a header or a log."""

_EXPECTED: Final = {
    "str": "is not text",
    "int": "is not a whole number",
    "float": "is not a number",
    "bool": "is not true or false",
    "object": "is not a JSON object",
    "array": "is not a list",
}
_PROBLEMS: Final = (
    (re.compile(r"Expected `(\w+)(?: \||`, got)"), None),
    (re.compile(r".* out of range"), "is too large"),
    (re.compile(r"Expected `int` [<>]"), "is negative or too large"),
    (re.compile(r"Expected `str` of length >="), "is not a string with text"),
    (re.compile(r"Expected `str` of length <="), "is too long"),
    (re.compile(r"Invalid enum value"), "is not a known word"),
    (re.compile(r"Object contains unknown field"), "has other members"),
)
_PATTERN: Final = re.compile(r"Expected `str` matching regex (.+)", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `([^`]*)`")


def _json_error(error: Exception) -> JsonError:
    """Return the error for a text that msgspec refuses. The message names the path of a value, and never the value,
    which msgspec's own message may quote.
    """
    if not isinstance(error, msgspec.ValidationError):
        return JsonError("is not JSON")
    told, _, place = str(error).partition(" - at `")
    path = place.removesuffix("`").removeprefix("$").removeprefix(".").replace("[...]", ".*")
    if missing := _MISSING.match(told):
        return JsonError("is missing", f"{path}.{missing[1]}".removeprefix("."))
    if misfit := _PATTERN.match(told):
        return JsonError(_MISFITS.get(misfit[1], "has another form"), path)
    for pattern, problem in _PROBLEMS:
        if found := pattern.match(told):
            return JsonError(problem or _EXPECTED.get(found[1], "has another type"), path)
    return JsonError("has another type", path)


def as_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise JsonError("is not a JSON object")
    return value


def text(value: Any) -> str:
    """Return the value if it is a string of 1 to 1,024 bytes in UTF-8. Raises JsonError for any other value."""
    if not isinstance(value, str) or not value:
        raise JsonError("is not a string with text")
    try:
        length = len(value.encode())
    except UnicodeEncodeError as error:
        raise JsonError("is not valid unicode") from error
    if length > LONGEST:
        raise JsonError(f"has {length} bytes, more than {LONGEST}")
    return value


def form_text(value: Any) -> str:
    """Decode a URL-encoded object key, as in S3's events, where "+" stands for a space. Raises JsonError."""
    if not isinstance(value, str):
        raise JsonError("is not a string with text")
    try:
        return text(unquote_plus(value, errors="strict"))
    except UnicodeDecodeError as error:
        raise JsonError("is not valid unicode") from error


def text_or_none(value: Any) -> str | None:
    """Return the value if it is printable ASCII text; None for null and for an empty text. Raises JsonError."""
    return None if value in (None, "") else typed(PlainText, value)


def etag_text(value: Any) -> str:
    """Return an ETag without its quotes. Raises JsonError for an empty ETag, which would differ from every object's."""
    etag = typed(PlainText, value).strip('"')
    if not etag:
        raise JsonError("is not a string with text")
    return etag


def time_text(value: Any) -> str:
    """Convert an ISO 8601 time to UTC, without fractions of a second. Raises JsonError."""
    written = typed(PlainText, value)
    try:
        return seconds_in_utc(iso_date(written))
    except ValueError as error:
        raise JsonError("is not a time") from error


Size = Annotated[int, Meta(ge=0, le=2**53)]
"""A size or a count that every parser reads exactly: some round above 2**53."""


def member(value: Any, path: str, read: Reader[T], default: Any = NODEFAULT) -> T:
    """Read the member of a JSON object at a path such as `s3.object.key`. read: checks and converts the member's value.
    default: the result if the member is missing; without a default, `read` gets None for a missing member.
    """
    name, _, rest = path.partition(".")
    holder = as_object(value)
    if rest:
        return _at(name, lambda found: member(found, rest, read, default), holder.get(name))
    return default if name not in holder and default is not NODEFAULT else _at(name, read, holder.get(name))


def members(value: Any, fields: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
    """Read several members of a JSON object, and return them as a dict. fields: for each name in the dict, the
    arguments (path, read, default) of member().
    """
    return {name: member(value, *arguments) for name, arguments in fields.items()}


def items(value: Any, read: Reader[T]) -> tuple[T, ...]:
    """Read a JSON list, each entry with `read`. Raises JsonError if the value is not a list."""
    if not isinstance(value, list):
        raise JsonError("is not a list")
    return tuple(_at(f"[{index}]", read, item) for index, item in enumerate(value))


def _at(place: str, read: Reader[T], value: Any) -> T:
    try:
        return read(value)
    except JsonError as error:
        raise error.below(place) from None


def plain(value: Any) -> Any:
    """Turn a value into dicts, lists, strings, numbers, booleans and None. A Struct becomes a dict of its members."""
    if isinstance(value, Struct):
        pairs = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
        members = ((written, getattr(value, name)) for written, name in pairs)
        return {written: plain(item) for written, item in members if item is not UNSET}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def typed(kind: type[T], value: object) -> T:
    """Make a value of the type `kind`, mostly a Struct, from a JSON value: the reverse of plain(). Ignores members that
    the Struct does not declare. Raises JsonError for a wrong value, and for a missing member without a default.
    """
    try:
        return converted(kind, value)
    except UnicodeEncodeError as error:
        raise JsonError("has text that is not valid Unicode") from error
    except (msgspec.ValidationError, RecursionError) as error:
        raise _json_error(error) from error


def converted(kind: type[T], value: object) -> T:
    """Make a value of the type `kind` as msgspec.convert() does, which no thread may call for a Struct before a decoder
    of the Struct is made. Raises msgspec's own errors.
    """
    _decoder(kind)
    return msgspec.convert(value, kind, dec_hook=_counter)


def _counter(kind: Any, value: Any) -> Counter[str]:
    """Make a Counter, the only type of our Structs that msgspec does not know."""
    return Counter(typed(dict[str, Whole], value))


def document(value: Any) -> dict[str, Any]:
    """Return a Struct, or the other members of a JSON file, as the JSON value of a file with its format."""
    return {"format": FORMAT, **plain(value)}


def without_format(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a JSON file besides its format. Raises OldFormatError for a file without a format, and
    JsonError for another one.
    """
    members = dict(value)
    if "format" not in members:
        raise OldFormatError
    if (found := members.pop("format")) != FORMAT or type(found) is not int:
        raise JsonError(f"is not {FORMAT}, the only format known", "format")
    return members


def parse_document(data: bytes) -> dict[str, Any]:
    """Parse the bytes of a JSON file, and return what without_format() returns. Raises JsonError."""
    return without_format(_parsed(data, "it", _OURS))


def member_names(kind: Any) -> set[str]:
    """Return the names that the fields of the Struct `kind` have in JSON."""
    return set(kind.__struct_encode_fields__)


def fact_to_json(value: Any) -> Any:
    """Return a fact, or a Struct of facts, as a JSON value. A fact that is missing becomes {"unread": error} or
    {"skipped": reason}. A mapping becomes a list of pairs, so that no name in it can look like a missing fact.
    """
    if isinstance(value, Unread):
        return {"unread": {"action": value.action, "code": value.code}}
    if isinstance(value, Skipped):
        return {"skipped": value.reason}
    if isinstance(value, Struct):
        return {name: fact_to_json(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return [[key, fact_to_json(item)] for key, item in value.items()]
    if isinstance(value, tuple):
        return [fact_to_json(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def fact_from_json(kind: type[T], value: Any) -> T:
    """Read a Struct of facts that fact_to_json() wrote. A `Mapping[str, Any]` is read as it is. Raises JsonError for a
    wrong value, and for other members than those of the Struct.
    """
    found: T = _fact(kind, value)
    return found


def _fact(kind: Any, value: Any) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _one_of(arguments, value)
    if origin is tuple:
        return items(value, partial(_fact, arguments[0]))
    if origin is Mapping and arguments[1] is not Any:
        return {name: _fact(arguments[1], item) for name, item in typed(tuple[tuple[str, Any], ...], value)}
    if not isinstance(kind, StructMeta):
        return typed(kind, value)
    types = _types(kind)
    if as_object(value).keys() != types.keys():
        raise JsonError("has other members")
    return kind(**{name: member(value, name, partial(_fact, one)) for name, one in types.items()})


def _one_of(kinds: tuple[Any, ...], value: Any) -> Any:
    names = set(value) if isinstance(value, dict) else set()
    if Unread in kinds and names == {"unread"}:
        return member(value, "unread", partial(typed, Unread))
    if Skipped in kinds and names == {"skipped"}:
        return Skipped(member(value, "skipped", partial(typed, str)))
    if value is None and NoneType in kinds:
        return None
    kind = next((one for one in kinds if one not in (Unread, Skipped, NoneType)), None)
    if kind is None:
        raise JsonError("is not a reason why the fact is missing")
    return _fact(kind, value)


@cache
def _types(kind: Any) -> dict[str, Any]:
    return {one.name: one.type for one in fields(kind)}
