"""The run as one page: no script, nothing from elsewhere, every word of the bucket's escaped."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from itertools import count
from typing import Any, Final

from auditor.models import ALL_USERS, AUTHENTICATED_USERS, LOG_DELIVERY, Severity
from auditor.reports.summary import holes
from auditor.text import harmless, visible

FINDINGS: Final = 1_000
UNDECIDED: Final = 200
_RANK: Final = {severity.value: rank for rank, severity in enumerate(Severity)}
_GROUPS: Final = frozenset({ALL_USERS, AUTHENTICATED_USERS, LOG_DELIVERY})
_STYLE: Final = """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:0 auto;padding:1rem}
h1{font-size:1.5rem;line-height:1.25;overflow-wrap:anywhere}h2{font-size:1.15rem;margin:2rem 0 .5rem}
p.state{padding:.6rem .8rem;border-left:.4rem solid #2a7a3b}p.hole{border-color:#c22}
.scroll{overflow-x:auto}table{border-collapse:collapse;min-width:min(100%,20rem)}
th,td{text-align:left;vertical-align:top;padding:.25rem .8rem .25rem 0;border-bottom:1px solid #8886}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
code{font:.875em/1.4 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate}
code{background:#8882}
.critical,.high{font-weight:700;color:#c22}.medium{color:#b60}
.bar{display:flex;height:.8rem;margin:.5rem 0}.bar span{min-width:1px}
.audited{background:#2a7a3b}.undecided{background:#c22}.vanished{background:#888}
@media(max-width:40rem){.wide thead{display:none}.wide tr{display:block;padding:.4rem 0;border-bottom:1px solid #8886}
.wide td{display:block;border:0;padding:0}}
@media print{body{max-width:none;font-size:10pt}tr{break-inside:avoid}.scroll{overflow:visible}}
"""


class WorstFindings:
    """Keeps the `limit` worst finding lines of any number, by severity, then key; memory stays that of the limit."""

    def __init__(self, limit: int = FINDINGS) -> None:
        self._limit = limit
        self._kept: list[tuple[tuple[int, str, int], dict[str, Any]]] = []
        self._serial = count()
        self._seen = 0

    def add(self, line: dict[str, Any]) -> None:
        self._seen += 1
        # The serial number keeps the order of arrival, and two dicts from being compared.
        order = (_RANK[line["severity"]], line["key"] or "", next(self._serial))
        if len(self._kept) >= self._limit:
            if not self._kept or order >= self._kept[-1][0]:
                return
            self._kept.pop()
        bisect.insort(self._kept, (order, line))

    def lines(self) -> list[dict[str, Any]]:
        """Worst first."""
        return [line for _, line in self._kept]

    @property
    def more(self) -> int:
        """How many were seen and not kept."""
        return self._seen - len(self._kept)


def render(
    summary: Mapping[str, Any],
    findings: Iterable[Mapping[str, Any]] = (),
    more: int = 0,
    undecided: Iterable[Mapping[str, Any]] = (),
) -> str:
    """The whole page.

    findings: finding lines, worst first, as many as shall be shown; more: how many there are besides. undecided:
    undecided lines, as many as shall be shown; the summary knows how many there are.
    """
    pieces = (
        _opening(summary),
        _coverage(summary["coverage"]),
        _numbers("Verdicts", summary["verdicts"]),
        _findings(summary, findings, more),
        _undecided(summary, undecided),
        _rules_undecided(summary["rules_undecided"]),
        _hashing(summary["hashing"]),
        _numbers("Calls", summary["calls"]),
        _not_looked_at(summary["not_looked_at"]),
        ["</body></html>\n"],
    )
    return "\n".join(line for piece in pieces for line in piece)


def _text(value: object) -> str:
    """Anything as text of the page; None as a dash."""
    return "–" if value is None else escape(visible(str(value)), quote=True)


def _code(value: object) -> str:
    """A key or another word of the bucket's; `dir` keeps it from turning the text around it."""
    return "–" if value is None else f'<code dir="ltr">{_text(value)}</code>'


def _opening(summary: Mapping[str, Any]) -> Iterator[str]:
    target = summary["target"]
    place = f"s3://{target['bucket']}/{target['prefix'] or ''}"
    yield '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
    yield "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>Audit of {_text(place)}</title><style>{_STYLE}</style></head><body>"
    yield f"<h1>Audit of {_code(place)}{', all versions' if target['versions'] else ''}</h1>"
    found = sum(summary["findings"].values())
    state = "Complete." if summary["complete"] else "Not complete."
    missed = holes(summary)
    hole = f"Holes: {_text('; '.join(missed))}." if missed else "No holes."
    yield f'<p class="state{" hole" if missed else ""}"><strong>{state} {hole}</strong>'
    yield f"{summary['coverage']['listed']:,} objects listed, {found:,} findings.</p>"
    yield f"<p>Run {_code(summary['run'])}, engine {_text(summary['engine'])}, {_text(summary['seconds'])} s.</p>"
    for words, key in (("after", target["start_after"]), ("up to", target["stop_at"])):
        if key is not None:
            yield f"<p>Only keys {words} {_code(key)}.</p>"


def _coverage(coverage: Mapping[str, int]) -> Iterator[str]:
    yield from _numbers("Coverage", coverage)
    if coverage["listed"]:
        yield '<div class="bar" role="presentation">'
        for name in ("audited", "undecided", "vanished"):
            if coverage[name]:
                yield f'<span class="{name}" style="flex:{coverage[name]}"></span>'
        yield "</div>"


def _numbers(title: str, counts: Mapping[str, int]) -> Iterator[str]:
    rows = ((_text(name.replace("_", " ")), f"{number:,}") for name, number in counts.items())
    yield f"<h2>{_text(title)}</h2>"
    yield from _table(("", ""), rows, numbers=1)


def _findings(summary: Mapping[str, Any], findings: Iterable[Mapping[str, Any]], more: int) -> Iterator[str]:
    yield from _numbers("Findings", summary["findings"])
    rows = [
        (
            f'<span class="{_text(line["severity"])}">{_text(line["severity"])}</span>',
            _text(line["rule"]),
            "the bucket" if line["key"] is None else _code(line["key"]) + _version(line),
            _text(line["message"]),
            _grantee(line["grantee"]),
            _text(line["permission"]),
        )
        for line in findings
    ]
    if rows:
        head = ("Severity", "Rule", "Key", "What", "Grantee", "Permission")
        yield from _table(head, rows)
    if more:
        yield f"<p>And {more:,} more in the run folder, below <code>findings/</code>.</p>"


def _grantee(grantee: str | None) -> str:
    """S3's own groups by the last word of their URI, which is the one that counts; the run folder has it whole."""
    known = grantee in _GROUPS
    return _code(grantee.rpartition("/")[2] if known and grantee else grantee)


def _version(line: Mapping[str, Any]) -> str:
    return "" if line["version_id"] is None else f" version {_code(line['version_id'])}"


def _undecided(summary: Mapping[str, Any], undecided: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    total = summary["coverage"]["undecided"]
    if not total:
        return
    yield "<h2>Undecided objects</h2>"
    reasons = ((_text(r["action"]), _text(r["code"]), f"{r['count']:,}") for r in summary.get("unread", ()))
    yield from _table(("Could not be read", "Code", "Objects"), reasons, numbers=1)
    rows = [
        (
            _code(line["key"]) + _version(line),
            "; ".join(f"{_text(fact['action'])} {_text(fact['code'])}" for fact in line["unread"]),
            _text(", ".join(line["rules"])),
        )
        for line in undecided
    ]
    if rows:
        yield from _table(("Key", "Unread", "Rules without an answer"), rows)
    if total > len(rows):
        yield f"<p>And {total - len(rows):,} more in the run folder, below <code>undecided/</code>.</p>"


def _rules_undecided(rules: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    rows = [(_text(item["rule"]), _text(item["action"]), _text(item["code"])) for item in rules]
    if rows:
        yield "<h2>Undecided rules</h2>"
        yield from _table(("Rule", "Could not be read", "Code"), rows)


def _hashing(hashing: Mapping[str, Any] | None) -> Iterator[str]:
    if hashing is None:
        return
    counts = {name: number for name, number in hashing.items() if name != "algorithms"}
    yield from _numbers(f"Hashing ({', '.join(hashing['algorithms'])})", counts)


def _not_looked_at(words: Iterable[str]) -> Iterator[str]:
    yield "<h2>Not looked at</h2><p>“Private” does not speak of:</p><ul>"
    for item in words:
        yield f"<li>{escape(harmless(item), quote=True)}</li>"
    yield "</ul>"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]], numbers: int = 0) -> Iterator[str]:
    """head: "" for none. rows: cells of HTML. numbers: how many of the last columns are numbers."""
    wide = "" if numbers else ' class="wide"'
    first = len(head) - numbers
    styles = [' class="n"' if column >= first else "" for column in range(len(head))]
    yield f'<div class="scroll"><table{wide}>'
    if any(head):
        cells = "".join(f'<th scope="col"{style}>{_text(word)}</th>' for word, style in zip(head, styles, strict=True))
        yield f"<thead><tr>{cells}</tr></thead>"
    yield "<tbody>"
    for row in rows:
        cells = "".join(f"<td{style}>{cell}</td>" for cell, style in zip(row, styles, strict=True))
        yield f"<tr>{cells}</tr>"
    yield "</tbody></table></div>"
