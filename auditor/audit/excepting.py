"""Apply the exceptions of auditor.toml in a run, and count what they cover."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.config.settings import Settings
from auditor.model.exception import Excepted
from auditor.model.finding import Finding, Judgement
from auditor.rules.exceptions import NOTHING, Exceptions
from auditor.runs.tally import Tally


class RunExceptions:
    """The exceptions for one run, which counts them in a tally.

    began: the time at which the run began, in ISO 8601 in UTC: an exception holds until the end of its last day.
    """

    def __init__(self, settings: Settings, bucket: str, began: str, tally: Tally) -> None:
        self._exceptions = Exceptions(settings.exceptions, bucket, began[:10])
        self._tally = tally

    def object(self, judgement: Judgement, failure: str = "") -> Excepted:
        """Return the names of the exceptions that cover an object, and count them. The tally must have counted the
        object.

        failure: the code if the run could not hash the object, which is counted here. That is accepted apart from the
        object's other holes.
        """
        excepted = self._exceptions.of_object(judgement)
        if failure:
            accepting = self._exceptions.of_failure(judgement.evidence.ref.key, failure)
            self._tally.fail(failure, accepted=accepting.hole is not None)
            self._tally.except_findings(accepting, ())
        if excepted is not NOTHING:
            self._tally.except_(excepted, judgement)
        return excepted

    def bucket(self, findings: Sequence[Finding]) -> Excepted:
        """Return the names of the exceptions that cover findings on the bucket, and count them."""
        excepted = self._exceptions.of_bucket(findings)
        self._tally.except_findings(excepted, findings)
        return excepted
