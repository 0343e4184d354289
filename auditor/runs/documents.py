"""The JSON files of a run folder: their form, and one sentence for each file that cannot be read."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, ClassVar, Final, Self, TypeVar

import msgspec
from msgspec import Struct, StructMeta
from msgspec.structs import fields

from auditor.errors import OldRun, RunDamaged
from auditor.model.json_codec import (
    FORMAT,
    JsonError,
    OldFormatError,
    as_object,
    fact_from_json,
    fact_to_json,
    member,
    member_names,
    parse_document,
    typed,
)
from auditor.runs.stores.base import Store

ANEW: Final = "start a new run"
AGAIN: Final = "audit again"


class JsonFile(Struct, frozen=True, kw_only=True):
    """The content of a JSON file: its format, and exactly the members that the class declares. A class with
    `omit_defaults` leaves out the members that have nothing to say.
    """

    INDENT: ClassVar[int | None] = None
    LINED: ClassVar[str] = ""
    """The member that is written last, a list with a line for each entry; "" for none."""

    def to_json(self) -> bytes:
        """Return the bytes of the file."""
        value = {"format": FORMAT, **self._members()}
        if not self.LINED:
            return json.dumps(value, indent=self.INDENT).encode() + b"\n"
        lines = ",\n".join(map(json.dumps, value.pop(self.LINED)))
        head = json.dumps(value, indent=self.INDENT).removesuffix("}").rstrip("\n")
        return f'{head},{" " if self.INDENT is None else chr(10) + " "}"{self.LINED}": [\n{lines}\n]}}\n'.encode()

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """Make the content from the bytes that to_json() wrote. Raises JsonError for any other ones."""
        value = parse_document(data)
        _check_members(cls, value)
        found = cls._of(value)
        found.check()
        return found

    def check(self) -> None:
        """Raise JsonError if members do not fit each other."""

    def _members(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.to_builtins(self, enc_hook=dict)
        return found

    @classmethod
    def _of(cls, value: dict[str, Any]) -> Self:
        return typed(cls, value)


class RunFile(JsonFile, frozen=True, kw_only=True):
    """The content of a JSON file of a run."""

    run: str
    """The run's ID."""


class FactFile(RunFile, frozen=True, kw_only=True):
    """The content of a JSON file of a run that has facts of the bucket: a value each, or why there is none."""

    INDENT = 1

    def _members(self) -> dict[str, Any]:
        found: dict[str, Any] = fact_to_json(self)
        return found

    @classmethod
    def _of(cls, value: dict[str, Any]) -> Self:
        return fact_from_json(cls, value)


def _check_members(kind: Any, value: Any) -> None:
    """Raise JsonError unless the value, and each member that is a Struct, has exactly the members of its Struct."""
    given, names = as_object(value).keys(), member_names(kind)
    if given - names or (given != names and not kind.__struct_config__.omit_defaults):
        raise JsonError("has other members")
    for one in fields(kind):
        if isinstance(one.type, StructMeta):
            member(value, one.encode_name, partial(_check_members, one.type), {})


T = TypeVar("T", bound=RunFile)


def load(store: Store, path: str, kind: type[T], run_id: str, fix: str = ANEW) -> T | None:
    """Return the content of the file `path`, of the type `kind`; None if there is no such file. Blocks.

    run_id: of the run that the file has to name. fix: the user's next step if the file is damaged. Raises RunDamaged,
    which names the file.
    """
    data = store.get(path)
    return None if data is None else parsed(data, store.uri(path), kind, run_id, fix)


def parsed(data: bytes, uri: str, kind: type[T], run_id: str, fix: str = ANEW) -> T:
    """Return the content of a file. uri: of the file, for the error; the other parameters are those of load()."""
    try:
        found = kind.from_json(data)
        if found.run != run_id:
            raise JsonError("is another run's")
    except JsonError as error:
        raise damaged(uri, error, fix) from error
    return found


def damaged(uri: str, error: Exception, fix: str = ANEW) -> RunDamaged:
    """Return the error for a file that cannot be read. error: the reason."""
    if isinstance(error, OldFormatError):
        return OldRun(f"{uri} {error.problem}")
    return RunDamaged(f"{uri} is damaged ({error}): {fix}")
