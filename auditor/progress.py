"""A snapshot of long work: the objects done, the rate and the time to go."""

from __future__ import annotations

from dataclasses import dataclass

from auditor.text import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Long work at one moment. what: what is worked on, safe to print. objects: how many are done. detail: more counts.

    expected: how many there were the last time, None where nobody knows. done: this is the end.
    """

    what: str
    objects: int
    seconds: float
    detail: str = ""
    expected: int | None = None
    done: bool = False

    @property
    def rate(self) -> float:
        """Objects a second since the start."""
        return self.objects / self.seconds if self.seconds > 0 else 0.0

    @property
    def eta(self) -> float | None:
        """Seconds to go, as far as the last time can tell."""
        if not self.expected or not self.rate or self.objects >= self.expected:
            return None
        return (self.expected - self.objects) / self.rate

    @property
    def words(self) -> str:
        """One line: counts only, never a key."""
        parts = [counted(self.objects, "object"), f"{self.rate:,.0f}/s"]
        if self.eta is not None:
            parts.append(f"about {clock(self.eta)} to go")
        return ", ".join([*parts, self.detail] if self.detail else parts)


def clock(seconds: float) -> str:
    """Hours, minutes and seconds as 1:02:03."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
