"""The example bucket policies of AWS's guides: each statement must open to the audience that its page names.

The files in published/ hold the policies as facts, retyped: the bucket is ours, account numbers and names are changed,
and what a page says twice is there once. `opens` is the audience of a statement: texts of audiences; none if no object
opens; "shared" if the page does not name the audience; "unknown" if it depends on a fact that no audit reads. A Deny is
judged on an object with a public ACL: its audience is the one that it leaves.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from auditor.model.access import ObjectAccess, Verdict
from auditor.model.bucket import BucketFacts
from auditor.model.object import ALL_USERS, Acl, Grant, ObjectRef, Skipped
from auditor.verdict.judge import VerdictJudge
from tests.verdict.case_files import WORDS, bucket_facts

FOLDER: Final = Path(__file__).parent / "published"
OWN_GRANT: Final = Grant(WORDS["owner"], "FULL_CONTROL")
PRIVATE: Final = Acl(WORDS["owner"], (OWN_GRANT,))
PUBLIC: Final = Acl(WORDS["owner"], (OWN_GRANT, Grant(ALL_USERS, "READ")))
WIDEST: Final = frozenset({"anyone", "any-account"})


class Statement(NamedTuple):
    """name: the page and the number of the statement. opens: as in the file."""

    name: str
    bucket: BucketFacts
    key: str
    denies: bool
    opens: list[str] | str

    @property
    def verdict(self) -> Verdict:
        """The verdict that an object with this statement alone must have."""
        if isinstance(self.opens, str):
            return Verdict(self.opens)
        if not self.opens:
            return Verdict.MASKED if self.denies else Verdict.PRIVATE
        return Verdict.EXPOSED if {text.partition(" ")[0] for text in self.opens} & WIDEST else Verdict.SHARED


def read_statements() -> Iterator[Statement]:
    for path in sorted(FOLDER.glob("*.toml")):
        for policy in tomllib.loads(path.read_text(encoding="utf-8"))["policy"]:
            for number, written in enumerate(policy["statements"], 1):
                points, name = policy.get("access_points", []), f"{policy['page']}, {number}"
                opens, denies = written.pop("opens"), written.get("Effect") == "Deny"
                facts = bucket_facts({"statements": [written], "public": "unread", "access_points": points})
                yield Statement(name, facts, policy.get("key", "dir/key"), denies, opens)


STATEMENTS: Final = list(read_statements())


def access(statement: Statement) -> ObjectAccess:
    ref = ObjectRef(statement.key, etag="e", size=1, last_modified="2026-01-02T03:04:05Z", owner=WORDS["owner"])
    judge = VerdictJudge(statement.bucket, frozenset())
    return judge.access(ref, PUBLIC if statement.denies else PRIVATE, Skipped("no selected rule needs it"))


def test_statements_open_to_the_audiences_that_their_pages_name() -> None:
    failures = []
    for statement in STATEMENTS:
        found = access(statement)
        audience = {audience.text for audience in found.audience}
        named = isinstance(statement.opens, list)
        if found.verdict is not statement.verdict or (named and audience != set(statement.opens)):
            failures.append(f"{statement.name}: {found.verdict}, {sorted(audience)}")
    assert not failures, failures


def test_there_are_enough_policies_and_few_leave_the_verdict_unknown() -> None:
    assert len({statement.name.rpartition(", ")[0] for statement in STATEMENTS}) >= 100
    assert len(STATEMENTS) >= 150
    unknown = [statement.name for statement in STATEMENTS if statement.verdict is Verdict.UNKNOWN]
    assert len(unknown) <= len(STATEMENTS) / 20, unknown
