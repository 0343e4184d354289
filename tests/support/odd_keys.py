"""Keys that S3 allows and software trips over; every part of the product passes them on unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ODD_KEYS: Final[Mapping[str, str]] = {
    "space": "a key with spaces",
    "trailing space": "trailing space ",
    "leading space": " leading space",
    "plus": "a+b",
    "plus and space": "a + b+ c",
    "percent": "100%",
    "percent escape": "%41",
    "percent escape of a plus": "a%2Bb c",
    "question mark": "what?now=1",
    "hash": "page#part",
    "ampersand": "a=b&c=d",
    "semicolon and colon": "a;b:c@d,e$f",
    "nfc": "caf\u00e9",
    "nfd": "cafe\u0301",
    "emoji": "\U0001f4e6/\U0001f469\u200d\U0001f52c.png",
    "beyond the bmp": "\U00010348",
    "newline": "line one\nline two",
    "carriage return": "line one\rline two",
    "both line ends": "one\r\ntwo",
    "tab": "a\tb",
    "control": "a\x01b\x1bc",
    "delete": "a\x7fb",
    "double slash": "a//b",
    "leading slash": "/leading",
    "trailing slash": "folder/",
    "two leading slashes": "//host/share",
    "parent": "../up",
    "parent inside": "a/../b",
    "only a dot": ".",
    "dot segment": "a/./b",
    "only two dots": "..",
    "backslash": "a\\b",
    "double quote": 'say "x"',
    "single quote": "it's",
    "markup": "<script>alert(1)</script>",
    "entity": "a&amp;b&#10;c",
    "formula": "=cmd()",
    "right to left": "\u202egpj.exe",
    "separator": "a\u2028b",
    "byte order mark": "\ufeffa",
    "braces and bars": "{a}|[b]^`c`~*",
    "longest": "\u20ac" * 341 + "x",
}
"""Name to key; the longest is S3's limit of 1,024 bytes of UTF-8."""

MOTO_REFUSES: Final = frozenset({"newline", "both line ends"})
"""Names of the keys that moto 5.2 cannot hold: every call for a key with a newline is a 404."""

MOTO_LISTS_NO_VERSIONS: Final = MOTO_REFUSES | {"carriage return", "control"}
"""Names of those that moto's ListObjectVersions spoils, for it ignores encoding-type (and does not claim to know it).

A carriage return comes back as a newline; one control character makes the listing of the whole bucket unreadable.
"""

MOTO_SERVES: Final[Mapping[str, str]] = {name: key for name, key in ODD_KEYS.items() if name not in MOTO_REFUSES}
"""The keys that moto lists (ListObjectsV2), and serves to HEAD, GET and GetObjectAcl, truly."""
