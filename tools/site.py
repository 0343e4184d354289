"""Hooks of mkdocs: links to files outside docs/, and lists that the site would show as text."""

from __future__ import annotations

import posixpath
import re
from typing import Any, Final

_FENCED: Final = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_UPWARD: Final = re.compile(r"\[([^\]]+)\]\((\.\./[^)\s]+)\)")
_GLUED_LIST: Final = re.compile(r"^(?!- |\* |\d+\. |\s|#|\|)(.+)\n(?:- |\* |\d+\. )", re.MULTILINE)


def on_page_markdown(markdown: str, /, *, page: Any, config: Any, **_: object) -> str:
    """Return the page's text. Without the repository's address, which PROJECT_URL gives, a file keeps its name alone.

    Ends the build for a list without an empty line above it: GitHub shows a list there, mkdocs a paragraph.
    """
    place, home = str(page.file.src_path), str(config.repo_url or "").rstrip("/")
    glued = _GLUED_LIST.search(_FENCED.sub("", markdown))
    if glued:
        raise SystemExit(f"{place}: put an empty line between {glued[1]!r} and the list below it")

    def link(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", posixpath.dirname(place), found[2]))
        if target.startswith("docs/"):
            return found[0]
        return f"[{found[1]}]({home}/blob/HEAD/{target})" if home else f"{found[1]} (`{target}`)"

    parts = _FENCED.split(markdown)
    return "".join(part if part.startswith("```") else _UPWARD.sub(link, part) for part in parts)
