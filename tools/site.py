"""Hooks of mkdocs: links to files outside docs/, and lists that the site would show as text."""

from __future__ import annotations

import re
from typing import Any, Final

_FENCED: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_OUTSIDE: Final = re.compile(r"\[([^\]]+)\]\((?:\.\./)+([^)\s]+)\)")
_GLUED_LIST: Final = re.compile(r"^(?!- |\d+\. |\s|#|\|)(.+)\n(?:- |1\. )", re.MULTILINE)


def on_page_markdown(markdown: str, /, *, page: Any, config: Any, **_: object) -> str:
    """Return the page's text. Without the repository's address, which PROJECT_URL gives, a file keeps its name alone.

    Ends the build for a list without an empty line above it: GitHub shows a list there, mkdocs a paragraph.
    """
    glued = _GLUED_LIST.search(_FENCED.sub("", markdown))
    if glued:
        raise SystemExit(f"{page.file.src_path}: put an empty line between {glued[1]!r} and the list below it")
    home = str(config.repo_url or "").rstrip("/")
    return _OUTSIDE.sub(
        lambda link: f"[{link[1]}]({home}/blob/HEAD/{link[2]})" if home else f"{link[1]} (`{link[2]}`)", markdown
    )
