"""The counts of a change: wider, narrower, for whom, where, and where nobody can tell."""

from __future__ import annotations

from collections.abc import Iterable

from auditor.model.access import Audience, ObjectAccess, Reason, ReasonCode, Verdict
from auditor.offline.what_if_report import (
    NAMES,
    OTHERS,
    SAMPLES,
    WhatIfCounts,
    change_of,
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


def counts_of(*changes: tuple[str, ObjectAccess, ObjectAccess]) -> WhatIfCounts:
    counts = WhatIfCounts()
    for key, before, after in changes:
        counts.add(key, None, change_of(before, after))
    return counts


def test_wider_and_narrower() -> None:
    other, referred = access(Verdict.SHARED, "account 777788889999"), access(Verdict.EXPOSED, "anyone through header a")
    wider = [
        (PRIVATE, ANYONE), (PRIVATE, FOUR), (FOUR, ANYONE), (FOUR, BOTH), (FOUR, other), (ANY_ACCOUNT, ANYONE),
        (ANY_ACCOUNT, NETWORK), (ENDPOINT, ORGANIZATION), (referred, ANYONE), (UNREAD, ANYONE),
        (access(Verdict.SHARED, "canonical-id ann"), ANN), (access(Verdict.PRIVATE), access(Verdict.SHARED)),
    ]  # fmt: skip
    narrower = [
        (BOTH, FOUR), (ANYONE, ANY_ACCOUNT), (ANYONE, FOUR), (ANY_ACCOUNT, FOUR), (ANYONE, NETWORK),
        (ORGANIZATION, ENDPOINT), (ANYONE, referred), (ANYONE, PRIVATE), (ANYONE, MASKED),
        (access(Verdict.SHARED), access(Verdict.PRIVATE)),
    ]  # fmt: skip
    neither = [(PRIVATE, MASKED), (MASKED, PRIVATE), (UNREAD, PRIVATE), (ANYONE, UNREAD)]
    neither.append((access(Verdict.SHARED, "canonical-id sales$ann"), ANN))
    for cases, expected in ((wider, (True, False)), (narrower, (False, True)), (neither, (False, False))):
        for before, after in cases:
            change = change_of(before, after)
            assert (change.wider, change.narrower) == expected, (before, after)
            assert not change_of(after, after).moves


def test_exit_codes() -> None:
    opened, lost = ("a", PRIVATE, FOUR), ("b", PRIVATE, UNREAD)
    cases = [([], 0), ([("a", ANYONE, ANYONE)], 0), ([("a", ANYONE, PRIVATE)], 0), ([opened], 3), ([lost], 4)]
    for changes, code in [*cases, ([("a", UNREAD, UNREAD)], 4), ([opened, lost], 4)]:
        assert counts_of(*changes).exit_code == code, changes


def test_hostile_text_stays_on_its_line() -> None:
    for text in ("a\x1b[2J/b", "a\n/b", "\u202eb/", "\ud800/"):
        counts, unknown = WhatIfCounts(), access(Verdict.UNKNOWN, reasons=[Reason(ReasonCode.KEY_UNKNOWN, text)])
        counts.add(text, text, change_of(PRIVATE, access(Verdict.SHARED, f"account {text}")))
        counts.add(text, text, change_of(PRIVATE, unknown))
        shown = render([], counts, [], 100)
        assert all(line.isprintable() for line in shown.split("\n")), ascii(text)
        shown.encode()


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
