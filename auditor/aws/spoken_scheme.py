"""Find out the scheme that the server of an endpoint speaks, for the message on one that gives no answer."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

_SECONDS: Final = 2.0
_QUESTION: Final = b"HEAD / HTTP/1.0\r\n\r\n"


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
