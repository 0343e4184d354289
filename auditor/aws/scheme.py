"""The scheme of an endpoint: http without TLS, which shows a session token, and the scheme that a server speaks."""

from __future__ import annotations

import logging
import socket
import ssl
from contextlib import suppress
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

log = logging.getLogger(__name__)

_SECONDS: Final = 2.0
_QUESTION: Final = b"HEAD / HTTP/1.0\r\n\r\n"


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
    log.warning("a session token goes to %s without encryption, and others may read it: use https", server)


def with_warning(client: Any) -> Any:
    """Let an SDK client call warn_of_token() before it sends a token in the open. Return the client."""
    client.meta.events.register("before-send", _sent)
    return client


def _sent(request: Any, **_: Any) -> None:
    if "X-Amz-Security-Token" in request.headers and leaves_in_the_open(request.url):
        parts = urlsplit(request.url)
        warn_of_token(f"{parts.scheme}://{parts.netloc}")


def other_scheme(url: str) -> str | None:
    """Return "http" for an https URL whose server speaks plain HTTP, "https" for an http URL whose server speaks TLS;
    None otherwise. Blocks for some seconds at most. No request with credentials is sent.
    """
    parts = urlsplit(url)
    with suppress(OSError, ValueError):  # ssl.SSLError is an OSError
        secure = parts.scheme == "https"
        address = (parts.hostname or "", parts.port or (443 if secure else 80))
        with socket.create_connection(address, _SECONDS) as connection:
            if secure:
                connection.sendall(_QUESTION)
                return "http" if connection.recv(5) == b"HTTP/" else None
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            # Only the handshake counts: nothing is sent.
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            with context.wrap_socket(connection, server_hostname=parts.hostname):
                return "https"
    return None
