"""The history of a finding or of an object's verdict: since when it holds, if it is new, and the exception for it."""

from __future__ import annotations

from auditor.model.finding import Judgement
from auditor.model.record import record


@record()
class Standing:
    """The words of the last complete run, and of the configuration, on one finding or on the verdict of one object."""

    since: str | None
    """The start of the first run in the unbroken row of complete runs that have it, in ISO 8601 in UTC, to the second.
    It is the start of this run if the last run does not have it.
    """
    new: bool | None
    """True: the last complete run of the target looked, and did not have it. False: that run had it. None: there is no
    such run to compare with, or it could not tell.
    """
    exception: str | None = None
    """ID of the exception that covers it; None if there is none."""


@record()
class Recorded:
    """The results of judging one object, and their history. standing: of the verdict; None if the object is private or
    was deleted after it was listed. findings: the history of each finding of the judgement, in the same order.
    """

    judgement: Judgement
    standing: Standing | None = None
    findings: tuple[Standing, ...] = ()
