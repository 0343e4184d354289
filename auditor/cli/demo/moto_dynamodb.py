"""Let moto's DynamoDB answer one call after the other, and prepare its transactions quickly.

moto checks a condition and writes in two steps, creates a new item before it sets the attributes, and undoes a failed
transaction by a copy of the whole table. Calls of other threads in between are lost, or leave an item without
attributes. The copy, of each attribute of each item, takes longer than all else once a table has some hundred items,
and moto keeps each item of each copy for ever: gigabytes.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


def one_at_a_time(app: WSGIApplication) -> WSGIApplication:
    """Return the application with a lock around each call to DynamoDB."""
    lock = threading.Lock()

    def guarded(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        with lock if environ.get("HTTP_X_AMZ_TARGET", "").startswith("DynamoDB_") else nullcontext():
            return app(environ, start_response)

    return guarded


def undo_quickly() -> None:
    """Let moto undo a failed transaction by copies of the items that the transaction names, not of the whole tables.

    The calls must come one after the other.
    """
    backend: Any = import_module("moto.dynamodb.models").DynamoDBBackend
    table: Any = import_module("moto.dynamodb.models.table").Table
    attribute: Any = import_module("moto.dynamodb.models.dynamo_type").DynamoType
    if table.__dict__.get("__deepcopy__") is _itself:
        return  # a server of this process was begun before
    write = backend.transact_write_items

    def transact_write_items(self: Any, transact_items: list[dict[str, Any]]) -> None:
        undoing = [
            _undo(self.tables[operation["TableName"]], operation.get("Key") or operation["Item"], attribute)
            for entry in transact_items
            for operation in entry.values()
            if operation["TableName"] in self.tables
        ]
        try:
            write(self, transact_items)
        except BaseException:
            for undo in reversed(undoing):
                undo()
            raise

    table.__deepcopy__ = _itself
    backend.transact_write_items = transact_write_items


def _itself(table: Any, _memo: dict[int, Any]) -> Any:
    """Replace the copying of a table: return the table itself. moto puts the copy in the table's place after a
    failure.
    """
    return table


def _undo(table: Any, key: dict[str, Any], attribute: Any) -> Callable[[], object]:
    """Return a function that puts one item back into moto's memory as it is now, or removes it if there is none."""
    first = attribute(key[table.hash_key_attr])
    items = table.items[first] if table.has_range_key else table.items
    last = attribute(key[table.range_key_attr]) if table.has_range_key else first
    item = items.get(last)
    return partial(items.pop, last, None) if item is None else partial(items.__setitem__, last, copy.deepcopy(item))
