"""bucket.json comes back as it was written, and says of each part by which facts it was judged."""

from __future__ import annotations

from typing import Any

from auditor.model.object import Ask, Skipped, Unread
from auditor.runs.bucket_file import BucketFile, ReadFacts
from tests.support.samples.bucket import facts
from tests.support.samples.reports import RUN, target

OPEN = facts(policy=Unread("GetBucketPolicy", "AccessDenied"))
ASK = Ask(head=Skipped("no selected rule needs it"))


def sample(**changes: Any) -> BucketFile:
    values: dict[str, Any] = {
        "run": RUN,
        "target": target(prefix="p/"),
        "now": "2026-01-02T03:04:05Z",
        "ledger": False,
        "selected": ("O01", "M01"),
        "configuration": {"trusted": ["444455556666"], "rules": {"M01": {"required": ["team"]}}},
        "read": (ReadFacts(0, facts(), ASK),),
    }
    return BucketFile(**values | changes)


def test_each_part_has_the_facts_of_its_process() -> None:
    assert sample().resumed(facts(), ASK, 3) == sample(), "the same facts add nothing"
    assert sample().changed_facts() == []
    file = sample().resumed(OPEN, ASK, 3).resumed(facts(), ASK, 5)
    assert [(one.first_part, one.facts) for one in file.read] == [(0, facts()), (3, OPEN), (5, facts())]
    assert file.facts == facts()
    assert file.changed_facts() == ["policy"]
    assert sample().resumed(OPEN, ASK, 0).read == (ReadFacts(0, OPEN, ASK),), "a process that wrote no part leaves none"
    assert sample().resumed(OPEN, ASK, 3).resumed(facts(), ASK, 3).read[-1] == ReadFacts(3, facts(), ASK)
