"""The history of a finding or of an object's verdict: since when it holds, whether it is new, and the exception of the
configuration that covers it. Also the results of an object in the form in which two runs compare them.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from auditor.model.access import Reason, ReasonCode, Verdict
from auditor.model.finding import Judgement
from auditor.model.object import Outcome
from auditor.model.run_lines import FindingLine

WIDTH: Final = {verdict: width for width, verdict in enumerate(reversed(Verdict))}
"""The width of each verdict: a number that is larger, the more requesters the verdict lets in."""
_UNREAD: Final = tuple(
    f"{code}" for code in ReasonCode if code.value.endswith("-unread") or code is ReasonCode.OWNER_UNKNOWN
)
"""The codes of the reasons that stand for a fact that was not read."""


class Standing(Struct, frozen=True):
    """The history of one finding, or of one object's verdict: its age and newness from the last complete run, and the
    exception that covers it from the configuration.
    """

    since: str | None
    """The start of the first of an unbroken row of complete runs that have the finding or verdict, in ISO 8601 in UTC,
    to the second. It is the start of this run if the last run does not have the finding or verdict."""
    new: bool | None
    """True: the last complete run of the target looked for the finding or verdict, and did not have it. False: that run
    had it. None: there is no such run to compare with, or that run could not tell."""
    exception: str | None = None
    """ID of the exception that covers the finding or verdict; None if there is none."""


class Recorded(Struct, frozen=True):
    """The results of judging one object, and their history. standing: of the verdict; None if the object is private or
    was deleted after it was listed. findings: the history of each finding of the judgement, in the same order.
    """

    judgement: Judgement
    standing: Standing | None = None
    findings: tuple[Standing, ...] = ()


class Seen(Struct, frozen=True):
    """The results of one object, as the line of a run's object has them: the part that two runs can compare."""

    outcome: Outcome
    verdict: Verdict | None
    """None if the object was deleted after it was listed."""
    rules: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    since: str | None = None
    exception: str | None = None

    @property
    def there(self) -> bool:
        """True unless the object was deleted after it was listed."""
        return self.verdict is not None and self.outcome is not Outcome.VANISHED

    @property
    def open(self) -> bool:
        """True if the object is there, and is not private."""
        return self.there and self.verdict is not Verdict.PRIVATE

    @property
    def told(self) -> bool:
        """True if the run could decide on the verdict: no deciding fact was unread."""
        if self.verdict is not Verdict.UNKNOWN:
            return True
        return self.outcome is not Outcome.UNDECIDED and not any(text.startswith(_UNREAD) for text in self.reasons)

    @property
    def plain(self) -> bool:
        """True if the object is unremarkable: it was read or is gone, is not open, and has no finding."""
        return not (self.open or self.rules or self.outcome is Outcome.UNDECIDED)


class PastObject(Struct, frozen=True):
    """One object version of a run: its results and findings."""

    key: str
    version_id: str | None
    seen: Seen
    findings: tuple[FindingLine, ...] = ()


def seen_of(recorded: Recorded) -> Seen:
    """Return the results of a judged object, as its line will have them."""
    judgement, standing = recorded.judgement, recorded.standing
    access = None if judgement.evidence.vanished else judgement.access
    return Seen(
        judgement.evidence.outcome,
        access.verdict if access else None,
        tuple(finding.rule for finding in judgement.findings),
        tuple(map(_text, access.reasons)) if access else (),
        standing.since if standing else None,
        standing.exception if standing else None,
    )


def _text(reason: Reason) -> str:
    return reason.text
