"""Apply the exceptions of auditor.toml in a run: count what they cover, and name them on its lines."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from auditor.config.settings import Settings
from auditor.model.exception import Excepted, ExceptionUse
from auditor.model.finding import Finding, RuleUndecided
from auditor.model.run_lines import Recorded, Standing
from auditor.rules.exceptions import NOTHING, Exceptions
from auditor.runs.tally import Tally


class RunExceptions:
    """The exceptions for one run, which counts them in a tally.

    began: the time at which the run began, in ISO 8601 in UTC: an exception holds until the end of its last day.
    """

    def __init__(self, settings: Settings, bucket: str, began: str, tally: Tally) -> None:
        self._exceptions = Exceptions(settings.exceptions, bucket, began[:10])
        self._tally = tally

    def object(self, recorded: Recorded, failure: str = "") -> Recorded:
        """Count the exceptions that cover an object. The tally must have counted the object. Return its record with the
        names of the exceptions.

        failure: the code if the run could not hash the object, which is counted here. That is accepted apart from the
        object's other holes.
        """
        excepted = self._exceptions.of_object(recorded.judgement)
        if failure:
            accepting = self._exceptions.of_failure(recorded.judgement.evidence.ref.key, failure)
            self._tally.fail(failure, accepted=accepting.hole is not None)
            self._tally.except_findings(accepting, ())
        if excepted is NOTHING:
            return recorded
        self._tally.except_(excepted, recorded.judgement)
        standing = recorded.standing
        if standing is not None and excepted.verdict is not None:
            standing = replace(standing, exception=excepted.verdict)
        return Recorded(recorded.judgement, standing, _named(recorded.findings, excepted))

    def bucket(self, findings: Sequence[Finding], standings: tuple[Standing, ...]) -> tuple[Standing, ...]:
        """Count the exceptions that cover findings on the bucket. Return the findings' history with the names of the
        exceptions.
        """
        excepted = self._exceptions.of_bucket(findings)
        self._tally.except_findings(excepted, findings)
        return _named(standings, excepted)

    def summed(self, undecided: Sequence[RuleUndecided]) -> tuple[int, tuple[ExceptionUse, ...]]:
        """Return the number of these undecided rules that are accepted, and all exceptions with their states."""
        rules = self._exceptions.of_rules(undecided)
        used, tally = [*rules.used, *rules.expired], self._tally
        return len(rules.used), self._exceptions.states(
            lambda name: tally.exceptions.get(name, 0) + used.count(name),
            lambda name: tally.shadowed.get(name, 0) + rules.shadowed.count(name),
        )


def _named(standings: tuple[Standing, ...], excepted: Excepted) -> tuple[Standing, ...]:
    return tuple(
        [
            standing if name is None else replace(standing, exception=name)
            for standing, name in zip(standings, excepted.findings, strict=True)
        ]
        if excepted.findings
        else standings
    )
