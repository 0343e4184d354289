"""Every condition key of AWS's reference is decided, not in a read, or unknown on purpose.

tables/condition_keys.json has the names: those of S3's service authorization reference, each with the actions on
reading and on ACLs that list it, and the global keys. A new version of the file shows the new keys by a failing test.
"""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from auditor.model.access import ObjectAccess, Verdict
from tests.verdict.case_files import bucket_facts
from tests.verdict.test_cases import CASES, access

TABLES: Final = Path(__file__).parent / "tables"
REFERENCE: Final[Mapping[str, Any]] = json.loads((TABLES / "condition_keys.json").read_text(encoding="utf-8"))
NAMES: Final = tuple(dict.fromkeys((*REFERENCE["global"], *REFERENCE["s3"])))
MARKED: Final = tomllib.loads((TABLES / "condition_marks.toml").read_text(encoding="utf-8"))
MARKS: Final[Mapping[str, str]] = {key: mark for mark, keys in MARKED.items() for key in keys}
DECIDED: Final = "decided"
EITHER: Final = "decided in an Allow; in a Deny of a read, both with the key and without it"
NOT_IN_A_READ: Final = "not in a read"
TESTS: Final = (("Null", "true"), ("Null", "false"), ("StringLike", "*"), ("StringEqualsIfExists", "x"))
PRIVATE: Final = next(case for case in CASES if case.title == "everybody may list only")
PUBLIC: Final = next(case for case in CASES if case.title == "without the Deny")


def judged(key: str, effect: str, test: tuple[str, str]) -> ObjectAccess:
    """The access to an object by an Allow with the test; or to one with a public ACL, under a Deny with the test."""
    name = key.replace("tag-key", "team").replace("${TagKey}", "team").replace("<key>", "team")
    statement = {"Effect": effect, "Action": "s3:*", "Condition": {test[0]: {name: test[1]}}}
    facts = {"abac": True, "tags": {"team": "red"}, "access_points": [], "statements": [statement], "public": "unread"}
    acl = (PRIVATE if effect == "Allow" else PUBLIC).acl
    return access(dataclasses.replace(PRIVATE, bucket=bucket_facts(facts), acl=acl))


def test_every_key_of_the_reference_is_judged_as_its_mark_says() -> None:
    assert set(NAMES) == MARKS.keys()
    failures = [f"{key}: {wrong}" for key in NAMES for wrong in _wrong(key, MARKS[key])]
    assert not failures, failures


def _wrong(key: str, mark: str) -> Iterator[list[str]]:
    allows, denies = ([judged(key, effect, test) for test in TESTS] for effect in ("Allow", "Deny"))
    found = [[one.verdict.value for one in some] for some in (allows, denies)]
    unknown = [one for one in (*allows, *denies) if one.verdict is Verdict.UNKNOWN]
    if mark == DECIDED:
        fine = not unknown
    elif mark == EITHER:
        fine = "unknown" not in found[0] and found[1][0] == "unknown"
    elif mark == NOT_IN_A_READ:
        fine = found == [["exposed", "private", "private", "exposed"], ["masked", "exposed", "exposed", "masked"]]
    else:
        named = all(one.reasons[0].text.startswith("key-unknown: ") for one in unknown)
        fine = mark.startswith("unknown: ") and bool(unknown) and named
    if not fine:
        yield [mark, *found[0], *found[1]]


def test_a_key_that_no_read_has_is_listed_for_no_read() -> None:
    """By the reference itself. It lists the storage class for writes of ACLs, which cannot change it."""
    listed = {key for key, actions in REFERENCE["s3"].items() if any(action.startswith("Get") for action in actions)}
    assert [key for key in listed if MARKS[key] in (NOT_IN_A_READ, EITHER)] == []
