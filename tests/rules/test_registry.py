"""Rules registered, written, tested and documented are the same; each has everything that a rule needs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import datetime
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from msgspec.structs import fields

from auditor.model.access import ObjectAccess
from auditor.model.bucket import BucketFacts
from auditor.model.object import Acl, DigestSources, Head, ObjectRef, Skipped, Unread
from auditor.rules import RULES
from auditor.rules import docs as catalogue
from auditor.rules.base import BUCKET_FACTS, OBJECT_FACTS, RUN_FACTS, SECTIONS, SHARED_HEAD, Rule, rule
from auditor.verdict.control import Control, WriteGrants
from auditor.verdict.trust import Trust
from tests.rules.case_files import FOLDER
from tests.support.paths import ROOT

PACKAGE = ROOT / "auditor" / "rules"
PAGE = ROOT / "docs" / "rules.md"
PURE = {
    *("__future__", "collections.abc", "datetime", "ipaddress", "re", "typing", "unicodedata", "urllib.parse"),
    *(f"auditor.model.{name}" for name in ("access", "bucket", "dates", "finding", "object", "policy", "toml_forms")),
    *(f"auditor.verdict.{name}" for name in ("control", "dormant", "public", "trust")),
    *("auditor.rules.base", "auditor.rules.patterns"),
}
OBJECT_TYPES = {
    "ref": ObjectRef,
    "acl": Acl,
    "head": Head,
    "owner": str,
    "digests": DigestSources,
    "access": ObjectAccess,
    "dormant": Acl,
    **{f"head.{name}": get_type_hints(Head)[name] for name in SHARED_HEAD},
}
RUN_TYPES = {
    "trusted": frozenset[str],
    "trust": Trust,
    "now": datetime,
    "control": Control,
    "write_grants": WriteGrants,
}


def test_registered_written_tested_and_documented_are_the_same_rules() -> None:
    registered = {rule.id for rule in RULES}
    written = {path.stem for path in PACKAGE.glob("*/[a-z]*.py")}
    tested = {path.stem for path in FOLDER.iterdir()}
    documented = set(re.findall(r"^### (\S+) ", PAGE.read_text(), re.MULTILINE))
    assert written == tested == {_stem(rule) for rule in RULES}
    assert registered == documented == {stem[:3].upper() for stem in written}


def test_registry_names_nothing_twice_and_keeps_its_order() -> None:
    ids = [rule.id for rule in RULES]
    assert len(set(ids)) == len(ids) == len({rule.name for rule in RULES})
    groups = list(catalogue.GROUPS)
    assert ids == sorted(ids, key=lambda number: (groups.index(number[0]), number))


def test_each_rule_has_everything_that_a_rule_needs() -> None:
    failures = [f"{rule.id}: {wrong}" for rule in RULES for wrong in _wrong(rule)]
    assert not failures, failures


def _wrong(rule: Rule) -> Iterator[str]:
    if not re.fullmatch(rf"auditor\.rules\.[a-z]+\.{rule.id.lower()}(_[a-z]+)+", rule.check.__module__):
        yield "its file has another name"
    if not (re.fullmatch(r"[A-Z][0-9]{2}", rule.id) and re.fullmatch(r"[a-z]+(-[a-z]+)+", rule.name)):
        yield f"the name {rule.name}"
    tree = ast.parse(PACKAGE.joinpath(*rule.check.__module__.split(".")[2:]).with_suffix(".py").read_text())
    if not rule.title or ast.get_docstring(tree) != f"{rule.id}: {rule.title}.":
        yield "its module's docstring is not its id and title"
    words = tuple(line.partition(":")[0] for line in rule.doc.splitlines() if not line.startswith(" "))
    if words != SECTIONS or not all(catalogue.sections(rule).values()):
        yield f"sections {words}"
    if named := set(re.findall(r"\b[A-Z][0-9]{2}\b", rule.doc)) - {one.id for one in RULES}:
        yield f"its docstring names {named}"
    hints = get_type_hints(rule.check)
    hints.pop("return")
    if list(hints.items()) != [(_parameter(fact), _type_of(fact, rule)) for fact in rule.reads]:
        yield f"its parameters are not the facts that it reads: {hints}"
    if {f"config.{option}" for option in rule.options} != {fact for fact in rule.reads if fact.startswith("config.")}:
        yield "it does not read all of its options"
    if further := {one for node in ast.walk(tree) for one in _imported(node)} - PURE:
        yield f"it imports {further}"
    if any(isinstance(node, ast.Await | ast.AsyncFunctionDef | ast.Global) for node in ast.walk(tree)):
        yield "it is no pure function"


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [f"{'.' * node.level}{node.module or ''}"]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


def test_every_bucket_fact_is_one_that_the_models_have() -> None:
    names = {field.name for field in fields(BucketFacts)} | {
        name for name, member in vars(BucketFacts).items() if isinstance(member, property)
    }
    assert {fact.removeprefix("bucket.") for fact in BUCKET_FACTS} <= names
    assert set(OBJECT_TYPES) == OBJECT_FACTS
    assert set(RUN_TYPES) == RUN_FACTS


def test_declaration_that_cannot_work_fails_at_import() -> None:
    for reads in (("acls",), ("bucket.name",), ("config.days",), ()):
        with pytest.raises(TypeError, match=r"^Z99 reads"):
            rule("Z99", "never", RULES[0].severity, reads=reads)(RULES[0].check)


def _stem(rule: Rule) -> str:
    """The name of the rule's file and of its case file: `o02_everyone_read`."""
    return rule.check.__module__.rpartition(".")[2]


def _parameter(fact: str) -> str:
    return fact.removeprefix("config.").replace(".", "_")


def _type_of(fact: str, rule: Rule) -> Any:
    if fact in RUN_FACTS:
        return RUN_TYPES[fact]
    if fact.startswith("config."):
        option = rule.options[fact.removeprefix("config.")]
        plain = getattr(option, "__origin__", option)
        generic: dict[type, Any] = {list: list[str], dict: dict[str, str]}
        return generic.get(get_origin(plain) or plain, plain)
    return _bucket_type(fact.removeprefix("bucket.")) if fact.startswith("bucket.") else OBJECT_TYPES[fact]


def _bucket_type(name: str) -> Any:
    """The type of a bucket fact once it was read."""
    member = vars(BucketFacts)[name]
    hint = get_type_hints(member.fget)["return"] if isinstance(member, property) else get_type_hints(BucketFacts)[name]
    kinds = set(get_args(hint)) if isinstance(hint, UnionType) else {hint}
    (known,) = kinds - {Unread, Skipped, NoneType}
    return known
