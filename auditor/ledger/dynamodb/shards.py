"""Tell where a table stores its items. A shard has items of one bucket, sorted by object key, without history lines
and leases.

A shard is one of 16 partitions of a bucket. The sort keys in a shard begin with the object key, so that a Query reads
keys in order, without their histories. History lines and leases are stored under their plain names (items.py).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from typing import Any, Final

from auditor.ledger.dynamodb.items import NOTICED, STATE, WHOLE_KEY, Item, Name, digest_of

SHARDS: Final = 16
"""Number of shards (partitions) of a bucket. DynamoDB allows 1,000 writes a second to one partition ("Best practices
for partition keys")."""
LONGEST_NAME: Final = 106
"""Largest number of bytes in a sort key after the object key, for the item's own name; a longer name becomes a hash."""
_LONGEST_KEY: Final = 870
"""Number of bytes after which an object key is cut, at the end of a character. Cut key, hash of the key and the longest
name together fit into the 1,024 bytes of a sort key."""
_END: Final = "\x01"
"""Marks the end of the object key in a sort key, so that a key sorts before all longer keys that begin with it."""
_ESCAPES: Final = str.maketrans({"\0": "\x01\U0010fffe", "\x01": "\x01\U0010ffff"})
"""Replacements in a sort key for U+0000 and U+0001, the two characters that do not sort after _END. Keys with
replacements sort as before."""
_CUT: Final = "\U0010fffd"
"""Stands before the hash of a cut key, after _END. It sorts after the names of all items, and before all escapes."""
_LAST_NAME: Final = "\U0010fffc"
_PARTS: Final = re.compile(f"((?:[^{_END}]+|{_END}[\U0010fffe\U0010ffff])*){_END}(?:{_CUT}.{{32}})?(.*)", re.DOTALL)


def partitions(bucket: str) -> list[str]:
    """Return the pk of each shard of a bucket. No other item has such a pk, because it has no slash."""
    return [f"{bucket}#{number}" for number in range(SHARDS)]


def stored_name(name: Name) -> Name:
    """Return the pk and sk under which the table stores the item with this plain name."""
    pk, sk = name
    bucket, slash, key = pk.partition("/")
    if not slash or sk < STATE:
        return name
    return _partition(bucket, key), _beginning(key) + _short(sk)


def stored_range(pk: str, first: str) -> tuple[str, str, str]:
    """Return the pk, first sk and last sk under which the table stores a key's items from one on.

    pk, first: that item's plain name. If it is a history line, the range has all history lines after it.
    """
    if first < STATE:
        return pk, first, STATE
    bucket, _, key = pk.partition("/")
    beginning = _beginning(key)
    return _partition(bucket, key), beginning + first, beginning + _LAST_NAME


def first_sort_key(prefix: str, start_after: str) -> str:
    """Return the sort key from which to read a shard for the keys that begin with `prefix` and come after
    `start_after`.
    """
    return max(_END, _head(prefix), _head(start_after) + _END)


def cut_key(name: Name) -> str | None:
    """Return the object key of an item, if the item's stored sort key has only the beginning of it; None otherwise."""
    _, slash, key = name[0].partition("/")
    return key if slash and name[1] >= STATE and _head(key) != _escaped(key) else None


def own_name(stored: Mapping[str, Any]) -> Item:
    """Return a stored item under its plain name."""
    pk = stored["pk"]["S"]
    if "/" in pk or "#" not in pk:
        return Item(stored)
    key, _, name = stored["sk"]["S"].partition(_END)
    if name[:1] >= _CUT:
        parts: Any = _PARTS.fullmatch(stored["sk"]["S"])
        key, name = parts.groups()
        whole = Item(stored).text(WHOLE_KEY)
        key = whole or key.replace("\x01\U0010fffe", "\0").replace("\x01\U0010ffff", "\x01")
    return Item(stored, pk={"S": f"{pk.partition('#')[0]}/{key}"}, sk={"S": name})


def _partition(bucket: str, key: str) -> str:
    return f"{bucket}#{zlib.crc32(key.encode('utf-8', 'surrogatepass')) % SHARDS}"


def _beginning(key: str) -> str:
    """Return the text with which the sort keys of a key's items begin: the object key, or, if the key is too long, the
    beginning of the key and its hash.
    """
    head, escaped = _head(key), _escaped(key)
    return head + _END if head == escaped else f"{head}{_END}{_CUT}{digest_of(key)[:32]}"


def _escaped(key: str) -> str:
    return key.translate(_ESCAPES) if "\0" in key or "\x01" in key else key


def _head(key: str) -> str:
    """Return the key with escapes, or only its beginning: up to the character that makes it _LONGEST_KEY bytes long, or
    longer.
    """
    escaped = _escaped(key)
    if len(escaped) * 4 <= _LONGEST_KEY or _size(escaped) <= _LONGEST_KEY:
        return escaped
    if key.isascii() and escaped == key:
        return key[:_LONGEST_KEY]
    size = 0
    for index, letter in enumerate(key):
        size += _size(_escaped(letter))
        if size >= _LONGEST_KEY:
            return _escaped(key[: index + 1])
    return escaped


def _short(sk: str) -> str:
    if _size(sk) <= LONGEST_NAME:
        return sk
    return f"{NOTICED if sk.startswith(NOTICED) else ''}sha256:{digest_of(sk)}"


def _size(value: str) -> int:
    return len(value.encode("utf-8", "surrogatepass"))
