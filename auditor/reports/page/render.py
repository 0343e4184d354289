"""Print the content of a page as HTML by the templates beside this file. All text is escaped, by the templates' engine.

The page loads nothing, and its policy (CSP) lets no other script or style run than the ones of this package. Import
this module when a page is made, not before: the templates' engine is slow to import.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files
from threading import Lock
from typing import Final

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from auditor.model.version import VERSION
from auditor.reports import groups, phrases
from auditor.reports.page.data import PageData, VerifyPage
from auditor.reports.page.index import IndexPage
from auditor.text import harmless, visible

_CODE: Final = re.compile(r"(`[^`]+`|\bs3:[A-Za-z]+|\b(?:[A-Z][a-z0-9]+){2,})")
_LONGEST: Final = 256
_BEGIN: Final = 200
_END: Final = 40
_ONE_AT_A_TIME: Final = Lock()
"""Threads that ask for a template at the same time would each compile it, which takes longer than a page."""
_TEMPLATES: Final = files("auditor.reports.page") / "templates"


def render(template: str, page: PageData | VerifyPage | IndexPage) -> str:
    """Return the page as HTML. template: audit.html, verify.html or index.html."""
    style, script = _asset("style.css"), _asset("script.js")
    with _ONE_AT_A_TIME:
        return (
            _environment()
            .get_template(template)
            .render(
                page=page,
                style=Markup(style),  # noqa: S704 - our own file
                script=Markup(script),  # noqa: S704 - our own file
                policy=_policy(style, script),
            )
        )


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FunctionLoader(_asset),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_harmless,
        auto_reload=False,
    )
    made.filters.update(key=visible, n="{:,}".format, brief=_brief, prose=_prose, day=phrases.short_date)
    made.globals.update(groups=groups, phrases=phrases, version=VERSION)
    return made


def _harmless(value: object) -> object:
    """Return text without characters that are not printable; another value, or finished markup, as it is."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return harmless(value)
    return value


def _prose(text: str) -> Markup:
    """Return a sentence with its names of commands, calls and settings as code: those in backticks, s3:GetObject,
    BlockPublicAcls.
    """
    parts = _CODE.split(text)
    marked = (Markup("<code>{}</code>").format(harmless(one.strip("`"))) for one in parts[1::2])
    plain = [escape(harmless(one)) for one in parts[::2]]
    return Markup("").join(one for pair in zip(plain, (*marked, ""), strict=True) for one in pair)


def _brief(text: str) -> str:
    """Return a long key by its beginning and its end; the run folder has it whole."""
    return text if len(text) <= _LONGEST else f"{text[:_BEGIN]}…{text[-_END:]}"


def _asset(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)};"
        " base-uri 'none'; form-action 'none'"
    )


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
