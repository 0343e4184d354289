"""bucket.json says of each part by which facts it was judged."""

from __future__ import annotations

from auditor.model.object import Ask, Skipped, Unread
from auditor.runs.bucket_file import ReadFacts
from tests.support.samples.bucket import facts
from tests.support.samples.reports import sample_file

OPEN = facts(policy=Unread("GetBucketPolicy", "AccessDenied"))
ASK = Ask(head=Skipped("no selected rule needs it"))
FILE = sample_file(read=(ReadFacts(0, facts(), ASK),))


def test_each_part_has_the_facts_of_its_process() -> None:
    assert FILE.resumed(facts(), ASK, 3) == FILE, "the same facts add nothing"
    assert FILE.changed_facts() == []
    file = FILE.resumed(OPEN, ASK, 3).resumed(facts(), ASK, 5)
    assert [(one.first_part, one.facts) for one in file.read] == [(0, facts()), (3, OPEN), (5, facts())]
    assert file.facts == facts()
    assert file.changed_facts() == ["policy"]
    assert FILE.resumed(OPEN, ASK, 0).read == (ReadFacts(0, OPEN, ASK),), "a process that wrote no part leaves none"
    assert FILE.resumed(OPEN, ASK, 3).resumed(facts(), ASK, 3).read[-1] == ReadFacts(3, facts(), ASK)
