"""The counts of a change: wider, narrower, for whom, where, and where nobody can tell."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from auditor.model.access import Audience, ObjectAccess, Reason, ReasonCode, Verdict
from auditor.model.run_lines import first_prefix
from auditor.reports.what_if import (
    NAMES,
    OTHERS,
    SAMPLES,
    WhatIfCounts,
    change_of,
    changed_line,
    render,
)

PRIVATE = ObjectAccess(Verdict.PRIVATE)
MASKED = ObjectAccess(Verdict.MASKED)


def access(verdict: Verdict, *audiences: str, reasons: Iterable[Reason] = ()) -> ObjectAccess:
    return ObjectAccess(verdict, tuple(map(Audience.parse, audiences)), tuple(reasons))


ANYONE = access(Verdict.EXPOSED, "anyone")
ANY_ACCOUNT = access(Verdict.EXPOSED, "any-account")
FOUR = access(Verdict.SHARED, "account 444455556666")
BOTH = access(Verdict.SHARED, "account 444455556666", "account 777788889999")
ORGANIZATION = access(Verdict.SHARED, "organization o-1")
ENDPOINT = access(Verdict.SHARED, "organization o-1 through vpc-endpoint vpce-1")
NETWORK = access(Verdict.SHARED, "network 203.0.113.0/24")
ANN = access(Verdict.SHARED, "account arn:aws:iam::sales:user/ann")
"""The user ann of the tenant sales, as a policy of Ceph names it."""
UNREAD = access(Verdict.UNKNOWN, reasons=[Reason(ReasonCode.ACL_UNREAD, "AccessDenied")])


@pytest.mark.parametrize(
    ("before", "after", "wider", "narrower"),
    [
        (PRIVATE, ANYONE, True, False),
        (PRIVATE, FOUR, True, False),
        (PRIVATE, MASKED, False, False),
        (MASKED, PRIVATE, False, False),
        (FOUR, ANYONE, True, False),
        (FOUR, BOTH, True, False),
        (BOTH, FOUR, False, True),
        (FOUR, access(Verdict.SHARED, "account 777788889999"), True, False),
        (ANY_ACCOUNT, ANYONE, True, False),
        (ANYONE, ANY_ACCOUNT, False, True),
        (ANYONE, FOUR, False, True),
        (ANY_ACCOUNT, FOUR, False, True),
        (ANY_ACCOUNT, NETWORK, True, False),
        (ANYONE, NETWORK, False, True),
        (ENDPOINT, ORGANIZATION, True, False),
        (ORGANIZATION, ENDPOINT, False, True),
        (access(Verdict.EXPOSED, "anyone through header aws:Referer"), ANYONE, True, False),
        (ANYONE, access(Verdict.EXPOSED, "anyone through header aws:Referer"), False, True),
        (access(Verdict.SHARED, "canonical-id sales$ann"), ANN, False, False),
        (access(Verdict.SHARED, "canonical-id ann"), ANN, True, False),
        (ANYONE, PRIVATE, False, True),
        (ANYONE, MASKED, False, True),
        (UNREAD, ANYONE, True, False),
        (UNREAD, PRIVATE, False, False),
        (ANYONE, UNREAD, False, False),
        (access(Verdict.PRIVATE), access(Verdict.SHARED), True, False),
        (access(Verdict.SHARED), access(Verdict.PRIVATE), False, True),
    ],
)
def test_wider_and_narrower(before: ObjectAccess, after: ObjectAccess, wider: bool, narrower: bool) -> None:
    change = change_of(before, after)
    assert (change.wider, change.narrower) == (wider, narrower)
    assert not change_of(after, after).moves


def counts_of(*changes: tuple[str, ObjectAccess, ObjectAccess]) -> WhatIfCounts:
    counts = WhatIfCounts()
    for key, before, after in changes:
        counts.add(key, None, change_of(before, after))
    return counts


def test_the_document() -> None:
    counts = counts_of(
        ("www/a", PRIVATE, ANYONE),
        ("www/b", PRIVATE, ANYONE),
        ("docs/c", PRIVATE, ANYONE),
        ("d", FOUR, PRIVATE),
        ("e", PRIVATE, PRIVATE),
        ("f", UNREAD, UNREAD),
        ("g", PRIVATE, UNREAD),
    )
    assert counts.to_dict() == {
        "objects": 7,
        "changed": 5,
        "new_exposure": 3,
        "narrower": 1,
        "not_predictable": {"objects": 2, "unknown_before": 1, "causes": {"acl-unread: AccessDenied": 2}},
        "moves": [
            {
                "before": "private",
                "after": "exposed",
                "objects": 3,
                "prefixes": {"www/": 2, "docs/": 1},
                "samples": [{"key": key, "version_id": None} for key in ("www/a", "www/b", "docs/c")],
            },
            {
                "before": "private",
                "after": "unknown",
                "objects": 1,
                "prefixes": {"": 1},
                "samples": [{"key": "g", "version_id": None}],
            },
            {
                "before": "shared",
                "after": "private",
                "objects": 1,
                "prefixes": {"": 1},
                "samples": [{"key": "d", "version_id": None}],
            },
        ],
        "gains": {"anyone": 3},
        "loses": {"account 444455556666": 1},
    }


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([], 0),
        ([("a", ANYONE, ANYONE)], 0),
        ([("a", ANYONE, PRIVATE)], 0),
        ([("a", PRIVATE, FOUR)], 3),
        ([("a", PRIVATE, UNREAD)], 4),
        ([("a", UNREAD, UNREAD)], 4),
        ([("a", PRIVATE, FOUR), ("b", PRIVATE, UNREAD)], 4),
    ],
)
def test_exit_codes(changes: list[tuple[str, ObjectAccess, ObjectAccess]], code: int) -> None:
    assert counts_of(*changes).exit_code == code


def test_the_counts_are_bounded() -> None:
    counts = WhatIfCounts()
    for number in range(NAMES + 50):
        after = access(Verdict.SHARED, f"account {number:012}")
        counts.add(f"{number}/a", None, change_of(PRIVATE, after))
    ((_, moved),) = counts.ordered
    assert (moved.objects, len(moved.samples)) == (NAMES + 50, SAMPLES)
    assert (len(moved.prefixes), moved.prefixes[OTHERS]) == (NAMES + 1, 50)
    assert (len(counts.gains), counts.gains[OTHERS]) == (NAMES + 1, 50)
    assert "others: 50 objects" in render([], counts, [], 100)


def test_the_statements_that_open_and_close() -> None:
    old, new = Reason(ReasonCode.POLICY_ALLOW, "Old"), Reason(ReasonCode.POLICY_ALLOW, "New")
    deny, again = Reason(ReasonCode.POLICY_DENY, "Deny"), Reason(ReasonCode.POLICY_DENY, "Again")
    counts = counts_of(
        (
            "a",
            access(Verdict.SHARED, "account 1", reasons=[old]),
            access(Verdict.EXPOSED, "anyone", reasons=[old, new]),
        ),
        ("b", PRIVATE, access(Verdict.EXPOSED, "anyone", reasons=[old])),
        ("c", PRIVATE, ANYONE),
        ("d", access(Verdict.EXPOSED, "anyone", reasons=[deny]), access(Verdict.MASKED, reasons=[deny, again])),
        ("e", ANYONE, PRIVATE),
    )
    assert {reason and reason.cause: moved.samples for reason, moved in counts.opened_by.items()} == {
        "New": [("a", None)],
        "Old": [("b", None)],
        None: [("c", None)],
    }
    assert {reason and reason.cause: moved.samples for reason, moved in counts.closed_by.items()} == {
        "Again": [("d", None)],
        None: [("e", None)],
    }


def test_the_table() -> None:
    counts = counts_of(
        ("www/a", PRIVATE, ANYONE), ("d", FOUR, PRIVATE), ("f", UNREAD, UNREAD), ("g", ANY_ACCOUNT, ANYONE)
    )
    assert render([("What if", "it rains")], counts, ["take an umbrella"], 100).splitlines() == [
        "What if         it rains",
        "Objects         from private to exposed: 1 object",
        "                www/ 1",
        "                  www/a",
        "Objects         exposed as before, for others: 1 object",
        "                no folder 1",
        "                  g",
        "Objects         from shared to private: 1 object",
        "                no folder 1",
        "                  d",
        "Gain access     anyone on the internet: 2 objects",
        "Lose access     account 444455556666: 1 object",
        "Not predictable 1 object, 1 of them unknown already",
        "                1 object: its ACL, which was not read (AccessDenied)",
        "Remarks         take an umbrella",
        "Result          2 objects opened to somebody, 1 object closed to somebody, 1 object not",
        "                  predictable, of 4 objects",
    ]


def test_no_change() -> None:
    assert render([], counts_of(("a", PRIVATE, PRIVATE)), [], 100).splitlines() == [
        "Objects         no object is opened or closed to anybody",
        "Result          no new exposure, 0 objects closed to somebody, of 1 object",
    ]


@pytest.mark.parametrize("text", ["a\x1b[2J/b", "a\n/b", "\u202eb/", "\ud800/"])
def test_hostile_text_stays_on_its_line(text: str) -> None:
    after = access(Verdict.SHARED, f"account {text}")
    counts = WhatIfCounts()
    counts.add(text, text, change_of(PRIVATE, after))
    counts.add(text, text, change_of(PRIVATE, access(Verdict.UNKNOWN, reasons=[Reason(ReasonCode.KEY_UNKNOWN, text)])))
    shown = render([], counts, [], 100)
    assert all(line.isprintable() for line in shown.split("\n"))
    shown.encode()


@pytest.mark.parametrize(("key", "prefix"), [("a", ""), ("a/b/c", "a/"), ("/a", "/"), ("", "")])
def test_the_prefix_of_a_key(key: str, prefix: str) -> None:
    assert first_prefix(key) == prefix


def test_the_line_of_a_changed_object() -> None:
    assert changed_line("a", "v", change_of(FOUR, ANYONE)) == {
        "key": "a",
        "version_id": "v",
        "before": {"verdict": "shared", "audience": ["account 444455556666"], "reasons": []},
        "after": {"verdict": "exposed", "audience": ["anyone"], "reasons": []},
        "gains": ["anyone"],
        "loses": [],
        "new_exposure": True,
        "predictable": True,
    }
