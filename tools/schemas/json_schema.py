"""Make JSON Schemas (draft 2020-12) from the Structs that are written as JSON.

A class is written by `auditor.model.json_codec.plain`, or as facts by `auditor.model.json_codec.fact_to_json`, where a
fact that is not there is {"unread": ..} or {"skipped": ..}, and a mapping is a list of pairs.
"""

from __future__ import annotations

import collections.abc
from collections.abc import Collection, Mapping
from enum import Enum, EnumType
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from msgspec import Meta, Struct, StructMeta
from msgspec.structs import FieldInfo, fields

from auditor.model.access import Verdict
from auditor.model.digest import VerifyOutcome
from auditor.model.estate import EstateReport
from auditor.model.finding import Severity
from auditor.model.json_codec import END, FORMAT
from auditor.model.object import Head, Skipped, Unread
from auditor.model.rollup import RollUps, Totals, TrendNight
from auditor.model.run_lines import UndecidedLine
from auditor.model.summary import ChangeKind, Changes, ExceptedCounts, Summary
from auditor.runs.checkpoint import Checkpoint
from auditor.runs.key_file import KeyFile
from auditor.runs.paths import RUN_ID
from auditor.runs.run_files import FILES, RunPlan, Seal
from auditor.verify.summary import VerifySummary
from tools.schemas.field_texts import texts_of

Schema = dict[str, Any]

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
STRICT: Final[frozenset[type]] = frozenset({RunPlan, Checkpoint, Seal})
"""Classes whose reader refuses a member that it does not know."""
OPTIONAL: Final = frozenset(
    {
        ("WrittenTask", "hops"),
        ("WrittenTask", "sequencer"),
        ("ObjectLine", "read_at"),
        ("ObjectLine", "dormant"),
        *(("Checkpoint", name) for name in ("void", "writer", "rollups", "unsent", "ended")),
    }
)
"""Members that are written only if they have something to say. All others are always there."""
_ANY_ORDER: Final[Mapping[tuple[type, str], tuple[EnumType, ...]]] = {
    (ExceptedCounts, "verdicts"): (Verdict,),
    (ExceptedCounts, "findings"): (Severity,),
    (Changes, "classes"): (ChangeKind,),
    (Changes, "verdicts"): (Verdict, ChangeKind),
    (Changes, "findings"): (Severity, ChangeKind),
    (Summary, "audiences"): (Verdict,),
    (Totals, "verdicts"): (Verdict,),
    (Totals, "findings"): (Severity,),
    (TrendNight, "verdicts"): (Verdict,),
    (TrendNight, "findings"): (Severity,),
    (TrendNight, "excepted"): (Verdict,),
}
_ALL_WORDS: Final[Mapping[tuple[type, str], tuple[EnumType, ...]]] = {
    (Summary, "verdicts"): (Verdict,),
    (Summary, "findings"): (Severity,),
    (VerifySummary, "outcomes"): (VerifyOutcome,),
}
KEYS: Final = {**_ANY_ORDER, **_ALL_WORDS}
"""The enums of the names in mappings, from the outside in. Those of _ALL_WORDS have every word."""

_FILES: Final = frozenset({RunPlan, Checkpoint, EstateReport, KeyFile, RollUps, Seal, Summary})
"""The types of JSON files, which have a format."""
FORM: Final[Schema] = {"description": "The format of the file.", "const": FORMAT}
WHOLE: Final[Schema] = {"type": "integer", "minimum": 0}
TEXT: Final[Schema] = {"type": "string"}
TEXTS: Final[Schema] = {"type": "array", "items": TEXT}
MAYBE_TEXT: Final[Schema] = {"type": ["string", "null"]}
YES_OR_NO: Final[Schema] = {"type": "boolean"}
COUNTS: Final[Schema] = {"type": "object", "additionalProperties": WHOLE}
RUN: Final[Schema] = {"type": "string", "pattern": f"^{RUN_ID.pattern}$"}
_SIMPLE: Final[Mapping[Any, Schema]] = {
    str: {"type": "string"},
    int: WHOLE,
    float: {"type": "number", "minimum": 0},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
    Any: {},
}
_LIMITS: Final = {
    "ge": "minimum",
    "le": "maximum",
    "min_length": "minLength",
    "max_length": "maxLength",
    "pattern": "pattern",
}
"""The limits of a Meta, as a schema names them."""
_NOT_THERE: Final = {"not": {"anyOf": [{"required": ["unread"]}, {"required": ["skipped"]}]}}
_SHA256: Final[Schema] = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_MEMBERS: Final[Mapping[tuple[type, str], Schema]] = {
    (Head, "metadata"): {
        "oneOf": [
            {"type": "array", "items": {"type": "string"}},
            {"type": "object", "additionalProperties": {"type": "string"}},
        ],
        "description": "The names of user metadata; with `keep_metadata` also their values.",
    },
    (Checkpoint, "tally"): {"type": "object"},
    (UndecidedLine, "unread"): {"type": "array", "items": {"$ref": "#/$defs/Unread"}, "minItems": 1},
    (Seal, "files"): {
        "type": "object",
        "propertyNames": {"enum": list(FILES)},
        "additionalProperties": _SHA256,
    },
}
"""Members whose type does not say all."""


