"""A table whose items are made when they are read: a client of DynamoDB for tests with many objects."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from auditor.errors import CallFailed
from auditor.ledger.dynamodb.table import own_name, stored_name
from auditor.ledger.seals import row_seal
from auditor.model.object import ObjectRef

ETAG = "e" * 32
SIZE = 5
ITEM = 400
"""Assumed bytes of an item (docs/deploy.md)."""
PAGE = 1 << 20
"""Bytes of a page (DynamoDB API, Query)."""


def ref_of(key: str) -> ObjectRef:
    return ObjectRef(key, ETAG, SIZE, "2026-01-01T00:00:00Z")


class GeneratedTable:
    """The digests of these keys, each of one object version.

    asked: number of calls by operation. units: read units, by DynamoDB's rule for eventually consistent reads: half a
    unit per 4 KB, of each item that is read by its name, and of each page of a Query. items: number of items that
    Queries have read. failing: the errors of the next calls.
    """

    region = "eu-north-1"

    def __init__(self, bucket: str, keys: Iterable[str]) -> None:
        self.asked: Counter[str] = Counter()
        self.units = 0.0
        self.items = 0
        self.failing: list[CallFailed] = []
        self._bucket = bucket
        self._shards: dict[str, list[str]] = {}
        for key in sorted(set(keys)):
            pk, sk = stored_name((f"{bucket}/{key}", f"null#{ETAG}"))
            self._shards.setdefault(pk, []).append(sk)
        self._rows = {(pk, sk) for pk, names in self._shards.items() for sk in names}

    async def call(self, operation: str, **asked: Any) -> dict[str, Any]:
        self.asked[operation] += 1
        if self.failing:
            raise self.failing.pop()
        match operation:
            case "GetItem":
                return {"Item": {"format": {"N": "1"}, "pk": {"S": "-"}, "sk": {"S": "-"}}}
            case "BatchGetItem":
                ((name, wanted),) = asked["RequestItems"].items()
                self.units += 0.5 * len(wanted["Keys"])
                return {"Responses": {name: list(self._named(wanted["Keys"]))}}
            case _:
                return self._query(asked)

    def _named(self, names: Iterable[Any]) -> Iterator[dict[str, Any]]:
        """Yield the rows with these names."""
        for name in names:
            pk, sk = name["pk"]["S"], name["sk"]["S"]
            if (pk, sk) in self._rows:
                yield self._row(pk, sk)

    def _query(self, asked: Any) -> dict[str, Any]:
        values = asked["ExpressionAttributeValues"]
        pk, first = values[":pk"]["S"], values[":first"]["S"]
        names = self._shards.get(pk, [])
        start = bisect_left(names, first)
        if "ExclusiveStartKey" in asked:
            start = bisect_right(names, asked["ExclusiveStartKey"]["sk"]["S"])
        page = names[start : start + min(asked.get("Limit", PAGE), PAGE // ITEM)]
        self.items += len(page)
        self.units += 0.5 * -(-len(page) * ITEM // 4096)
        found: dict[str, Any] = {"Items": [self._row(pk, sk) for sk in page]}
        if page and start + len(page) < len(names):
            found["LastEvaluatedKey"] = {"pk": {"S": pk}, "sk": {"S": page[-1]}}
        return found

    def _row(self, pk: str, sk: str) -> dict[str, Any]:
        key = own_name({"pk": {"S": pk}, "sk": {"S": sk}})["pk"]["S"].partition("/")[2]
        digest = digest_of(key)
        seal = row_seal(self._bucket, key, "null", ETAG, SIZE, "sha256", digest, "auditor", "2026", 0)
        values = {"pk": pk, "sk": sk, "hashed_at": "2026", "sha256": digest, "sha256_at": "2026", "sha256_seal": seal}
        return {name: {"S": value} for name, value in values.items()} | {"size": {"N": str(SIZE)}}


def digest_of(key: str) -> str:
    return key.encode().hex().zfill(64)[-64:]
