"""Render the rules as text: a table, one rule's documentation, JSON, and the page docs/rules.md."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, get_origin

from auditor.rules import RULES
from auditor.rules.base import SECTIONS, Rule

GROUPS: Final = {
    "O": "Access and owners of objects",
    "E": "Encryption",
    "M": "Metadata",
    "I": "Integrity",
    "K": "Keys",
    "L": "Object Lock",
    "R": "Replication",
    "V": "Versions",
    "B": "The bucket",
}
"""The subjects of the rules by the first letter of their IDs, in the order of RULES."""

SHARED: Final = 3
"""A line of so many rules of a subject stands once on the page."""

PAGE: Final = """# Rules

<!-- Written by `make docs` from the rules' own docstrings: edit those. -->

`auditor rules O02` prints one rule, with the cases that it does not flag. A rule's name (`acl-everyone-read`) works
wherever its ID does. If a fact could not be read, the rule is undecided, which is never a pass. A rule with options
runs only if [`auditor.toml`](configuration.md) has its table, such as `[rules.M01]`.
[Rules that are not built](rules-not-built.md) have a page of their own.
"""


def sections(rule: Rule) -> Mapping[str, str]:
    """Return the sections of a rule's documentation: Why, Flagged, Not flagged, Blind to, Fix. Each is one line."""
    texts: dict[str, list[str]] = {}
    for line in rule.doc.splitlines():
        word, colon, rest = line.partition(":")
        if colon and word in SECTIONS:
            texts[word] = [rest.strip()]
        elif texts:
            texts[next(reversed(texts))].append(line.strip())
    return {word: " ".join(lines).strip() for word, lines in texts.items()}


def as_details(rule: Rule) -> str:
    """Return the documentation of one rule, as `auditor rules ID` prints it."""
    lines = [
        f"{rule.id} {rule.name} ({rule.severity.value})",
        rule.title,
        "",
        rule.doc,
        f"Reads: {', '.join(rule.reads)}",
        *_options(rule),
    ]
    return "".join(f"{line}\n" for line in lines)


def as_json(rules: Sequence[Rule]) -> str:
    """Return a JSON list with an object for each rule. Its members: id, name, severity, title, scope ("object" or
    "bucket"), reads, options, and the sections.
    """
    return json.dumps([_as_object(rule) for rule in rules], indent=2) + "\n"


def as_markdown(rules: Sequence[Rule]) -> str:
    """Return the text of docs/rules.md. A line that several rules of a subject share stands once, above them."""
    parts = [PAGE]
    for letter, subject in GROUPS.items():
        group = [rule for rule in rules if rule.id.startswith(letter)]
        if group:
            lines = {rule.id: _lines(rule) for rule in group}
            counted = Counter(line for one in lines.values() for line in one)
            shared = [line for line, number in counted.items() if number >= SHARED]
            parts.append(f"## {subject}\n")
            if shared:
                parts.append(f"Unless a rule says otherwise:\n\n{''.join(shared)}")
            parts.extend(_section(rule, [line for line in lines[rule.id] if line not in shared]) for rule in group)
    return "\n".join(parts)


def _section(rule: Rule, lines: Sequence[str]) -> str:
    why = _sentence(sections(rule)["Why"])
    return f"### {rule.id} {rule.name}\n\n**{rule.severity.value}**: {rule.title}. {why}\n\n{''.join(lines)}"


def _lines(rule: Rule) -> list[str]:
    texts = sections(rule)
    return [f"- **{word}:** {texts[word]}\n" for word in ("Flagged", "Blind to", "Fix")]


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _options(rule: Rule) -> list[str]:
    if not rule.options:
        return []
    names = ", ".join(f"{name} ({_word(kind)})" for name, kind in rule.options.items())
    return [f"Options: {names} in [rules.{rule.id}] of auditor.toml; the rule is not selected without them."]


def _word(kind: Any) -> str:
    """Return the word for the type of an option: list, int."""
    return str((get_origin(getattr(kind, "__origin__", kind)) or getattr(kind, "__origin__", kind)).__name__)


def _as_object(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": rule.name,
        "severity": rule.severity.value,
        "title": rule.title,
        "scope": "object" if rule.per_object else "bucket",
        "reads": list(rule.reads),
        "options": {name: _word(kind) for name, kind in rule.options.items()},
        **{word.lower().replace(" ", "_"): text for word, text in sections(rule).items()},
    }


if __name__ == "__main__":
    sys.stdout.write(as_markdown(RULES))
