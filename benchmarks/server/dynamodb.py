"""The part of DynamoDB that a ledger uses: items in memory, and writes that ignore their conditions."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

TARGET: Final = b"x-amz-target"
_SET: Final = re.compile(
    r"(#n\d+) = (list_append\(if_not_exists\()?(if_not_exists\()?(?:#n\d+, )?(:v\d+)(?:\), (:v\d+))?"
)


class Tables:
    """All tables by name. A table comes into being with its first item."""

    def __init__(self) -> None:
        self._tables: defaultdict[str, defaultdict[str, dict[str, dict[str, Any]]]]
        self._tables = defaultdict(lambda: defaultdict(dict))

    def answer(self, operation: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to one call. Raise KeyError for an operation that no ledger uses."""
        return {
            "BatchGetItem": self._get_many,
            "GetItem": self._get,
            "Query": self._query,
            "Scan": self._scan,
            "TransactWriteItems": self._transact,
            "UpdateItem": self._update,
        }[operation](asked)

    def _get(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        found = self._tables[asked["TableName"]][asked["Key"]["pk"]["S"]].get(asked["Key"]["sk"]["S"])
        return {"Item": found} if found else {}

    def _get_many(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        ((table, wanted),) = asked["RequestItems"].items()
        found = [self._get({"TableName": table, "Key": key}) for key in wanted["Keys"]]
        return {"Responses": {table: [one["Item"] for one in found if one]}}

    def _scan(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        return {"Items": [one for items in self._tables[asked["TableName"]].values() for one in items.values()][:1]}

    def _query(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        values = {name: value["S"] for name, value in asked["ExpressionAttributeValues"].items()}
        items = self._tables[asked["TableName"]][values[":pk"]]
        names = sorted(items)
        last = values.get(":last")
        names = names[bisect_left(names, values[":first"]) : None if last is None else bisect_right(names, last)]
        if "ExclusiveStartKey" in asked:
            names = names[bisect_right(names, asked["ExclusiveStartKey"]["sk"]["S"]) :]
        page = names[: asked.get("Limit")]
        answer: dict[str, Any] = {"Items": [items[name] for name in page]}
        if len(page) < len(names):
            answer["LastEvaluatedKey"] = {"pk": {"S": values[":pk"]}, "sk": {"S": page[-1]}}
        return answer

    def _transact(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        for one in asked["TransactItems"]:
            self._update(one["Update"])
        return {}

    def _update(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        pk, sk = asked["Key"]["pk"]["S"], asked["Key"]["sk"]["S"]
        item = self._tables[asked["TableName"]][pk].setdefault(sk, dict(asked["Key"]))
        names, values = asked["ExpressionAttributeNames"], asked["ExpressionAttributeValues"]
        for name, appends, once, value, added in _SET.findall(asked["UpdateExpression"]):
            attribute = names[name]
            if appends:
                item[attribute] = {"L": [*item.get(attribute, {"L": []})["L"], *values[added]["L"]]}
            elif not once or attribute not in item:
                item[attribute] = values[value]
        return {}
