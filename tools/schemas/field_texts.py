"""The descriptions of classes and their fields, taken from the docstrings in the source."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_WORDS: Final[Mapping[str, str]] = {
    "in the form of Audience.text": "such as `anyone` or `account 444455556666`",
    "in the form of Reason.text": "such as `acls-disabled` or `policy-allow: PublicRead`",
    " Asking for a value raises NotStored.": "",
    "The metadata of this Head has names only unless the run keeps the values.": "HEAD's answer, or why there is none.",
    "SHA-256 of each of FILES": "SHA-256 of each file of the folder, besides the parts,",
    ", unchecked": "",
    " Several caches use the ACL of each object as their key, so its hash is computed only once.": "",
}
"""Words for a reader of the source, and their replacements for a reader of the files."""
_NONE: Final = re.compile(r"\bNone\b")


@dataclass(frozen=True, slots=True)
class Texts:
    """The description of a class, and those of its fields or members by name."""

    description: str
    fields: Mapping[str, str]


def texts_of(kind: type, names: list[str]) -> Texts:
    """Return the texts of a class. names: its fields or members, which its docstring may explain as `name: text`."""
    (definition,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(definition, ast.ClassDef)
    description, found = _split(_plain(ast.get_docstring(definition) or ""), names)
    return Texts(description, found | dict(_below(definition)))


def _below(definition: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Yield each field that has a string under it, with this string."""
    for member, after in zip(definition.body, definition.body[1:], strict=False):
        target: Any = member.target if isinstance(member, ast.AnnAssign) else None
        if isinstance(member, ast.Assign):
            target = member.targets[0]
        text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else None
        if isinstance(target, ast.Name) and isinstance(text, str):
            yield target.id, _plain(text)


def _split(text: str, names: list[str]) -> tuple[str, dict[str, str]]:
    """Split a docstring into the text on the class, and those on its fields: `key, verdict: the object's.`"""
    name = "|".join(map(re.escape, names)) or "(?!)"
    parts = re.split(rf"(?:^|(?<=\. )|(?<=\.\) ))((?:{name})(?:, (?:{name}))*): ", text)
    found: dict[str, str] = {}
    for words, explanation in zip(parts[1::2], parts[2::2], strict=True):
        said = explanation.strip()
        found |= dict.fromkeys(words.split(", "), said[:1].upper() + said[1:])
    return parts[0].strip(), found


def _plain(text: str) -> str:
    line = " ".join(text.split())
    for words, others in _WORDS.items():
        line = line.replace(words, others)
    return _NONE.sub("null", line).strip()
