"""The fewest keys and prefixes: compared with a search that looks at all keys at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from auditor.offline.fix_kit.prefix_cover import Cover, KeyCover

KEYS = st.lists(
    st.tuples(st.text("ab/é", min_size=1, max_size=6), st.frozensets(st.sampled_from("RW"))),
    unique_by=lambda one: one[0],
    max_size=14,
)


def covers(listed: list[tuple[str, frozenset[str]]], floor: str = "") -> dict[str, list[Cover]]:
    found: dict[str, list[Cover]] = {}
    cover = KeyCover[str](lambda grant, one: found.setdefault(grant, []).append(one), floor)
    for key, grants in sorted(listed):
        cover.add(key, grants)
    cover.end()
    assert cover.sorted
    return found


def covered(one: Cover, key: str) -> bool:
    return key.startswith(one.text) if one.is_prefix else key == one.text


def fewest(have: set[str], lack: set[str], floor: str) -> int:
    """The number of the shortest prefixes of the keys that no other key has; a key by itself where there is none."""
    usable = set()
    for key in have:
        prefixes = (key[:end] for end in range(len(floor), len(key) + 1))
        clean = (one for one in prefixes if not any(other.startswith(one) for other in lack))
        usable.add(next(clean, f"={key}"))
    return len(usable)


@given(KEYS, st.sampled_from(["", "a/"]))
def test_exactly_the_keys_with_the_grant_and_as_few_as_possible(
    listed: list[tuple[str, frozenset[str]]], floor: str
) -> None:
    below = [(f"{floor}{key}", grants) for key, grants in listed]
    found = covers(below, floor)
    for grant in "RW":
        have = {key for key, grants in below if grant in grants}
        lack = {key for key, grants in below if grant not in grants}
        mine = found.get(grant, [])
        assert {key for key in have | lack if any(covered(one, key) for one in mine)} == have
        assert len(mine) == fewest(have, lack, floor)
        assert all(one.text.startswith(floor) for one in mine)


def test_a_prefix_is_a_folder_if_that_opens_no_more() -> None:
    read, none = frozenset("R"), frozenset[str]()
    listed = [("docs/report-1", read), ("docs/report-2", read), ("docs2", none), ("www/img1", read), ("www/img2", read)]
    for keys, texts in (
        (listed, ["docs/", "www/"]),
        ([*listed, ("www/z", none)], ["docs/", "www/img"]),
        (listed[:1], ["docs/report-1"]),
        ([("a", read), ("b", read)], [""]),
        ([("a", read), ("ab", none)], ["a"]),
    ):
        assert [one.text for one in covers(keys)["R"]] == texts
