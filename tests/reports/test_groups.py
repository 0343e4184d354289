"""The words of the groups of a run, which all reports share."""

from __future__ import annotations

from typing import Any

from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.rollup import Group, GroupKind
from auditor.reports import groups
from tests.support.samples.pages import group_of


def finding(rule: str | None, count: int = 3, **changes: Any) -> Group:
    found: dict[str, Any] = {
        "kind": GroupKind.FINDING,
        "severity": Severity.HIGH,
        "audience": "anyone",
        "prefix": "in/",
    }
    return group_of(id="0" * 12, rule=rule, count=count, **found | changes)


def opening(verdict: Verdict, audience: str | None = "anyone", **changes: Any) -> Group:
    values = {"kind": GroupKind.VERDICT, "severity": None, "verdict": verdict, "audience": audience}
    return finding(None, **(values | changes))


def unread(**changes: Any) -> Group:
    values = {"kind": GroupKind.UNDECIDED, "severity": None, "audience": "GetObjectAcl AccessDenied"}
    return finding(None, **(values | changes))


SENTENCES = [
    (finding("O02", 812), "The ACL lets anyone on the internet read 812 objects"),
    (finding("O02", 1), "The ACL lets anyone on the internet read the object: 1 object"),
    (finding("O03", 48), "The ACL lets any AWS account change the ACL of 48 objects"),
    (finding("E01", 2), "2 objects are not encrypted at rest by S3"),
    (finding("O10", 2), "2 objects were uploaded without credentials"),
    (finding("B04", 1, prefix=None), "The bucket policy is public"),
    (finding("Z99", 2), "Rule Z99, which this version does not have: 2 objects"),
    (opening(Verdict.EXPOSED, count=1), "Anyone on the internet can reach 1 object"),
    (opening(Verdict.SHARED, "account 444455556666"), "Account 444455556666 can reach 3 objects"),
    (opening(Verdict.SHARED, None), "Others can reach 3 objects"),
    (opening(Verdict.MASKED), "Anyone on the internet could reach 3 objects if nothing blocked it"),
    (opening(Verdict.DORMANT, None), "Others can reach 3 objects once ACLs count again"),
    (opening(Verdict.UNKNOWN, None), "It is not known who reaches 3 objects"),
    (opening(Verdict.UNKNOWN, "any-account"), "Any AWS account may reach 3 objects"),
    (unread(), "GetObjectAcl AccessDenied: 3 objects could not be checked"),
]


def test_group_as_a_sentence_with_its_meaning_and_its_remedy() -> None:
    for group, said in SENTENCES:
        ours = group.rule != "Z99"
        words = (groups.sentence(group).text, groups.meaning(group) != "", groups.mend(group) != "")
        assert words == (said, ours, ours)
