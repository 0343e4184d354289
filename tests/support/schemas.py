"""Check files, lines and answers against the published JSON Schemas, without members that these do not name."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator

from tests.support.paths import ROOT

Schema = dict[str, Any]

FILES: Final[Mapping[str, str]] = {
    "summary.json": "summary",
    "rollups.json": "rollups",
    "run.json": "run",
    "seal.json": "seal",
}
"""The files of an audit's run folder, and their schemas."""
FURTHER: Final[Mapping[str, str]] = {
    "keys.json": "keys",
    "checkpoint/parts-*.json": "seal",
    "checkpoint/keys-*.json": "keys",
    "checkpoint/[0-9]*.json": "checkpoint",
}
"""Those of a run that reads the policies of KMS keys, and of a run that is not complete, by patterns of their paths."""
LINES: Final[Mapping[str, str]] = {
    "objects": "object-line",
    "findings": "finding-line",
    "undecided": "undecided-line",
    "routed": "routed-line",
}
"""The kinds of lines in an audit's run folder, and their schemas."""


def load(name: str) -> Schema:
    found: Schema = json.loads((ROOT / "docs" / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8"))
    return found


def closed(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """Return a schema in which no object has members that the schema does not name. Its definitions stand in the places
    of their names: jsonschema takes long to look one up.
    """
    if isinstance(schema, list):
        return [closed(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        named = definitions[schema["$ref"].removeprefix("#/$defs/")]
        more = {name: value for name, value in schema.items() if name not in ("$ref", "description")}
        assert not named.keys() & more.keys()
        return closed({**named, **more}, definitions)
    return {
        name: False if name == "additionalProperties" and value is True else closed(value, definitions)
        for name, value in schema.items()
    }


@cache
def _validator(name: str) -> Draft202012Validator:
    schema = load(name)
    return Draft202012Validator(closed(schema, schema.get("$defs", {})))


def faults(name: str, value: Any) -> list[str]:
    """Return what is wrong with a value, by the schema of this name without other members; [] if nothing is."""
    return [f"{error.json_path}: {error.message[:200]}" for error in _validator(name).iter_errors(value)]


def valid(name: str, *values: Any) -> int:
    """Assert that each value matches the schema, and return their number."""
    for value in values:
        assert faults(name, value) == []
    return len(values)


def check_folder(folder: Path) -> dict[str, int]:
    """Check each file and line of an audit's run folder, and `latest.json` beside it. Return the number of each."""
    counts = {file: valid(name, json.loads((folder / file).read_bytes())) for file, name in FILES.items()}
    for pattern, name in FURTHER.items():
        counts[pattern] = valid(name, *(json.loads(path.read_bytes()) for path in folder.glob(pattern)))
    names = {str(found.relative_to(folder)) for found in files_in(folder)}
    names = {name for name in names if not any(fnmatchcase(name, pattern) for pattern in FURTHER)}
    assert {name.partition("/")[0] for name in names} <= {*FILES, *LINES, "report.html", "batch"}
    for kind, name in LINES.items():
        counts[kind] = sum(valid(name, *lines_in(path)) for path in sorted((folder / kind).glob("*.jsonl.gz")))
    latest = folder.parent / "latest.json"
    if latest.exists():
        valid("latest", json.loads(latest.read_bytes()))
    return counts


def files_in(folder: Path) -> Iterable[Path]:
    """Return the files below a folder, but for the hidden ones."""
    return [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]


def lines_in(path: Path) -> Iterable[Any]:
    data = path.read_bytes()
    return map(json.loads, (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines())
