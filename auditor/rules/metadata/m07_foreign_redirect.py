"""M07: the object redirects visitors of the website to a foreign host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Final
from urllib.parse import urlsplit

from auditor.model.toml_forms import form
from auditor.rules.base import Hit, Severity, rule

HOST: Final = r"(?:\*\.)?[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"
IGNORED: Final = re.compile(r"[\x00-\x20]")
"""Characters that browsers leave out of a URL's beginning, or out of all of it."""


_Host = Annotated[str, form("write host names, such as www.example.com or *.example.com", rf"(?i:{HOST})")]


@rule(
    "M07",
    "redirect-foreign",
    Severity.HIGH,
    reads=("head.website_redirect_location", "config.hosts"),
    options={"hosts": list[_Host]},
)
def check(head_website_redirect_location: str | None, hosts: list[str]) -> Iterator[Hit]:
    """
    Why: whoever may write one object can send visitors of the bucket's website to a site of their own.
    Flagged: a redirect location that leads to a host that hosts in [rules.M07] does not list; `*.example.com` stands
        for all hosts below it, and an empty list for none. `//host`, backslashes and user names before `@` are read as
        browsers read them.
    Not flagged: a redirect to a path of the same website.
    Blind to: whether the bucket is a website at all; redirects in the rules of the website; a host that redirects
        further; object annotations.
    Fix: copy the object over itself without the redirect, or add the host to hosts.
    """
    if not head_website_redirect_location:
        return
    location = IGNORED.sub("", head_website_redirect_location).replace("\\", "/")
    if location.startswith("/") and not location.startswith("//"):
        return
    if not _is_listed(_host(location), hosts):
        yield Hit("it redirects visitors of the website to a foreign host")


def _host(location: str) -> str:
    """Return the host of a URL in lower case; "" if it has none, or is malformed."""
    scheme, slashes, rest = location.partition("/")
    if scheme.lower() not in ("", "http:", "https:"):
        return ""
    try:
        return (urlsplit(f"//{(slashes + rest).lstrip('/')}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_listed(host: str, hosts: list[str]) -> bool:
    known = {name.lower() for name in hosts}
    parents = (f"*.{host.split('.', number)[-1]}" for number in range(1, host.count(".") + 1))
    return bool(host) and (host in known or any(parent in known for parent in parents))
