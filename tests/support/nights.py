"""Audits of one bucket night after night, by a clock that the test moves."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tests.support.audit_runs import Line, Result, audit
from tests.support.servers.stub import StubServer

DAY: Final = 86_400.0
_FIRST: Final = datetime(2027, 3, 1, 2, 0, tzinfo=UTC).timestamp()
_TIMES: Final = ("since", "read_at")


class Nights:
    """The nights of one bucket. now: the present time, in seconds since 1970. settings: those of every night."""

    def __init__(self, stub: StubServer, out: Path, **settings: Any) -> None:
        self.now = _FIRST
        self._stub = stub
        self._out = out
        self._settings = settings

    async def night(self, *, days: float = 1.0, **settings: Any) -> Result:
        """Audit, and let so many days pass after it. The stub's log has only the calls of this night then."""
        self._stub.forget()
        result = await audit(self._stub, self._out, clock=lambda: self.now, **{**self._settings, **settings})
        self.now += days * DAY
        return result

    async def live(self, out: Path, **settings: Any) -> Result:
        """Audit at this time into another folder, without anything that is kept."""
        return await audit(self._stub, out, clock=lambda: self.now, **{**self._settings, **settings, "keep": None})


def asked(stub: StubServer) -> tuple[int, int]:
    """Return the number of calls for ACLs and for HEADs."""
    return stub.count("GetObjectAcl"), stub.count("HeadObject")


def keys_asked(stub: StubServer, operation: str) -> set[str]:
    return {call.key for call in stub.calls if call.operation == operation}


def timeless(lines: list[Line]) -> list[Line]:
    """Return the lines without the times that differ from run to run."""
    return [{name: value for name, value in line.items() if name not in _TIMES} for line in lines]
