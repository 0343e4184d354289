"""The tables of docs/verdict.md: audiences and reasons from their docstrings, idioms from the case files."""

from __future__ import annotations

import ast
import inspect
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

from auditor.model.access import AudienceKind, ReasonCode
from tools import ROOT

PAGE: Final = ROOT / "docs" / "verdict.md"
AUDIENCES: Final = "<!-- audiences, written by `make docs` from auditor/model/access.py -->\n"
REASONS: Final = "<!-- reasons, written by `make docs` from auditor/model/access.py -->\n"
END: Final = "<!-- end -->\n"
CASES: Final = ROOT / "tests" / "verdict" / "cases"
IDIOMS: Final = "<!-- idioms, written by `make docs` from tests/verdict/cases/ -->\n"
HEADS: Final = {
    "`Allow * if ": "`Allow * if ..`",
    "ACL `AllUsers READ`; ": "ACL `AllUsers READ` and ..",
    "": "any other setting",
}
"""The heads of the tables of idioms, by the words that the rows of a table have in common: these stand in the head
alone."""


def verdict_page() -> str:
    """Return docs/verdict.md with its three tables written anew."""
    text = PAGE.read_text(encoding="utf-8")
    text = _with_tables(text, AUDIENCES, _table("kind", "the party", _members(AudienceKind)))
    text = _with_tables(text, REASONS, _table("code", "meaning", _members(ReasonCode)))
    settings: dict[str, list[tuple[str, str]]] = {start: [] for start in HEADS}
    for setting, access in _idioms():
        start = next(start for start in HEADS if setting.startswith(start))
        code = "`" if start.startswith("`") else ""
        settings[start].append((code + setting.removeprefix(start), access))
    tables = [_table(HEADS[start], "verdict, audience", rows) for start, rows in settings.items()]
    return _with_tables(text, IDIOMS, "\n\n".join(tables))


def _with_tables(text: str, marker: str, tables: str) -> str:
    """Return the text with these tables between the marker's line and the next one that says `end`."""
    before, found, rest = text.partition(marker)
    _, ends, after = rest.partition(END)
    if not found or not ends:
        raise ValueError(f"docs/verdict.md lacks the line {marker.strip()}, or {END.strip()} after it")
    return f"{before}{marker}\n{tables}\n\n{END}{after}"


def _table(first: str, second: str, rows: Iterable[tuple[str, str]]) -> str:
    return "\n".join([f"|{first}|{second}|", "|---|---|", *(f"|{left}|{right}|" for left, right in rows)])


def _members(enum: type[StrEnum]) -> Iterator[tuple[str, str]]:
    """Return a row for each member: its value, and the docstring below it on one line."""
    (definition,) = ast.parse(inspect.getsource(enum)).body
    assert isinstance(definition, ast.ClassDef)
    for member, after in zip(definition.body, [*definition.body[1:], None], strict=True):
        if isinstance(member, ast.Assign) and isinstance(member.targets[0], ast.Name):
            explained = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            text = str(after.value.value) if explained else ""  # type: ignore[union-attr]
            yield f"`{enum[member.targets[0].id].value}`", " ".join(text.split())


def _idioms() -> Iterator[tuple[str, str]]:
    """Return a row for the first case of each idiom and condition key, and for each other case that is to be shown."""
    for path in (*sorted(CASES.glob("idioms_*.toml")), *sorted(CASES.glob("keys_*.toml"))):
        for cases in tomllib.loads(path.read_text(encoding="utf-8")).values():
            for number, case in enumerate(cases):
                if number == 0 or case.get("shown"):
                    yield _setting(case), ": ".join(filter(None, (case["verdict"], _audience(case))))


def _audience(case: Mapping[str, Any]) -> str:
    texts = [text.replace("canonical-id identity", "canonical-id of the identity") for text in case.get("audience", ())]
    return ", ".join(f"`{text}`" for text in texts)


def _setting(case: Mapping[str, Any]) -> str:
    """Return the facts of a case in a few words, code in code marks."""
    return "; ".join([*_of_object(case), *map(_statement, case.get("statements", ())), *_of_bucket(case)])


def _of_object(case: Mapping[str, Any]) -> Iterator[str]:
    acl = case.get("acl", [])
    grants = acl if isinstance(acl, list) else acl.get("grants", []) if isinstance(acl, dict) else []
    if "owner" in case:
        yield "unsigned upload" if case["owner"] == "anonymous" else "another's object"
    if grants:
        yield f"ACL `{', '.join(grants)}`"
    head = case.get("head", {})
    if "sse_customer_algorithm" in head:
        yield "SSE-C"
    elif head.get("server_side_encryption", "AES256") != "AES256":
        yield "SSE-KMS, a key that every account may use" if "key_policies" in case else "SSE-KMS"


def _of_bucket(case: Mapping[str, Any]) -> Iterator[str]:
    switches = {"ignore_public_acls": "IgnorePublicAcls", "restrict_public_buckets": "RestrictPublicBuckets"}
    yield from (switches[name] for name in case.get("block", ()))
    if case.get("ownership") == "BucketOwnerEnforced":
        yield "BucketOwnerEnforced"
    if case.get("payer") == "Requester":
        yield "Requester Pays"
    if "abac" in case:
        yield {"unread": "ABAC not read", True: "ABAC on", False: "ABAC off"}[case["abac"]]
    if isinstance(case.get("tags"), dict):
        yield ", ".join(f"tag `{key}` = `{value}`" for key, value in case["tags"].items() if value) or "no such tag"
    if "access_points" in case:
        yield "access points not read" if isinstance(case["access_points"], str) else "access points read"
    if case.get("semantics", "aws") != "aws":
        yield f"semantics `{case['semantics']}`"
    if "trusted" in case:
        yield f"`{', '.join(case['trusted'])}` trusted"


def _statement(written: Mapping[str, Any]) -> str:
    words = [written.get("Effect", "Allow"), _principal(written)]
    action = written.get("Action", "s3:GetObject")
    if action != ("s3:*" if words[0] == "Deny" else "s3:GetObject"):
        words.append(f"Action {_values(action)}")
    words += [
        f"{name} {_values(written[name])}" for name in ("NotAction", "Resource", "NotResource") if name in written
    ]
    tests = [
        f"{operator} {key} {_values(values)}"
        for operator, keys in written.get("Condition", {}).items()
        for key, values in keys.items()
    ]
    if tests:
        words += ["if", " and ".join(tests)]
    return f"`{' '.join(words)}`"


def _principal(written: Mapping[str, Any]) -> str:
    for name in ("NotPrincipal", "Principal"):
        if name in written:
            principal = written[name]
            values = principal if isinstance(principal, str) else _values(next(iter(principal.values())))
            return f"{name} {values}".removeprefix("Principal ")
    return "*"


def _values(values: Any) -> str:
    listed = values if isinstance(values, list) else [values]
    return ", ".join(
        "the canonical ID of an origin access identity" if text == "identity" else text for text in map(_value, listed)
    )


def _value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
