"""Damage to files, lines and messages: bytes that were valid become bytes that a disk, a person or an attacker left."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from copy import deepcopy
from random import Random
from typing import Any, Final

_RAW: Final = "\0raw"
"""Stands for a value until the JSON text is there: texts that no encoder writes replace it."""
_TWIN: Final = "\0twin"
"""The end of a member's name that takes the name of another member."""

ODD_TEXTS: Final = (
    *("null", "true", "false", "0", "-0", "-1", "1.0", "1.5", "1e3", "1e400", "-1e400", "1E+2", "01", "0x10", "+1"),
    *("NaN", "Infinity", "-Infinity", "9" * 400, "9" * 5000, f"-{2**63 + 1}", f"{2**63}", f"{2**63 + 1}", f"{2**64}"),
    *('""', '"x"', '"\\ud800"', '"\\udc00\\ud800"', '"\\ud83d\\ude00"', '"\\u0000"', '"\\x"', '"\t"', '"unended'),
    *('"2026-13-45T99:99:99Z"', '"0001-01-01T00:00:00+14:00"', '"9999-12-31T23:59:59-14:00"', '"2026-01-02"'),
    *('"20260102T030405Z-0a1b2c"', '"20260230T030405Z-0a1b2c"', '"../../etc/passwd"', '"00000"', '"exposed"', '"O02"'),
    *(
        "[]",
        "{}",
        "[[]]",
        "[null]",
        "[0]",
        '["a","a"]',
        '[["a",1]]',
        '{"":""}',
        '{"a":{"a":{"a":{}}}}',
        '{"x":1,"x":2}',
    ),
    *('{"unread":null}', '{"unread":{"action":"A","code":"c"}}', '{"unread":{}}', '{"skipped":"x"}', '{"skipped":1}'),
    *('{"partial":true}', '{"owner":"x","grants":[{}]}', '{"owner":"x","grants":{}}', "]", "}", "", "nul", "'x'"),
)
"""JSON texts, most of a wrong type, and texts that are no JSON."""
LARGE: Final = (f'"{"x" * 1025}"', f'"{"é" * 70_000}"', "[" * 60 + "]" * 60, "[" * 3000 + "]" * 3000, '{"a":' * 2000)
GIGANTIC: Final = (
    f'"{"x" * 2**21}"',
    f"[{'[],' * 700_000}[]]",
    "[" * 400_000 + "]" * 400_000,
    f'{{"a":{"1" * 2**21}}}',
)
"""Values that take a line beyond its limit of a MiB, and a file beyond that of memory."""
BYTES: Final = (b'"\xff"', b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\xc0\x80"', b'"\x00"', b"\xef\xbb\xbf1")
"""JSON texts that are not UTF-8."""


class Damager:
    """Makes damage by chance; equal seeds make equal damage."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)

    def damaged(self, data: bytes) -> tuple[str, bytes]:
        """Return damaged bytes and the kind of the damage. data: a JSON text, perhaps with a newline at its end."""
        ways: tuple[Callable[[bytes], bytes], ...] = (self._member, self._member, self._member, self._bytes)
        way = self.chance.choice(ways)
        return way.__name__.strip("_"), way(data)

    def flipped(self, data: bytes) -> bytes:
        """Return bytes of any kind with bits flipped, cut, inserted or repeated."""
        return self._bytes(data)

    def _at(self, data: bytes) -> int:
        return self.chance.randrange(len(data) + 1)

    def _bytes(self, data: bytes) -> bytes:
        chance, at, length = self.chance, self._at(data), self.chance.choice((1, 1, 2, 8, 100))
        junk = chance.choice((chance.randbytes(length), b'"', b"\\", b"{", b"}", b",", b"\n", b"\0", b"\\ud800"))
        one = bytes([data[at] ^ 1 << chance.randrange(8)]) if at < len(data) else b""
        return chance.choice(
            (
                data[:at] + one + data[at + 1 :],
                data[:at] + one + data[at + 1 :],
                data[:at],
                data[:at] + data[at + length :],
                data[:at] + junk + data[at:],
                data[:at] + junk + data[at + len(junk) :],
                data[:at] + data[max(at - length, 0) :],
                data + chance.choice((b"{}", b"\n", b"x", data)),
                chance.choice((b"", b"\n", b"[]", b"null", b"0", b'"x"', b"\xef\xbb\xbf" + data)),
                data.decode(errors="replace").encode("utf-16"),
            )
        )

    def _value(self) -> bytes:
        chance, odds = self.chance, self.chance.random()
        if odds < 0.01:
            return chance.choice(GIGANTIC).encode()
        if odds < 0.06:
            return chance.choice(LARGE).encode()
        return chance.choice(BYTES) if odds < 0.12 else chance.choice(ODD_TEXTS).encode()

    def _member(self, data: bytes) -> bytes:
        """Return a JSON text in which one member or item has another value or name, is gone, or stands twice."""
        chance, value = self.chance, json.loads(data)
        holders = [one for one in _holders(value) if one]
        holder = chance.choice(holders) if holders else {}
        place: Any = chance.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        others = [one for found in holders for one in (found.values() if isinstance(found, dict) else found)]
        match chance.randrange(8):
            case 0:
                del holder[place]
            case 1:
                holder[place] = deepcopy(chance.choice(others))
            case 2 if isinstance(holder, dict):
                holder[f"{place}{_TWIN}"] = _RAW
            case 3 if isinstance(holder, dict):
                holder[f"{place}{chance.choice(('x', ' ', _TWIN))}"] = holder.pop(place)
            case 4 if isinstance(holder, list):
                holder *= chance.choice((2, 50))
            case 5 if isinstance(holder, dict):
                holder[chance.choice(("more", "format", "key", "run", "unread", "skipped"))] = _RAW
            case _:
                holder[place] = _RAW
        compact = not data.startswith(b"{\n") and b'": ' not in data
        written = json.dumps(value, ensure_ascii=chance.random() < 0.3, separators=(",", ":") if compact else None)
        text = written.encode(errors="surrogatepass").replace(json.dumps(_TWIN)[1:-1].encode(), b"")
        return text.replace(json.dumps(_RAW).encode(), self._value()) + (b"\n" if data.endswith(b"\n") else b"")


def damaged_inputs(usual: int) -> int:
    """Return the number of inputs to try, of AUDITOR_DAMAGED in all (600 by default): `usual` if it is 2,000."""
    return -(-usual * int(os.environ.get("AUDITOR_DAMAGED", "600")) // 2000)


def _holders(value: Any) -> Iterator[Any]:
    """Yield each object and list in a JSON value."""
    if isinstance(value, dict | list):
        yield value
        for one in value.values() if isinstance(value, dict) else value:
            yield from _holders(one)


def plainly(data: str | bytes) -> dict[str, Any] | None:
    """Return the JSON object that a strict parser reads from a text or UTF-8 bytes; None if there is none. Of two
    members with one name, the last one counts. A number of very many digits becomes infinity, which equals none.
    """

    def refuse(name: str) -> None:
        raise ValueError(name)

    def whole(text: str) -> int | float:
        return int(text) if len(text) < 1000 else float(text)

    try:
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
        value = json.loads(text, parse_constant=refuse, parse_int=whole)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def differs(found: Any, given: Any, path: str = "it") -> str | None:
    """Return the path at which a value that was read differs from the JSON value that was given; None if it does not.
    Members that only one of the two has do not count.
    """
    if isinstance(found, dict) and isinstance(given, dict):
        pairs = [(f"{path}.{name}", found[name], given[name]) for name in found if name in given]
    elif isinstance(found, list) and isinstance(given, list) and len(found) == len(given):
        pairs = [(f"{path}[{number}]", *pair) for number, pair in enumerate(zip(found, given, strict=True))]
    else:
        alike = type(found) is type(given) or (isinstance(found, float) and type(given) is int)
        return None if alike and found == given else path
    return next((one for pair in pairs if (one := differs(pair[1], pair[2], pair[0])) is not None), None)
