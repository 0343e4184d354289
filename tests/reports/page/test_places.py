"""Where the objects are: the table adds up, and each map has a box for each of its prefixes."""

from __future__ import annotations

from auditor.reports.page import signs
from auditor.reports.page.pictures import PlaceCount, places_of
from auditor.reports.page.signs import Sign


def count(prefix: str, number: int, sign: Sign = signs.EXPOSED, new: int = 0) -> PlaceCount:
    return PlaceCount(prefix, sign, number, new, f"id-{prefix}")


def test_nothing_to_show_is_no_section() -> None:
    assert places_of([]) is None
    assert places_of([count("a/", 0)]) is None


def test_rows_add_up_to_the_totals() -> None:
    found = places_of([count("a/", 5, new=2), count("a/", 7, signs.SHARED), count("b/", 1, signs.MASKED)])
    assert found is not None
    assert [(row.prefix, row.numbers, sum(row.numbers)) for row in found.rows] == [
        ("a/", (5, 7, 0), 12),
        ("b/", (0, 0, 1), 1),
    ]
    assert found.totals == (5, 7, 1)
    assert [(one.name, len(one.boxes)) for one in found.maps] == [("risk", 2), ("exposed", 1), ("all", 3)]
    assert found.maps[1].boxes[0].count == count("a/", 5, new=2)


def test_counts_of_one_prefix_and_sign_are_one_box() -> None:
    found = places_of([count("a/", 5, new=1), count("a/", 7, new=2)])
    assert found is not None
    assert [(box.count.number, box.count.new) for box in found.maps[0].boxes] == [(12, 3)]


def test_map_without_an_exposed_object_begins_with_the_next_kind() -> None:
    found = places_of([count("a/", 5, signs.MASKED)])
    assert found is not None
    assert [one.name for one in found.maps] == ["all"]


def test_more_prefixes_than_the_table_has_rows_are_counted() -> None:
    found = places_of([count(f"{at:03}/", 400 - at) for at in range(90)])
    assert found is not None
    assert (len(found.rows), found.more) == (60, 30)
    assert sum(found.totals) == sum(400 - at for at in range(90))


def test_label_is_cut_at_a_folder_and_left_out_where_there_is_no_room() -> None:
    found = places_of([count("a/very/long/prefix/with/folders/", 30), count("b/", 400), count("tiny/", 1)])
    assert found is not None
    labels = {box.count.prefix: box.label for box in found.maps[0].boxes}
    assert labels["b/"] == "b/"
    assert labels["tiny/"] == ""
    assert "a/very/long/prefix/with/folders/".endswith(labels["a/very/long/prefix/with/folders/"])
