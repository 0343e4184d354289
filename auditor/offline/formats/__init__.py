"""The formats in which a run is written, one module each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from auditor.model.summary import Summary
    from auditor.offline.formats.base import Format, FormatOptions, RunLines


# Each module is imported when it writes: the command line names all formats whenever it starts.
class NamedFormat(Struct, frozen=True):
    """A format, which is a Format of base.py itself. module: the module, relative to this one, whose function `writer`
    writes it. words: its content, for the help and for docs/outputs.md. printed: True if a command that makes a run can
    print the run in this format on stdout, also several runs one after the other.
    """

    module: str
    words: str
    printed: bool = False
    writer: str = "write"

    def __call__(self, summary: Summary, lines: RunLines, options: FormatOptions | None = None) -> Iterator[str]:
        write: Format = getattr(import_module(self.module, __name__), self.writer)
        return write(summary, lines, options)


FORMATS: Final[Mapping[str, NamedFormat]] = {
    "table": NamedFormat("..run_text", "text for a terminal, as `auditor audit` prints it", printed=True),
    "json": NamedFormat(".json", "the summary, as in summary.json", printed=True),
    "markdown": NamedFormat(".markdown", "a comment for a pull request, at most 65,536 characters", printed=True),
    "jsonl": NamedFormat(
        ".json", "one entry per line, for each finding, hole and object that is not private", writer="write_lines"
    ),
    "csv": NamedFormat(".csv", "the entries of jsonl, one per row"),
    "ocsf": NamedFormat(".ocsf", "Compliance Findings of OCSF 1.5.0 (class 2003), one per line"),
    "asff": NamedFormat(".asff", "findings for AWS Security Hub, one per group, as one JSON array"),
}
"""Each format by its name."""

PRINTED: Final = tuple(name for name, one in FORMATS.items() if one.printed)
"""The formats in which a command that makes a run can print the run."""