class SchemaMaker:
    """Makes the schema of one file, and collects the classes that it names in `definitions`.

    strict_facts: True if the reader of the file refuses a member of a fact that it does not know.
    """

    def __init__(self, *, strict_facts: bool = False) -> None:
        self._strict_facts = strict_facts
        self.definitions: dict[str, Schema] = {}

    def of(self, kind: Any, *, facts: bool = False) -> Schema:
        """Return the schema of a type. facts: True if it is written as a fact."""
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self._annotated(arguments[0], arguments[1:], facts)
        if isinstance(kind, EnumType | StructMeta):
            return self._reference(kind, facts)
        if origin in (Union, UnionType):
            return self._union(arguments, facts)
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin is collections.abc.Mapping:
            return self._mapping(arguments[1], facts)
        if origin is not None:
            return {"type": "array", "items": self.of(arguments[0], facts=facts)}
        return dict(_SIMPLE[kind])

    def members(
        self,
        kind: Any,
        *,
        facts: bool = False,
        extra: Mapping[str, Schema] | None = None,
        without: Collection[str] = (),
    ) -> Schema:
        """Return the schema of a Struct as a JSON object.

        extra: members besides its fields, or in their place. without: fields that are not written.
        """
        written = [one for one in fields(kind) if one.name not in without]
        said = texts_of(kind, [one.name for one in written])
        given = {**({"format": FORM} if kind in _FILES else {}), **(extra or {})}
        members = {
            one.encode_name: self._member(kind, one, facts, said.fields)
            for one in written
            if one.encode_name not in given
        }
        members = {**given, **members}
        return {
            "description": said.description,
            "type": "object",
            "properties": members,
            "required": [name for name in members if (kind.__name__, name) not in OPTIONAL],
            "additionalProperties": not (kind in STRICT or (facts and self._strict_facts)),
        }

    def _member(self, kind: Any, one: FieldInfo, facts: bool, said: Mapping[str, str]) -> Schema:
        hint, facts = one.type, facts or (kind is RunPlan and one.name in ("facts", "ask"))
        words = KEYS.get((kind, one.name))
        if found := _MEMBERS.get((kind, one.name)):
            schema = dict(found)
            if (kind, one.name) != (Checkpoint, "tally"):
                self.of(hint, facts=facts)
        elif words:
            schema = self._by_word(hint, words, whole=(kind, one.name) in _ALL_WORDS)
        else:
            schema = self.of(hint, facts=facts)
        return {"description": said[one.name], **schema} if one.name in said else schema

    def _by_word(self, hint: Any, words: tuple[EnumType, ...], whole: bool) -> Schema:
        if get_origin(hint) in (Union, UnionType):
            (mapping,) = (one for one in get_args(hint) if one is not NoneType)
            return {"anyOf": [self._by_word(mapping, words, whole), {"type": "null"}]}
        value = get_args(hint)[1]
        return {
            "type": "object",
            "propertyNames": self.of(words[0]),
            **({"required": [word.value for word in _members(words[0])]} if whole else {}),
            "additionalProperties": self._by_word(value, words[1:], whole) if words[1:] else self.of(value),
        }

    def _annotated(self, kind: Any, metas: tuple[Meta, ...], facts: bool) -> Schema:
        schema = self.of(kind, facts=facts)
        for meta in metas:
            limits = {name: getattr(meta, limit) for limit, name in _LIMITS.items() if getattr(meta, limit) is not None}
            schema |= limits | (meta.extra_json_schema or {})
            if meta.pattern is not None:
                schema["pattern"] = meta.pattern.replace(END, "$")
        return schema

    def _reference(self, kind: Any, facts: bool) -> Schema:
        name = kind.__name__
        if name not in self.definitions:
            self.definitions[name] = {}
            self.definitions[name] = _enum(kind) if isinstance(kind, EnumType) else self.members(kind, facts=facts)
        return {"$ref": f"#/$defs/{name}"}

    def _union(self, arguments: tuple[Any, ...], facts: bool) -> Schema:
        missing = [self._missing(kind) for kind in (Unread, Skipped) if facts and kind in arguments]
        values = [self.of(kind, facts=facts) for kind in arguments if not (facts and kind in (Unread, Skipped))]
        if not missing:
            return _nullable(values)
        values = [{**value, **_NOT_THERE} if "$ref" in value else value for value in values]
        return {"oneOf": [*values, *missing]}

    def _missing(self, kind: type[Struct]) -> Schema:
        """Define the value that stands for a fact that is not there, and nothing else beside it."""
        name = f"{kind.__name__}Fact"
        member = kind.__name__.lower()
        value = self.of(kind) if kind is Unread else {"description": "Why it was not asked for.", "type": "string"}
        self.definitions[name] = {
            "description": texts_of(kind, list(kind.__struct_fields__)).description,
            "type": "object",
            "properties": {member: value},
            "required": [member],
            "additionalProperties": False,
        }
        return {"$ref": f"#/$defs/{name}"}

    def _mapping(self, value: Any, facts: bool) -> Schema:
        if not facts:
            return {"type": "object", "additionalProperties": self.of(value)}
        pair = [{"type": "string"}, self.of(value, facts=True)]
        return {"type": "array", "items": {"type": "array", "prefixItems": pair, "items": False, "minItems": 2}}


def document(title: str, root: Schema, maker: SchemaMaker) -> Schema:
    """Return the schema of a file with the definitions that it names."""
    definitions = dict(sorted(maker.definitions.items()))
    return {"$schema": DRAFT, "title": title, **root, **({"$defs": definitions} if definitions else {})}


def _nullable(values: list[Schema]) -> Schema:
    others = [value for value in values if value != {"type": "null"}]
    if len(others) == 1 and len(values) == 2 and isinstance(others[0].get("type"), str):
        return {**others[0], "type": [others[0]["type"], "null"]}
    return {"anyOf": values}


def _enum(kind: EnumType) -> Schema:
    members = _members(kind)
    said = texts_of(kind, [])
    each = [f"{one.value}: {said.fields[one.name]}" for one in members if one.name in said.fields]
    return {"description": " ".join([said.description, *each]), "enum": [one.value for one in members]}


def _members(kind: EnumType) -> list[Enum]:
    return list(kind)
