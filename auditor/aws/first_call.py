"""Let a client that several threads use make its first call alone.

urllib3 reads the trusted certificates into the client's one TLS context for each connection that it opens. When two
threads do so first at the same moment, they damage OpenSSL's list of certificate stores, and the process dies when the
context is freed. This is rare, but less so on a small Lambda function, where a thread can lose its CPU at any point.
Once the certificates were read, reading them again adds nothing to that list.
OpenSSL: X509_STORE_add_lookup (crypto/x509/x509_lu.c, 3.0) takes no lock.
"""

from __future__ import annotations

from threading import Lock, get_ident
from typing import Any, Final

LONGEST: Final = 5.0
"""Seconds that other threads wait: connecting takes no longer, and the certificates are read right after it."""


class FirstCallGate:
    """Handlers for botocore's events `before-send` and `response-received`, in the thread of the call."""

    def __init__(self, longest: float = LONGEST) -> None:
        self._longest = longest
        self._lock = Lock()
        self._caller: int | None = None
        self._answered = False

    def before(self, **_: Any) -> None:
        """Wait until another thread's first call has ended."""
        if not self._answered and self._lock.acquire(timeout=self._longest):
            self._caller = get_ident()
            if self._is_answered():  # while this thread waited
                self._caller = None
                self._lock.release()

    def _is_answered(self) -> bool:
        return self._answered

    def after(self, exception: Exception | None = None, **_: Any) -> None:
        """Let other calls start. exception: no answer came, so the next call is alone too."""
        if self._caller == get_ident():
            self._caller = None
            self._answered = exception is None
            self._lock.release()


def first_call_alone(client: Any) -> Any:
    """Register a gate with the boto3 client, and return the client."""
    first = FirstCallGate()
    client.meta.events.register("before-send", first.before)
    client.meta.events.register("response-received", first.after)
    return client
