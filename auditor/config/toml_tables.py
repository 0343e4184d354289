"""Read a TOML file, and turn its tables into Structs. Each mistake is one sentence that names the file, the table, the
key and the fix.

The type of a field says which values its key may have, and model/toml_forms.py what to write in place of others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, NamedTuple, TypeVar, Union, get_args, get_origin

from msgspec import StructMeta, ValidationError, to_builtins
from msgspec.structs import fields

from auditor.errors import ConfigError
from auditor.model.json_codec import converted
from auditor.text import likeliest

T = TypeVar("T")

_KINDS: Final = {
    str: ("a text that is not empty", '".."'),
    bool: ("true or false", "true"),
    int: ("a whole number", "1"),
    tuple: ("a list", '[".."]'),
    list: ("a list", '[".."]'),
    dict: ("a table", "{}"),
}
"""By the type of a value: the type in words, and an example."""
_ALIKE: Final = 0.7
"""Least likeness to a known key (difflib's ratio, 0 to 1) with which an unknown key counts as a mistyped one."""


def read_toml(path: str, flag: str, *, needed: bool = True) -> dict[str, Any]:
    """Read a file. flag: the flag that names it, for messages. needed: False if it may be missing, which gives an empty
    document. Raises ConfigError.
    """
    try:
        with Path(path).open("rb") as file:
            import tomllib  # most commands have no file

            return tomllib.load(file)
    except FileNotFoundError:
        if not needed:
            return {}
        raise ConfigError(f"there is no file {path!r}: fix {flag}") from None
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, a path with a zero byte, nested too deep
        raise ConfigError(f"{path} is not TOML: {error}") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}): fix {flag}") from error


def read_table(table: Any, kind: type[T], here: str) -> T:
    """Turn a table into a Struct, or a table whose keys have a form into a dict. A date counts as its text, YYYY-MM-DD.

    here: names the file and the table, for messages. Raises ConfigError.
    """
    plain = to_builtins(table)
    if _has_null(plain):  # of a configuration in JSON, where it would stand for a key that is left out
        raise ConfigError(f"{here}: a key has null, which TOML does not have: leave the key out")
    try:
        return converted(kind, plain)
    except ValidationError as error:
        raise ConfigError(next(_mistakes(plain, kind, here, ""), f"{here}: {error}")) from error


def _has_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_null, value.values()))
    return any(map(_has_null, value)) if isinstance(value, list) else value is None


def entry_label(here: str, table: str, number: int, total: int) -> str:
    """Return how messages name an entry of an array of tables. number: the entry's number, from 1, of `total`."""
    return f"{here}: [[{table}]] {number}" if total > 1 else f"{here}: [[{table}]]"


def unknown_key(key: str, known: Iterable[str], here: str) -> str:
    """Return the sentence for a key that a table does not have. It names the key that was probably meant, or all."""
    alike = likeliest(key, sorted(known), _ALIKE)
    fix = f"did you mean {alike}?" if alike else f"use {', '.join(sorted(known)) or 'none'}"
    return f"{here}: the key {key[:100]!r} is unknown: {fix}"


def _mistakes(table: Any, kind: Any, here: str, path: str) -> Iterator[str]:
    """Yield the sentence for each mistake of a table. path: the dotted names of the tables around it, each with a dot
    behind it.
    """
    if not isinstance(table, dict):
        yield f"{here} is not a table: write its keys below it, as KEY = VALUE"
        return
    if get_origin(kind) is dict:
        name, value = get_args(kind)
        declared, missing = dict.fromkeys(table, value), []
        wrong = [key for key in table if not _fits(key, name)]
        yield from (f"{here}: the key {key[:100]!r} is unknown: {_form(key, name).fix}" for key in wrong)
    else:
        declared = {one.name: one.type for one in fields(kind)}
        missing = [one.name for one in fields(kind) if one.required and one.name not in table]
        yield from (unknown_key(key, declared, here) for key in sorted(table.keys() - declared))
    for key, form in declared.items():
        if key in table and not _fits(table[key], form):
            yield from _wrong_value(key, table[key], form, here, path)
    yield from (f"{here}: the key {key!r} is missing: {_form(key, declared[key]).fix}" for key in missing)


def _wrong_value(key: str, value: Any, kind: Any, here: str, path: str) -> Iterator[str]:
    """Yield the sentences for a value that is not of the type of its key."""
    form = _form(f"{path}{key}", kind)
    if form.words and not (isinstance(value, form.origin) and str(value).strip()):
        yield f"{here}: {key} is not {form.words}: {form.fix}"
    elif form.most is not None and len(value) > form.most:
        parts = "characters" if form.origin is str else "entries"
        yield f"{here}: {key} has more than {form.most:,} {parts}: shorten it"
    elif value and isinstance(form.item, StructMeta):
        for number, entry in enumerate(value, 1):
            label = entry_label(here, f"{path}{key}", number, len(value))
            yield from _mistakes(entry, form.item, label, f"{path}{key}.")
    else:
        wrong = [one for one in value if not _fits(one, form.item)] if form.origin is list else []
        form = _form(key, form.item) if wrong else form
        verb, noun, shown = ("has", "entry", wrong[0]) if wrong else ("is", "value", value)
        said = f"{verb} {str(shown)[:100]!r}" if form.quote else f"has a wrong {noun}"
        yield f"{here}: {key} {said}: {form.fix}"


def _fits(value: Any, kind: Any) -> bool:
    try:
        converted(kind, value)
    except ValidationError:
        return False
    return True


class _Form(NamedTuple):
    """The type of a key's value in its parts. origin: the type itself. item: the type of an entry of a list; None for
    another value. most: largest number of characters or entries. fix: the clause that says what to write.
    """

    origin: Any
    item: Any
    most: int | None
    words: str
    fix: str
    quote: bool


def _form(name: str, kind: Any) -> _Form:
    """Take the type of a key's value apart. It may be a union with None, for a key that may be left out. name: of the
    key, with those of the tables around it.
    """
    kind = get_args(kind)[0] if get_origin(kind) in (Union, UnionType) else kind
    base, *metas = get_args(kind) if get_origin(kind) is Annotated else (kind,)
    origin, item = get_origin(base) or base, next(iter(get_args(base)), None)
    words, example = _KINDS.get(origin, ("", ""))
    fix = f"write {name.rpartition('.')[2]} = {example}"
    if isinstance(item, StructMeta):
        words, fix = "an array of tables", f"write [[{name}]]"
    extra: dict[str, Any] = {"fix": fix, "quote": False}
    for meta in metas:
        extra.update(meta.extra or {})
    most = next((meta.max_length for meta in metas if meta.max_length is not None), None)
    return _Form(list if origin is tuple else origin, item, most, words, **extra)
