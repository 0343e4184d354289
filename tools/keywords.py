"""Write keyword_types.py of auditor/offline/library: the settings that each function takes as keywords, by type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from auditor.cli.help import make_parser
from auditor.config import values
from auditor.config.settings import CHANNELS, SETTINGS
from auditor.model.bucket import Semantics
from auditor.offline.library.fixity import COMPARED
from auditor.s3.engines import ENGINES

PATH: Final = "auditor/offline/library/keyword_types.py"
_CALLS: Final = ("retry_attempts", "retry_seconds", "first_answer")
_FUNCTIONS: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    "JudgeKeywords": ("judge_run", "", ("level", "only", "ignore", "semantics", "trusted")),
    "AuditKeywords": ("audit_bucket", "audit", ("trusted", "keep_metadata", *_CALLS)),
    "ExplainKeywords": ("explain", "explain", ("trusted", "semantics", *_CALLS)),
    "HashKeywords": ("hash_bucket", "hash", _CALLS),
    "VerifyKeywords": ("verify_bucket", "verify", ("algorithms", *_CALLS)),
}
"""The class of each function's keywords: the function, the command whose flags they are, and more settings."""
_SHARED: Final = {
    "BucketKeywords": (
        "a function that asks S3",
        ("AuditKeywords", "ExplainKeywords", "HashKeywords", "VerifyKeywords"),
    ),
    "ListingKeywords": ("a function that lists a bucket", ("AuditKeywords", "HashKeywords", "VerifyKeywords")),
}
"""The classes of keywords that others have in common: the functions, in words, and the others."""
_BASES: Final = {
    "ListingKeywords": ("BucketKeywords",),
    "AuditKeywords": ("ListingKeywords", "JudgeKeywords"),
    "ExplainKeywords": ("BucketKeywords",),
    "HashKeywords": ("ListingKeywords",),
    "VerifyKeywords": ("ListingKeywords",),
}
_HEAD: Final = '''"""The settings that each function of the library takes as keywords. Written by `make docs`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Literal, TypedDict

Names = str | Iterable[str]
"""Names in a list, or in one text with commas between them."""
'''


def _words(names: Any, more: str = "") -> str:
    return f"Literal[{', '.join(repr(str(name)) for name in names)}]{more}".replace("'", '"')


_TYPES: Final[Mapping[Callable[[Any, str], Any], str]] = {
    values.engine: _words(ENGINES),
    values.concurrency: 'int | Literal["auto"]',
    values.streams: 'int | Literal["auto"]',
    values.rate: 'float | Literal["unlimited"]',
    values.whole: "int",
    values.dollars: "float",
    values.seconds: "float",
    values.keep: "str | Mapping[str, str]",
    values.flag: "bool",
    values.level: _words(values.LEVELS),
    values.text: "str | PathLike[str]",
    values.words: "Names",
    values.trusted: "Names",
    values.algorithms: "Names",
    values.outcomes: "Names",
    values.size: "str | int",
    values.percent: "str | float",
    values.source: _words((values.LIVE, values.MIXED)),
    values.semantics: _words((*Semantics, "auto")),
}
"""The type of a setting's keyword by its reader; "str" for any other reader."""


def _flags(command: str) -> set[str]:
    """Return the names of the settings that are flags of a command; none for ""."""
    parser = make_parser().commands.get(command)
    return set() if parser is None else {one.dest for one in parser.declared().flags.all} & SETTINGS.keys()


def _text(kind: str, name: str) -> str:
    text = COMPARED if (kind, name) == ("VerifyKeywords", "algorithms") else SETTINGS[name].help
    return f"{text[0].upper()}{text[1:]}."


def keyword_types() -> str:
    """Return the source of the module: a TypedDict for each function, whose members have the help of their flags."""
    found = {name: _members(name, command, more) for name, (_, command, more) in _FUNCTIONS.items()}
    words = {name: function for name, (function, _, _) in _FUNCTIONS.items()}
    for name, (functions, users) in _SHARED.items():
        first, *others = (found[user] for user in users)
        found[name] = {one: lines for one, lines in first.items() if all(other.get(one) == lines for other in others)}
        words[name] = functions
    parts = [_HEAD]
    for name in (*_SHARED, *_FUNCTIONS):
        bases = _BASES.get(name, ())
        known = {one for base in bases for one in found[base]}
        lines = [
            f"class {name}({', '.join(bases or ('TypedDict',))}, total=False):",
            f'    """The settings that {words[name]} takes as keywords."""',
            "",
            *(line for one, lines in found[name].items() if one not in known for line in lines),
        ]
        parts.append("\n\n" + "\n".join(lines) + "\n")
    return "".join(parts)


def _members(kind: str, command: str, more: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the lines of each member of a class by its name, in the order of the settings."""
    wanted = (_flags(command) | set(more)) - set(CHANNELS)
    found: dict[str, list[str]] = {}
    for setting, declared in SETTINGS.items():
        if setting not in wanted:
            continue
        form = _TYPES.get(declared.read, "str")
        found[setting] = [f"    {setting}: {form} | None", *_docstring(_text(kind, setting))]
        alias = declared.option.removeprefix("--").replace("-", "_")
        if alias and alias != setting and alias not in wanted:
            same = f'    """The same as `{setting}`, by the name of its flag."""'
            found[alias] = [f"    {alias}: {form} | None", same]
    return found


def _docstring(text: str) -> list[str]:
    """Return a text as the lines of the docstring of a member, at most 120 characters each."""
    words, lines = text.split(), ['    """']
    for word in words:
        if len(lines[-1]) + len(word) + 4 > 120:
            lines.append("    ")
        lines[-1] += word if lines[-1].endswith(('"""', "    ")) else f" {word}"
    return [*lines[:-1], f'{lines[-1]}"""']
