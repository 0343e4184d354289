"""A run with every key that may be taken for something else: markup, formula, escape, path, line end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.model.access import Verdict
from auditor.model.finding import Finding, Judgement, RuleUndecided, Severity
from auditor.model.line_records import ObjectRecord, encode_object, finding_line, object_line, read_line, undecided_line
from auditor.model.object import ALL_USERS, Skipped, Unread
from auditor.model.rollup import RollUps
from auditor.model.run_lines import FindingLine, ObjectLine, UndecidedLine
from auditor.model.summary import Summary
from tests.support.odd_keys import ODD_KEYS
from tests.support.samples.reports import denied, gone, judged, rollups_of, sample_summary, tally_of

HOSTILE = [
    *ODD_KEYS.values(),
    "=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "\r=1", "＝1", "%0", "|x", "'=1",
    "<script>alert(1)</script>", "[x](javascript:alert(1))", "![x](http://evil)", "@everyone", "a|b|c", "`x`", "#1",
    "https://evil.example/", "www.evil.example", "**b**", "__b__", "~~x~~", "\u202eabc", "a\nb", "a\u2028b", "\x00",
    "&lt;", "1e5", '"', "x" * 1024, "\x1b]0;title\x07", "\x1b[2J", "</textarea>", "{{ 7 * 7 }}", "$(reboot)",
]  # fmt: skip


class HostileRun:
    """The lines of judgements, as a reader of their run folder would give them."""

    def __init__(self, judgements: Sequence[Judgement]) -> None:
        self._judgements = judgements

    def objects(self) -> Iterator[ObjectLine]:
        return (read_line(ObjectLine, encode_object(one, None)) for one in self._judgements)

    def object_records(self) -> Iterator[ObjectRecord]:
        """The lines of the objects, in the form in which a run folder has them."""
        return (object_line(judgement, None) for judgement in self._judgements)

    def findings(self) -> Iterator[FindingLine]:
        for judgement in self._judgements:
            for found in judgement.findings:
                yield finding_line(found, judgement.verdict)

    def undecided(self) -> Iterator[UndecidedLine]:
        for judgement in self._judgements:
            if line := undecided_line(judgement):
                yield line

    def rollups(self) -> RollUps:
        return rollups_of(*self._judgements)


def refused(key: str, code: str = "<b>=1|x\n") -> Judgement:
    return judged(key, verdict=Verdict.UNKNOWN, acl=Unread("GetObjectAcl", code), head=Skipped("not needed"))


def hostile_run() -> tuple[Summary, HostileRun]:
    judgements = [denied("denied"), gone("gone")]
    for number, key in enumerate(HOSTILE):
        severity = list(Severity)[number % 5]
        found = Finding(f"{number:032x}", "O02", severity, key, None, ALL_USERS, "READ", f"message {key}")
        judgements.append(judged(key, found, verdict=Verdict.EXPOSED))
        if number % 3 == 0:
            judgements.append(refused(f"{key}/refused"))
    rule = RuleUndecided("B01", "GetBucketPolicy", "=<b>")
    return sample_summary(tally_of(*judgements), rules_undecided=(rule,)), HostileRun(judgements)
