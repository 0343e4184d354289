"""The queries of docs/acl-retirement.md name those who needed an ACL, by records in the forms that AWS documents.

DuckDB stands for Trino: the tables have the columns of AWS's documents, and two macros have Trino's names and meaning.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import duckdb
import pytest

from tests.support.paths import ROOT

PAGE: Final = (ROOT / "docs" / "acl-retirement.md").read_text(encoding="utf-8")
QUERIES: Final = dict(re.findall(r"<!-- query: (\w+) -->\n```sql\n(.*?)```", PAGE, re.DOTALL))
TABLES: Final = {"athena": "cloudtrail_logs", "lake": "EVENT_DATA_STORE_ID"}
"""The table's name in each query, which the reader replaces."""
IDENTITY: Final = (
    "STRUCT(type VARCHAR, principalId VARCHAR, arn VARCHAR, accountId VARCHAR, invokedBy VARCHAR,"
    " sessionContext STRUCT(sessionIssuer STRUCT(type VARCHAR, arn VARCHAR)))"
)
COLUMNS: Final = {"athena": ("VARCHAR", "VARCHAR"), "lake": ("TIMESTAMP", "MAP(VARCHAR, VARCHAR)")}
"""Types of `eventTime`, and of `requestParameters` and `additionalEventData`.

Source: "Create a table for CloudTrail logs in Athena", "Supported SQL schemas for event data stores" (AWS).
"""
NEEDED: Final = {"SignatureVersion": "SigV4", "aclRequired": "Yes"}
PARTNER: Final = {"type": "AWSAccount", "principalId": "AIDAPARTNER", "accountId": "444455556666"}
ANONYMOUS: Final = {"type": "AWSAccount", "principalId": "", "accountId": "anonymous"}
OWN_ROLE: Final = {
    "type": "AssumedRole",
    "arn": "arn:aws:sts::111122223333:assumed-role/nightly/session-1",
    "accountId": "111122223333",
    "sessionContext": {"sessionIssuer": {"type": "Role", "arn": "arn:aws:iam::111122223333:role/nightly"}},
}
OTHER_SESSION: Final = {**OWN_ROLE, "arn": "arn:aws:sts::111122223333:assumed-role/nightly/session-2"}


def record(who: dict[str, Any], key: str, extra: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """Return the record of a data event; changed: members of it, and `bucket` and `days` of its age."""
    days, bucket = changed.pop("days", 10), changed.pop("bucket", "my-bucket")
    made = {
        "eventVersion": "1.09",
        "userIdentity": who,
        "eventTime": (datetime.now(UTC) - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "eventSource": "s3.amazonaws.com",
        "eventName": "GetObject",
        "requestParameters": {"bucketName": bucket, "key": key, "Host": f"{bucket}.s3.amazonaws.com"},
        "additionalEventData": extra,
        "requestID": f"{key}-{days}",
    }
    return {**made, **changed}


RECORDS: Final = [
    record(PARTNER, "a", NEEDED),
    record(PARTNER, "b", NEEDED),
    record(PARTNER, "b", NEEDED, days=80),
    record(PARTNER, "b", NEEDED, eventID="the same request, in another account's trail"),
    record(PARTNER, "c", NEEDED, errorCode="AccessDenied"),
    record(PARTNER, "c", NEEDED, errorCode="AccessDenied", eventID="this one, too"),
    record(OWN_ROLE, "d", NEEDED, eventName="PutObjectAcl"),
    record(OTHER_SESSION, "e", NEEDED, eventName="PutObjectAcl"),
    record(ANONYMOUS, "f", NEEDED),
    # Nobody of the following used an ACL of the bucket in the last 90 days.
    record(PARTNER, "by-policy", {"SignatureVersion": "SigV4"}, eventName="HeadObject"),
    record(OWN_ROLE, "by-iam", {"SignatureVersion": "SigV4"}),
    record({**PARTNER, "accountId": "777788889999"}, "a", NEEDED, bucket="my-bucket-2"),
    record({**PARTNER, "accountId": "777788889998"}, "a", NEEDED, days=100),
    record({**PARTNER, "accountId": "777788889997"}, "a", NEEDED, eventSource="s3-outposts.amazonaws.com"),
]
FOUND: Final = {
    ("444455556666", "GetObject", 4, 1, 3),
    ("arn:aws:iam::111122223333:role/nightly", "PutObjectAcl", 2, 0, 2),
    ("anonymous", "GetObject", 1, 0, 1),
}
"""Requester, event, requests, of which refused, and keys."""


def rows(query: str, folder: Path) -> list[tuple[Any, ...]]:
    """Return the rows of one of the page's queries over the records."""
    time, members = COLUMNS[query]
    columns = {
        "userIdentity": IDENTITY,
        "eventTime": time,
        **dict.fromkeys(("eventSource", "eventName", "requestID", "errorCode"), "VARCHAR"),
        **dict.fromkeys(("requestParameters", "additionalEventData"), members),
    }
    log = folder / "records.json"
    log.write_text("".join(f"{json.dumps(event)}\n" for event in RECORDS), encoding="utf-8")
    with duckdb.connect() as engine:
        engine.execute("CREATE MACRO json_extract_scalar(text, path) AS json_extract_string(text, path)")
        engine.execute("CREATE MACRO element_at(map, key) AS map_extract_value(map, key)")
        engine.execute(f"CREATE TABLE events AS SELECT * FROM read_json('{log}', columns={columns})")
        return engine.execute(QUERIES[query].replace(TABLES[query], "events")).fetchall()


@pytest.mark.parametrize("query", TABLES)
def test_query_names_those_who_needed_an_acl_and_nobody_else(query: str, tmp_path: Path) -> None:
    found = rows(query, tmp_path)
    assert found[0][:2] == ("444455556666", "GetObject")  # the most requests come first
    assert {row[:5] for row in found} == FOUND


def test_both_queries_are_on_the_page() -> None:
    assert QUERIES.keys() == TABLES.keys()
