"""Compute the digests of an object by several algorithms while its bytes are read once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Final, Protocol

from auditor.errors import UsageError
from auditor.hashing.digest import resumable
from auditor.hashing.digest.resumable import ResumableDigest
from auditor.model.digest import ALGORITHMS, SIZES

CRC64NVME: Final = "crc64nvme"
_NO_CRC64: Final = (
    "crc64nvme needs the package awscrt: from the project's folder, pip install '.[crc64]'; or ask for sha256"
)
STATE_DIGITS: Final[Mapping[str, int]] = {name: 2 * SIZES[name] for name in ALGORITHMS}
"""Number of hex digits of each algorithm's state, which is as long as its digest."""
_Checksum = Callable[[memoryview, int], int]


class Digest(Protocol):
    """A running digest of one algorithm: a hashlib object, a ResumableDigest or a Crc64."""

    def update(self, data: memoryview, /) -> None: ...
    def hexdigest(self) -> str: ...


class StatefulDigest(Digest, Protocol):
    """A running digest whose state can be saved, so that another process can continue it."""

    def state(self) -> str:
        """Return the digest's state in hex."""
        ...


class Crc64:
    """A running CRC-64/NVME checksum. Its state is the checksum of the bytes so far."""

    __slots__ = ("_checksum", "_value")

    def __init__(self, state: str | None = None) -> None:
        self._checksum = _crc64nvme()
        self._value = int(state, 16) if state else 0

    def update(self, data: memoryview, /) -> None:
        self._value = self._checksum(data, self._value)

    def hexdigest(self) -> str:
        return f"{self._value:016x}"

    def state(self) -> str:
        return self.hexdigest()


class Digester:
    """Running digests of the same bytes by several algorithms.

    count: number of bytes hashed so far. names: the algorithms.
    """

    __slots__ = ("_digests", "count")

    def __init__(self, digests: Mapping[str, Digest], count: int = 0) -> None:
        self._digests = digests
        self.count = count

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._digests)

    def update(self, data: memoryview) -> None:
        for digest in self._digests.values():
            digest.update(data)
        self.count += len(data)

    def hexdigests(self) -> dict[str, str]:
        return {name: digest.hexdigest() for name, digest in self._digests.items()}


class ResumableDigester(Digester):
    """A Digester whose states can be saved after any multiple of resumable.BLOCK bytes."""

    __slots__ = ("_stateful",)

    def __init__(self, digests: Mapping[str, StatefulDigest], count: int) -> None:
        super().__init__(digests, count)
        self._stateful = digests

    def states(self) -> dict[str, str]:
        return {name: digest.state() for name, digest in self._stateful.items()}


def make_digester(algorithms: Iterable[str]) -> Digester:
    """Return a Digester that uses hashlib, and whose states cannot be saved.

    Raises UsageError for crc64nvme if the package awscrt is missing.
    """
    return Digester({name: _plain(name) for name in algorithms})


def make_resumable(
    algorithms: Sequence[str], states: Mapping[str, str] | None = None, count: int = 0
) -> ResumableDigester | None:
    """Return a ResumableDigester; None if this machine's libcrypto cannot continue digests.

    states: the states in a checkpoint, by algorithm, after `count` bytes; None to begin at the object's first byte.
    """
    if resumable.refusal() is not None:
        return None
    given: Mapping[str, str] = states or {}
    return ResumableDigester(
        {
            name: Crc64(given.get(name)) if name == CRC64NVME else ResumableDigest(name, given.get(name), count)
            for name in algorithms
        },
        count,
    )


def has_crc64nvme() -> bool:
    """True if the package awscrt is installed, which computes crc64nvme."""
    try:
        _crc64nvme()
    except UsageError:
        return False
    return True


def _plain(name: str) -> Digest:
    if name == CRC64NVME:
        return Crc64()
    # The digests show that bytes are unchanged; no security depends on them. FIPS builds need this for sha1 and md5.
    return hashlib.new(name, usedforsecurity=False)


@cache
def _crc64nvme() -> _Checksum:
    try:
        from awscrt.checksums import crc64nvme  # dear, and for this algorithm alone
    except ImportError as error:
        raise UsageError(_NO_CRC64) from error
    checksum: _Checksum = crc64nvme
    return checksum
