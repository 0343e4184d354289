"""Write keyword_types.py of auditor/offline/library: the settings that each function takes as keywords, by type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from auditor.cli.help import make_parser
from auditor.config import values
from auditor.config.settings import CHANNELS, SETTINGS
from auditor.model.bucket import Semantics
from auditor.offline.library.verification import COMPARED
from auditor.s3.engines import ENGINES

PATH: Final = "auditor/offline/library/keyword_types.py"
_CALLS: Final = ("retry_attempts", "retry_seconds", "first_answer")
_FUNCTIONS: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    "AuditKeywords": ("audit_bucket", "audit", ("trusted", "keep_metadata", *_CALLS)),
    "ExplainKeywords": ("explain", "explain", ("trusted", "semantics", *_CALLS)),
    "HashKeywords": ("hash_bucket", "hash", _CALLS),
    "VerifyKeywords": ("verify_bucket", "verify", ("algorithms", *_CALLS)),
    "JudgeKeywords": ("judge_run", "", ("level", "only", "ignore", "semantics", "trusted")),
}
"""The class of each function's keywords: the function, the command whose flags they are, and more settings."""
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
    parts = [_HEAD]
    for name, (function, command, more) in _FUNCTIONS.items():
        wanted = (_flags(command) | set(more)) - set(CHANNELS)
        lines = [
            f"class {name}(TypedDict, total=False):",
            f'    """The settings that {function} takes as keywords."""',
            "",
        ]
        for setting, declared in SETTINGS.items():
            if setting not in wanted:
                continue
            kind = _TYPES.get(declared.read, "str")
            lines += [f"    {setting}: {kind} | None", *_docstring(_text(name, setting))]
            alias = declared.option.removeprefix("--").replace("-", "_")
            if alias and alias != setting and alias not in wanted:
                lines += [f"    {alias}: {kind} | None", f'    """The same as `{setting}`, by the name of its flag."""']
        parts.append("\n\n" + "\n".join(lines) + "\n")
    return "".join(parts)


def _docstring(text: str) -> list[str]:
    """Return a text as the lines of the docstring of a member, at most 120 characters each."""
    words, lines = text.split(), ['    """']
    for word in words:
        if len(lines[-1]) + len(word) + 4 > 120:
            lines.append("    ")
        lines[-1] += word if lines[-1].endswith(('"""', "    ")) else f" {word}"
    return [*lines[:-1], f'{lines[-1]}"""']
