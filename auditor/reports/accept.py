"""Write an entry of [[exceptions]], for auditor.toml: one that covers one finding of a run, or given values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from auditor.errors import UsageError
from auditor.model.run_lines import FindingLine

_SHORT: Final = {'"': '\\"', "\\": "\\\\"}


def entry_for(line: FindingLine, bucket: str, *, owner: str, reason: str, until: str) -> str:
    """Return the entry as lines of TOML, safe to print. It covers this finding and no other: its rule, grantee and key.

    until: the last day on which it holds, YYYY-MM-DD. An empty owner or reason is left for the user to fill in. Raises
    UsageError if TOML has no form for the key.
    """
    values = {"rule": line.rule, "bucket": bucket}
    if line.key is not None:
        values["prefix" if "*" in line.key else "pattern"] = line.key
    if line.grantee is not None:
        values["grantee"] = line.grantee
    return entry_text(values, owner=owner, reason=reason, until=until)


def entry_text(values: Mapping[str, str], *, owner: str, reason: str, until: str) -> str:
    """Return an entry as lines of TOML, safe to print. values: what it covers, by the keys of auditor.toml. The other
    arguments, and the error, are those of entry_for().
    """
    rows = ["[[exceptions]]", *(f"{name} = {toml_text(value)}" for name, value in values.items())]
    rows.append(f"owner = {toml_text(owner)}{'' if owner else '  # the person or team that answers for it'}")
    rows.append(f"reason = {toml_text(reason)}{'' if reason else '  # why it is accepted'}")
    rows.append(f"until = {until}")
    return "".join(f"{row}\n" for row in rows)


def toml_text(text: str) -> str:
    """Return a text as a TOML string, with everything escaped that a terminal does not print. Raises UsageError for a
    lone surrogate, for which TOML has no form.
    """
    return f'"{"".join(map(_character, text))}"'


def _character(one: str) -> str:
    if "\ud800" <= one <= "\udfff":
        raise UsageError("the key has a lone surrogate, for which TOML has no form: write a prefix or pattern by hand")
    if one in _SHORT:
        return _SHORT[one]
    if one.isprintable():
        return one
    return f"\\u{ord(one):04x}" if ord(one) < 0x10000 else f"\\U{ord(one):08x}"
