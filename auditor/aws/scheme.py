"""Warn of a session token that leaves this machine without TLS."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any
from urllib.parse import urlsplit

log = logging.getLogger(__name__)


def leaves_in_the_open(url: str) -> bool:
    """True if requests to the URL leave this machine without TLS."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return parts.scheme == "http" and host not in ("localhost", "::1") and not host.startswith("127.")


@cache
def warn_of_token(server: str) -> None:
    """Warn that requests with a session token go to the server. server: its scheme, host and port. A second call for
    the same server does nothing.
    """
    log.warning("a session token is sent to %s without encryption, where others may read it: use https", server)


def with_warning(client: Any) -> Any:
    """Let an SDK client call warn_of_token() before it sends a token in the open. Return the client."""
    client.meta.events.register("before-send", _sent)
    return client


def _sent(request: Any, **_: Any) -> None:
    if "X-Amz-Security-Token" in request.headers and leaves_in_the_open(request.url):
        parts = urlsplit(request.url)
        warn_of_token(f"{parts.scheme}://{parts.netloc}")
