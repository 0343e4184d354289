"""Let the first call of an SDK client end before other threads make calls: this avoids a crash in OpenSSL.

For each new connection urllib3 loads the trusted certificates into the client's only TLS context. If two threads load
them for the first time at the same moment, they damage OpenSSL's list of certificate stores, and the process crashes
when the context is freed. The crash is rare, but more frequent on a small Lambda function, where a thread can lose its
CPU at any point. Later loads are safe: they add nothing to that list. The reason is that OpenSSL's
X509_STORE_add_lookup (crypto/x509/x509_lu.c, 3.0) takes no lock.

A first call that gets no connection, or no answer, is given up soon, because the address is probably wrong.
"""

from __future__ import annotations

from threading import Lock, get_ident
from typing import Any, Final

from botocore.exceptions import ConnectionError as NoConnection
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError

LONGEST: Final = 5.0
"""Limit in seconds for the wait of other threads. Connecting takes no longer, and the certificates are loaded next."""

ATTEMPTS: Final = 3
"""Attempts of a client's first call if no connection is made: the SDK's pauses before them sum to at most 3 s."""

_GIVE_UP: Final = "auditor-first-call"


class FirstCallGate:
    """Makes other threads wait until a client's first call has ended.

    Its methods are handlers of botocore's events before-send, response-received and needs-retry. botocore calls them in
    the thread of the call.
    """

    def __init__(self, longest: float = LONGEST) -> None:
        self._longest = longest
        self._lock = Lock()
        self._caller: int | None = None
        self._answered = False

    def before(self, **_: Any) -> None:
        """Before a call: wait while another thread makes the client's first call.

        Once a call was answered, no call waits.
        """
        if not self._answered and self._lock.acquire(timeout=self._longest):
            self._caller = get_ident()
            if self._is_answered():  # another call ended while this thread waited
                self._caller = None
                self._lock.release()

    def _is_answered(self) -> bool:
        return self._answered

    def after(self, exception: Exception | None = None, **_: Any) -> None:
        """After a call: let the waiting threads go on.

        exception: set if the call got no answer. Then one of the waiting calls is treated as the first.
        """
        if self._caller == get_ident():
            self._caller = None
            self._answered = exception is None
            self._lock.release()

    def give_up(self, attempts: int, caught_exception: Exception | None = None, **_: Any) -> None:
        """End the retries of a client's first call by raising its exception, if it gets no connection or no answer.

        This comes after ATTEMPTS attempts, or after one that timed out.
        """
        most = 1 if isinstance(caught_exception, (ConnectTimeoutError, ReadTimeoutError)) else ATTEMPTS
        if not self._answered and attempts >= most and isinstance(caught_exception, (NoConnection, ReadTimeoutError)):
            raise caught_exception


def full_patience(client: Any) -> None:
    """Let the client's later calls use all their attempts. Call this once a call was answered that the client's
    FirstCallGate did not see.
    """
    client.meta.events.unregister("needs-retry", unique_id=_GIVE_UP)


def first_call_alone(client: Any) -> Any:
    """Register a FirstCallGate with a boto3 client, and return the client."""
    first = FirstCallGate()
    client.meta.events.register("before-send", first.before)
    client.meta.events.register("response-received", first.after)
    client.meta.events.register("needs-retry", first.give_up, unique_id=_GIVE_UP)
    return client
