"""The items of a DynamoDB ledger: their plain names (pk and sk) and their attributes. table.py has the stored names.

The item of a digest has the sk "version#etag". The sk of every other item begins with a space.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from auditor.errors import LedgerError
from auditor.ledger.base import Entry, Expectation, Known, Version
from auditor.ledger.key_record import KeyRows, Latest, NoticedVersion, source_of
from auditor.ledger.matching import NULL, LedgerRow
from auditor.ledger.seals import row_seal

Name = tuple[str, str]
"""Name of an item: its pk (partition key) and its sk (sort key)."""

# The order of these prefixes matters: a query from STATE on leaves out the many claims and history lines, a query from
# HISTORY on, which ends before STATE, leaves out claims, and a query from DIGESTS on reads digests alone.
CLAIM: Final = " claim#"
HISTORY: Final = " history#"
STATE: Final = " i"
MANIFEST: Final = " manifest#"
NOTICE: Final = " notice"
NOTICED: Final = " told#"
DIGESTS: Final = "!"

_LONGEST_PK: Final = 2048
_LONGEST_IDENTITY: Final = 1000
"""Largest number of bytes of identity(). DynamoDB allows 1,024 in a sort key, and some sort keys put a prefix before
it."""
WHOLE_KEY: Final = "whole_key"
"""Attribute with the whole object key, in an item whose sort key has only the beginning of the key."""
_OWN: Final = frozenset({"pk", "sk", "size", "etag", "place"})
"""Attributes that are not digests. Attributes with an underscore in their names are not digests either: no algorithm
has such a name."""


def partition(bucket: str, key: str) -> str:
    """Return the pk of the plain names of an object key's items. Raises LedgerError if the pk is too long."""
    pk = f"{bucket}/{key}"
    if len(pk.encode("utf-8", "surrogatepass")) > _LONGEST_PK:
        raise LedgerError(f"the key {key[:100]!r}.. in bucket {bucket!r} is too long for DynamoDB: use sqlite:PATH")
    return pk


def identity(version_id: str | None, etag: str) -> str:
    """Return the sk of the item with an object version's digests: "version#etag".

    If that text is too long or ambiguous, or would sort among the items that are no digests (before DIGESTS), the sk is
    a hash of version ID and ETag.
    """
    version = version_id or NULL
    plain = f"{version}#{etag}"
    if "#" not in version and plain >= DIGESTS and len(plain.encode("utf-8", "surrogatepass")) <= _LONGEST_IDENTITY:
        return plain
    return f"sha256:{digest_of(version, etag)}"


def entry_name(entry: Entry) -> Name:
    return partition(entry.bucket, entry.key), identity(entry.version_id, entry.etag)


def manifest(algorithm: str, origin: str) -> str:
    """Return the sk of the item with an expected digest by this algorithm, from the manifest with the name `origin`."""
    return MANIFEST + digest_of(algorithm, origin)


def digest_of(*parts: str) -> str:
    """Return one SHA-256 of these texts together, in hexadecimal."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def seal_of(bucket: str, key: str, version: Version, algorithm: str) -> str:
    """Return the seal (a hash) that a digest in an item must have. The seal covers all fields of the digest except the
    time of its last verification.
    """
    known, identity = version.digests[algorithm], (version.version_id, version.etag, version.size, algorithm)
    return row_seal(bucket, key, *identity, known.digest, known.source, known.recorded_at, known.bytes_read)


class Item(dict[str, Mapping[str, Any]]):
    """An item of the table: its attributes by name, each as DynamoDB writes it ({"S": text}; AttributeValue)."""

    def text(self, name: str) -> str | None:
        value = self.get(name, {}).get("S")
        return None if value is None else str(value)

    def number(self, name: str) -> int | None:
        """Return an attribute that is a whole number; None if it is missing or damaged."""
        value = self.get(name, {}).get("N")
        try:
            return None if value is None else int(value)
        except ValueError:  # DynamoDB has fractions and exponents too
            return None

    def row(self) -> LedgerRow:
        """Return the digests in the item, with the version ID and the ETag: from its sort key, or from attributes if
        that is only a digest.
        """
        version, _, etag = self["sk"]["S"].partition("#")
        version, etag = self.text("version_id") or version, self.text("etag") or etag
        digests = {
            name: value["S"] for name, value in self.items() if "_" not in name and name not in _OWN and "S" in value
        }
        return LedgerRow(version, etag, self.number("size") or 0, digests)

    def checked_row(self, bucket: str, key: str) -> tuple[LedgerRow, bool]:
        """Return the undamaged digests in the item, and True if it has a damaged one.

        A look-up needs no more of evidence(), and an audit makes one for each known object.
        """
        found = self.row()
        damaged = [name for name in found.digests if not self._seal_holds(bucket, key, found, name)]
        if not damaged:
            return found, False
        digests = {name: digest for name, digest in found.digests.items() if name not in damaged}
        return LedgerRow(found.version_id, found.etag, found.size, digests), True

    def _seal_holds(self, bucket: str, key: str, found: LedgerRow, name: str) -> bool:
        """True if the seal of a digest holds. found: the item's version and digests."""
        at, read = self.text(f"{name}_at") or "", self.number(f"{name}_bytes_read") or 0
        recorded = (name, found.digests[name], source_of(self.text(f"{name}_source")), at, read)
        return self.text(f"{name}_seal") == row_seal(bucket, key, found.version_id, found.etag, found.size, *recorded)

    def evidence(self, bucket: str, key: str) -> tuple[Version, int]:
        """Return the object version that the item is about, with its digests, and the number that orders the item among
        the writes of its key.
        """
        found = self.row()
        known = {
            name: Known(
                digest=digest,
                source=source_of(self.text(f"{name}_source")),
                recorded_at=self.text(f"{name}_at") or "",
                verified_at=self.text(f"{name}_verified_at"),
                bytes_read=self.number(f"{name}_bytes_read") or 0,
                damaged=not self._seal_holds(bucket, key, found, name),
            )
            for name, digest in found.digests.items()
        }
        version = Version.of(found.version_id, found.etag, found.size, known, self.text("hashed_at"))
        return version, self.number("place") or 0

    def latest(self) -> Latest | None:
        """Return the newest notification of a key, which the item holds; None if there is no item."""
        if not self:
            return None
        return Latest(
            self.text("sequencer") or "",
            bool(self.get("deleted", {}).get("BOOL")),  # damaged: the object is expected
            self.text("at") or "",
            self.text("version_id"),
        )

    def noticed_version(self) -> NoticedVersion | None:
        """Return the notification or Mark that the item holds; None if there is no item."""
        if not self:
            return None
        return NoticedVersion(self.text("sequencer") or "", self.number("place") or 0, self.text("at") or "")

    def add_to(self, rows: KeyRows, bucket: str, key: str) -> None:
        """Add the item, which belongs to the key, to `rows`: digests, an expected digest, a notification or a Mark.

        The item must not be a history line or a lease, whose sk comes before STATE.
        """
        sk = self["sk"]["S"]
        if sk >= DIGESTS:
            rows.versions.append(self.evidence(bucket, key))
        elif sk.startswith(MANIFEST):
            expected = {name: self.text(name) or "" for name in ("algorithm", "digest", "origin", "imported_at")}
            rows.expectations.append(Expectation(key=key, size=self.number("size"), **expected))
        elif sk == NOTICE:
            rows.latest = self.latest()
        elif sk.startswith(NOTICED) and (found := self.noticed_version()):
            rows.noticed[self.text("version_id") or NULL, self.text("etag") or ""] = found
