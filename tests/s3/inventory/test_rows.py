"""Rows of a report become lines that sort like a listing, and facts that claim nothing that the report does not say."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.errors import InventoryError
from auditor.model.object import ALL_USERS, Acl, Grant
from auditor.model.target import Target
from auditor.s3.inventory.facts import FACT_COLUMNS, InventoryFacts, Shape, facts_of
from auditor.s3.inventory.fields import CSV, PARQUET
from auditor.s3.inventory.report import InventoryReport
from auditor.s3.inventory.rows import NO_SHAPE, SHAPES, RowReader, Shapes, decode_row, encode_key
from tests.support.inventory_reports import ALL, CURRENT, Row, acl_field, csv_bytes, plain_rows
from tests.support.odd_keys import ODD_KEYS
from tests.support.servers.world import OWNER, STRANGER

BUCKET: Final = "audited"
PRIVATE: Final = Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"),))


def report(columns: Sequence[str] = CURRENT, form: str = CSV) -> InventoryReport:
    return InventoryReport(BUCKET, "2026-03-04T01:02:00Z", form, tuple(columns), ())


def lines_of(rows: Sequence[Row], target: Target, columns: Sequence[str] = CURRENT) -> tuple[list[bytes], Shapes]:
    shapes = Shapes()
    reader = RowReader(report(columns), target, shapes, "s3://reports/manifest.json")
    return list(reader.lines(cells_of(rows, columns))), shapes


def cells_of(rows: Iterable[Row], columns: Sequence[str] = CURRENT) -> Iterator[list[str]]:
    return csv.reader(io.StringIO(csv_bytes(list(rows), columns).decode(), newline=""))


@settings(max_examples=40)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=12), max_size=12))
def test_lines_sort_like_a_listing(keys: list[str]) -> None:
    lines = sorted(encode_key(key) for key in keys)
    assert lines == [encode_key(key) for key in sorted(keys, key=lambda key: key.encode())]
    assert len(set(lines)) == len(set(keys))
    assert not any(b"\n" in line for line in lines)


def test_odd_keys_arrive_as_they_are() -> None:
    lines, _ = lines_of(list(plain_rows(BUCKET, [*ODD_KEYS.values()])), Target(BUCKET))
    assert len(lines) == len(ODD_KEYS)
    wrong = [
        name for line, (name, key) in zip(lines, ODD_KEYS.items(), strict=True) if not line.startswith(encode_key(key))
    ]
    assert not wrong, wrong


def test_key_of_parquet_is_not_decoded() -> None:
    reader = RowReader(
        report(("Bucket", "Key", "Size", "LastModifiedDate", "ETag"), PARQUET), Target(BUCKET), Shapes(), ""
    )
    (line,) = reader.lines([(BUCKET, "a%2Bb c+d", "1", "2026-01-02T03:04:05Z", "e")])
    assert line.startswith(b"a%2Bb c+d\0")


def test_only_the_objects_of_the_target_are_kept() -> None:
    rows = list(plain_rows(BUCKET, ["a/1", "a/2", "a/3", "b/1", "A"]))
    (line,), _ = lines_of(rows, Target(BUCKET, "a/", start_after="a/1", stop_at="a/2"))
    assert line.startswith(b"a/2\0")


@pytest.mark.parametrize(("versions", "kept"), [(False, ["3"]), (True, ["1", "3"])])
def test_old_versions_and_delete_markers_are_no_current_objects(versions: bool, kept: list[str]) -> None:
    rows = [
        *plain_rows(BUCKET, ["k"], VersionId="v1", IsLatest="false", Size="1"),
        *plain_rows(BUCKET, ["k"], VersionId="v2", IsLatest="true", IsDeleteMarker="true", Size=""),
        *plain_rows(BUCKET, ["l"], VersionId="v3", IsLatest="true", Size="3"),
    ]
    lines, _ = lines_of(rows, Target(BUCKET, versions=versions), ALL)
    found = [decode_row(line) for line in lines]
    assert [str(one.size) for one in found if one is not None] == kept
    assert [one.version_id for one in found if one is not None] == (["v1", "v3"] if versions else [""])


WRONG = [
    ((BUCKET, "k", ""), "row 2 has 3 columns where 21 belong"),
    ((BUCKET, "k%FF", *[""] * (len(CURRENT) - 2)), "row 2 has a key that is not UTF-8"),
    ({"Bucket": "another"}, "row 2 belongs to another bucket"),
    ({"ETag": "a\nb"}, "row 2 has a malformed version ID, ETag, size or date"),
    ({"Size": "1\x00"}, "row 2 has a malformed version ID, ETag, size or date"),
]


def test_wrong_row_condemns_the_report() -> None:
    for cells, problem in WRONG:
        row = next(cells_of(plain_rows(BUCKET, ["b"], **cells))) if isinstance(cells, dict) else [*cells]
        reader = RowReader(report(), Target(BUCKET), Shapes(), "s3://reports/manifest.json")
        with pytest.raises(InventoryError, match=f"{problem}.*, so the report is damaged"):
            list(reader.lines([*cells_of(plain_rows(BUCKET, ["a"])), row]))


def test_a_row_with_a_size_that_is_none_says_nothing() -> None:
    (line,), _ = lines_of(list(plain_rows(BUCKET, ["a"], Size="many")), Target(BUCKET))
    assert decode_row(line) is None


def test_shapes_beyond_the_limit_have_no_facts() -> None:
    shapes = Shapes()
    numbers = [shapes.number((str(number),)) for number in range(SHAPES + 2)]
    assert numbers[-3:] == [SHAPES - 1, NO_SHAPE, NO_SHAPE]
    assert (len(shapes.all()), shapes.left_out) == (SHAPES, 2)
    assert shapes.number(("7",)) == 7


def shape(**cells: str) -> Shape:
    known = {"ObjectAccessControlList": acl_field(PRIVATE), "ObjectOwner": OWNER, **cells}
    return tuple(known.get(column, "") for column in FACT_COLUMNS)


@pytest.mark.parametrize(
    ("cells", "members"),
    [
        ({}, {}),
        (
            {"EncryptionStatus": "SSE-S3"},
            {"server_side_encryption": "AES256", "sse_customer_algorithm": None, "sse_kms_key_id": None},
        ),
        (
            {"EncryptionStatus": "NOT-SSE"},
            {"server_side_encryption": None, "sse_customer_algorithm": None, "sse_kms_key_id": None},
        ),
        ({"EncryptionStatus": "SSE-KMS"}, {"server_side_encryption": "aws:kms", "sse_customer_algorithm": None}),
        ({"EncryptionStatus": "DSSE-KMS"}, {"server_side_encryption": "aws:kms:dsse", "sse_customer_algorithm": None}),
        ({"EncryptionStatus": "SSE-C"}, {}),
        ({"EncryptionStatus": "SSE-NEW"}, {}),
        ({"BucketKeyStatus": "ENABLED"}, {"bucket_key_enabled": True}),
        ({"BucketKeyStatus": "DISABLED"}, {"bucket_key_enabled": None}),
        ({"ReplicationStatus": "FAILED"}, {"replication_status": "FAILED"}),
        ({"ReplicationStatus": "UNAVAILABLE"}, {}),
        ({"ObjectLockMode": "Governance"}, {"object_lock_mode": "GOVERNANCE"}),
        ({"ObjectLockMode": "UNAVAILABLE"}, {}),
        ({"ObjectLockLegalHoldStatus": "On"}, {"object_lock_legal_hold_status": "ON"}),
        ({"ObjectLockLegalHoldStatus": "true"}, {}),
        ({"ObjectLockEventHoldStatus": "On", "ObjectLockEventHoldDuration": "P7Y"}, {"object_lock_event_hold": "ON"}),
        ({"ObjectLockEventHoldStatus": "true"}, {}),
        (
            {"ObjectLockRetainUntilDate": "2027-01-02T03:04:05.678Z"},
            {"object_lock_retain_until_date": "2027-01-02T03:04:05Z"},
        ),
        ({"ObjectLockRetainUntilDate": "soon"}, {}),
    ],
)
def test_a_column_gives_the_members_that_it_proves_and_no_other(
    cells: dict[str, str], members: dict[str, object]
) -> None:
    assert facts_of(shape(**cells)) == InventoryFacts(PRIVATE, OWNER, members)


def test_acl_is_read_in_base64_and_as_plain_json() -> None:
    public = Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"), Grant(ALL_USERS, "READ"), Grant(STRANGER, "READ_ACP")))
    assert facts_of(shape(ObjectAccessControlList=acl_field(public))).acl == public
    plain = '{"version":"2022-11-10","status":"AVAILABLE","grants":[]}'
    assert facts_of(shape(ObjectAccessControlList=plain)).acl == Acl(OWNER, ())


@pytest.mark.parametrize(
    "cells",
    [
        {"ObjectAccessControlList": ""},
        {"ObjectAccessControlList": acl_field(None)},
        {"ObjectAccessControlList": acl_field(PRIVATE)[:-3]},
        {"ObjectAccessControlList": "W10="},
        {"ObjectAccessControlList": '{"status":"AVAILABLE"}'},
        {"ObjectAccessControlList": '{"status":"AVAILABLE","grants":[{"type":"Group","permission":"READ"}]}'},
        {"ObjectAccessControlList": '{"status":"AVAILABLE","grants":[{"type":"X","canonicalId":"a","permission":""}]}'},
        {"ObjectOwner": ""},
        {"ObjectOwner": "UNAVAILABLE"},
    ],
)
def test_acl_that_is_not_there_is_unread_and_never_empty(cells: dict[str, str]) -> None:
    assert facts_of(shape(**cells)).acl is None
