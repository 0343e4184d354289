"""The sources of the template as they are written: YAML with CloudFormation's short forms."""

from __future__ import annotations

from typing import Any

import yaml  # type: ignore[import-untyped]

from tests.support.paths import ROOT

LEVELS = ("exposure", "metadata", "fixity")


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Reads `!Sub text` as {"Fn::Sub": text}, and so on."""


def _short_form(loader: Any, suffix: str, node: Any) -> dict[str, Any]:
    name = suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}"
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)
    return {name: value.split(".", 1) if suffix == "GetAtt" else value}


_Loader.add_multi_constructor("!", _short_form)


def read(name: str) -> Any:
    """A YAML file of the repository, by its path."""
    return yaml.load((ROOT / name).read_text(), _Loader)


def parameters() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = read("deploy/parameters.yml")
    return found


def resources_of_level(level: str) -> dict[str, dict[str, Any]]:
    """Every resource that a level's files name, with renew=false, by logical ID; not those of deploy/parameters.js."""
    merged: dict[str, dict[str, Any]] = {}
    for reference in read(f"deploy/levels/{level}.yml")["resources"]:
        if not reference.startswith("${file("):
            continue
        merged |= read(_path(reference)).get("Resources", {})
    return merged


def functions_of_level(level: str) -> dict[str, dict[str, Any]]:
    merged: dict[str, dict[str, Any]] = {}
    for reference in read(f"deploy/levels/{level}.yml")["functions"]:
        merged |= read(_path(reference))
    return merged


def _path(reference: str) -> str:
    return reference.removeprefix("${file(").removesuffix(")}").replace("${self:custom.checked.renew}", "false")


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def of_type(resources: dict[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    """The properties of every resource of a type, by logical ID."""
    return {name: one["Properties"] for name, one in resources.items() if one["Type"] == kind}
