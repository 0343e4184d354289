"""The interface of a format, and the entries that the formats of lines write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal, Protocol

from msgspec import Struct

from auditor.model.access import Verdict
from auditor.model.finding import FailOn, Severity
from auditor.model.rollup import Group, RollUps, Sample
from auditor.model.run_lines import FindingLine, ObjectLine, UndecidedLine
from auditor.model.summary import Summary
from auditor.model.target import NOTHING_LISTED
from auditor.reports.prefix_counts import PrefixCount
from auditor.reports.summary import completeness, failed_of
from auditor.text import counted

Kind = Literal["run", "rule-undecided", "not-hashed", "finding", "undecided", "verdict"]


class FormatOptions(Struct, frozen=True, kw_only=True):
    """Choices that some formats take."""

    fail_on: Severity | FailOn | None = Severity.HIGH
    """The severity from which findings make the exit code 3, for the table."""
    columns: int = 100
    """Width of the table."""
    colour: bool = False
    """True if the table is for a terminal that shows colours."""
    links: bool = False
    """True if the table is for a terminal that shows hyperlinks."""
    verbose: bool = False
    """True if the table has the facts that serve a developer, too."""
    folder: str | None = None
    """Place of the run folder, for the table: an absolute path, or a URI; None for the place that the summary names."""
    account: str | None = None
    """Number of the account whose Security Hub gets the findings, for asff."""
    region: str | None = None
    """Region of that Security Hub."""


PLAIN: Final = FormatOptions()


class RunLines(Protocol):
    """The interface of a run's lines and roll-ups. RunReader has it."""

    def objects(self) -> Iterable[ObjectLine]: ...
    def findings(self) -> Iterable[FindingLine]: ...
    def undecided(self) -> Iterable[UndecidedLine]: ...
    def rollups(self) -> RollUps: ...


Format = Callable[[Summary, RunLines, FormatOptions | None], Iterator[str]]
"""A format: yields the text of the run, piece by piece. Each piece can be encoded in UTF-8. Its last argument is None
for the defaults.
"""


class ExportEntry(Struct, frozen=True):
    """One row of the formats of lines. kind: the row's subject: the run as a whole, a rule that lacked a fact of the
    bucket, the objects that could not be hashed for one reason, a finding, an object that could not be looked at, or an
    object that is not private. A member that does not belong to the kind is None.
    """

    kind: Kind
    bucket: str
    key: str | None = None
    version_id: str | None = None
    severity: str | None = None
    rule: str | None = None
    verdict: str | None = None
    audience: str | None = None
    grantee: str | None = None
    permission: str | None = None
    since: str | None = None
    exception: str | None = None
    fingerprint: str | None = None
    message: str | None = None


COLUMNS: Final = ExportEntry.__match_args__
"""The names of an entry's members."""
_OF_FINDING: Final = tuple(name for name in COLUMNS if name not in ("kind", "bucket", "audience"))
"""The members that an entry has from the line of a finding."""
_OF_VERDICT: Final = ("key", "version_id", "verdict", "since", "exception")
"""The members that an entry has from the line of an object."""


def entries(summary: Summary, lines: RunLines) -> Iterator[ExportEntry]:
    """Yield the entries of a run: the run itself, always; each undecided rule; the objects that it could not hash, by
    code; each finding; each undecided object; each object whose verdict is not private. Memory does not grow with the
    run.
    """
    bucket = summary.target.bucket
    yield ExportEntry("run", bucket, message=coverage_sentence(summary))
    for rule in summary.rules_undecided:
        yield ExportEntry("rule-undecided", bucket, rule=rule.rule, message=f"{rule.action} {rule.code}")
    for code, number in failed_of(summary).items():
        yield ExportEntry("not-hashed", bucket, message=f"{counted(number, 'object')} not hashed: {code}")
    for line in lines.findings():
        yield ExportEntry("finding", bucket, **{name: getattr(line, name) for name in _OF_FINDING})
    for undecided in lines.undecided():
        facts = ", ".join(f"{fact.action} {fact.code}" for fact in undecided.unread)
        message = f"could not be looked at: {facts}"
        yield ExportEntry("undecided", bucket, undecided.key, undecided.version_id, message=message)
    for found in lines.objects():
        if found.verdict not in (None, Verdict.PRIVATE):
            same = {name: getattr(found, name) for name in _OF_VERDICT}
            audience, reasons = "; ".join(found.audience) or None, "; ".join(found.reasons) or None
            yield ExportEntry("verdict", bucket, audience=audience, message=reasons, **same)


def coverage_sentence(summary: Summary) -> str:
    """Return the sentence that each format has: how far the run looked, how many objects it could not look at, or not
    hash, and that nothing is listed if that is a hole.
    """
    coverage, failed = summary.coverage, failed_of(summary)
    hashless = f"; {counted(sum(failed.values()), 'object')} not hashed" if failed else ""
    empty = f"; {NOTHING_LISTED}, a hole" if summary.nothing_listed else ""
    return (
        f"{completeness(summary)}: {counted(coverage.listed, 'object')} listed = {coverage.audited:,} audited + "
        f"{coverage.vanished:,} vanished + {coverage.undecided:,} that could not be looked at; "
        f"{counted(len(summary.rules_undecided), 'rule')} undecided{hashless}{empty}"
    )


def sums_of(groups: Iterable[Group]) -> list[tuple[tuple[str, str], PrefixCount]]:
    """Return the sums of groups of one kind, in their order: of findings by rule and severity; of undecided objects by
    the API operation and the error code of the fact that each lacks first.
    """
    found: dict[tuple[str, str], PrefixCount] = {}
    for group in groups:
        action, _, code = (group.audience or "").partition(" ")
        name = (action, code) if group.severity is None else (group.rule or "", group.severity)
        count = PrefixCount(group.count, since=group.since, samples=list(group.samples))
        found.setdefault(name, PrefixCount()).merge(count)

    def order(one: tuple[tuple[str, str], PrefixCount]) -> tuple[int, int, tuple[str, str]]:
        (_, word), count = one
        return list(Severity).index(word) if isinstance(word, Severity) else 0, -count.count, one[0]

    return sorted(found.items(), key=order)


def first_keys(samples: Iterable[Sample]) -> list[str]:
    """Return the keys of the samples, as S3 has them; a finding on the bucket has none."""
    return [sample.key for sample in samples if sample.key is not None]


def encodable(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot hold, by their escapes."""
    return text.encode("utf-8", "backslashreplace").decode()
