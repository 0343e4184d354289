"""Make the parts of an HTML page: style sheet, escaped text, tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Final

from auditor.model.object import ALL_USERS, AUTHENTICATED_USERS, LOG_DELIVERY
from auditor.text import visible

_GROUPS: Final = frozenset({ALL_USERS, AUTHENTICATED_USERS, LOG_DELIVERY})
_LONG_ID: Final = 24
STYLE: Final = """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:80rem;margin:0 auto;padding:1rem}
h1{font-size:1.5rem;line-height:1.25;overflow-wrap:anywhere}h2{font-size:1.15rem;margin:2rem 0 .5rem}
p.state{padding:.6rem .8rem;border-left:.4rem solid #2a7a3b}p.bad{border-color:#c22}
.scroll{overflow-x:auto}table{border-collapse:collapse;min-width:min(100%,20rem)}
th,td{text-align:left;vertical-align:top;padding:.25rem .8rem .25rem 0;border-bottom:1px solid #8886}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
td.key{min-width:20rem;overflow-wrap:anywhere}td.what{min-width:12rem}
code{font:.875em/1.4 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate}
code{background:#8882}[title]{text-decoration:underline dotted}
.critical,.high,.exposed{font-weight:700;color:#c22}.medium{color:#b60}.masked{font-style:italic}
[title]{white-space:nowrap}
@media(prefers-color-scheme:dark){.critical,.high,.exposed{color:#f77}.medium{color:#fb5}}
dt{font-weight:700;margin-top:.4rem}dd{margin:0}
.bar{display:flex;height:.8rem;margin:.5rem 0}.bar span{min-width:1px}
.audited{background:#2a7a3b}.undecided{background:#c22}.vanished{background:#888}
@media(max-width:48rem){.wide thead{display:none}.wide tr{display:block;padding:.4rem 0;border-bottom:1px solid #8886}
.wide td,.wide td.key,.wide td.what{display:block;border:0;padding:0;min-width:0}
.wide td::before{content:attr(data-label) ": ";opacity:.7;font-size:.875em}}
@media print{body{max-width:none;font-size:10pt}tr{break-inside:avoid}.scroll{overflow:visible}}
"""


def text(value: object) -> str:
    """Return a value as HTML-escaped text; a dash for None."""
    return "–" if value is None else escape(visible(str(value)), quote=True)


def code(value: object) -> str:
    """Return an object key, or another text from the bucket, as an escaped HTML element. The attribute `dir` keeps
    right-to-left text from reordering the text around it.
    """
    return "–" if value is None else f'<code dir="ltr">{text(value)}</code>'


def named(word: object, title: str | None) -> str:
    """Return a word as HTML, with `title` as its tooltip; without a tooltip if the title is None."""
    return f'<span title="{text(title)}">{text(word)}</span>' if title else text(word)


def grantee(value: str | None) -> str:
    """Return a grantee as HTML: a group by the last word of its URI, a long canonical ID by its first and last
    characters. The tooltip of a shortened grantee has the whole text.
    """
    if value is None:
        return "–"
    if value in _GROUPS:
        short = value.rpartition("/")[2]
    elif len(value) > _LONG_ID and value.isalnum():
        short = f"{value[:8]}…{value[-8:]}"
    else:
        return code(value)
    return f'<code dir="ltr" title="{text(value)}">{text(short)}</code>'


def numbers(title: str, counts: Mapping[str, int], alarming: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield a heading and a table of counts as HTML. alarming: names that are highlighted unless their count is 0."""
    yield f"<h2>{text(title)}</h2>"
    rows = []
    for name, number in counts.items():
        words = text(name.replace("_", " "))
        loud = name in alarming and number
        rows.append(
            (f'<span class="exposed">{words}</span>', f'<span class="exposed">{number:,}</span>')
            if loud
            else (words, f"{number:,}")
        )
    yield from table(("", ""), rows, right=1)


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]], right: int = 0) -> Iterator[str]:
    """Yield an HTML table. head: the headings of its columns; "" for none. rows: the cells, as HTML. right: the number
    of columns with numbers; they are the last ones.

    On a narrow screen, each row of a table without numbers is shown as a block whose cells repeat their headings.
    """
    wide = "" if right else ' class="wide"'
    first = len(head) - right
    styles = [' class="n"' if at >= first else _style(word) for at, word in enumerate(head)]
    yield f'<div class="scroll"><table{wide}>'
    if any(head):
        cells = "".join(f'<th scope="col"{style}>{text(word)}</th>' for word, style in zip(head, styles, strict=True))
        yield f"<thead><tr>{cells}</tr></thead>"
    labels = [f' data-label="{text(word)}"' if word and not right else "" for word in head]
    attributes = [f"{style}{label}" for style, label in zip(styles, labels, strict=True)]
    yield "<tbody>"
    for row in rows:
        cells = "".join(f"<td{extra}>{cell}</td>" for cell, extra in zip(row, attributes, strict=True))
        yield f"<tr>{cells}</tr>"
    yield "</tbody></table></div>"


def _style(word: str) -> str:
    return f' class="{word.lower()}"' if word in {"Key", "What"} else ""
