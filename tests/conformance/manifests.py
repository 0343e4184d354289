"""The conformance suite of checksum manifests: each check takes a form and an empty folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from auditor.errors import ManifestError
from auditor.ledger.base import AUDITOR, KeyRecord, Known, Version
from auditor.ledger.manifests.base import Form, ManifestFile

from .engines.world import ODD_KEYS

ManifestCheck = Callable[[Form, Path], None]
_THEN: Final = "2026-01-02T03:04:05Z"


def odd_names_come_back_unchanged(form: Form, folder: Path) -> None:
    names = [name for name in ODD_KEYS.values() if form.nameable(name)]
    assert names
    path = _written(form, folder, names)
    records = [(one.name, one.digest) for one in form.read(ManifestFile(str(path)))]
    assert records == [(name, _digest(form, name)) for name in names]


def lines_of_a_key_without_the_digest_are_none(form: Form, folder: Path) -> None:
    record = KeyRecord(key="k", versions=(_version(form, "k"),))
    other = next(name for name in ("md5", "sha256") if name != form.algorithms[0])
    assert b"".join(form.rows("k", record, (other,))) == b""


def a_digest_of_another_length_is_refused(form: Form, folder: Path) -> None:
    path = _written(form, folder, ["a"])
    digest = _digest(form, "a").encode()
    path.write_bytes(path.read_bytes().replace(digest, digest[:-1]))
    refusal = ""
    try:
        list(form.read(ManifestFile(str(path))))
    except ManifestError as error:
        refusal = str(error)
    assert str(path) in refusal


def _digest(form: Form, name: str) -> str:
    return hashlib.new(form.algorithms[0], name.encode()).hexdigest()


def _version(form: Form, name: str) -> Version:
    known = Known(digest=_digest(form, name), source=AUDITOR, recorded_at=_THEN, verified_at=None, bytes_read=1)
    return Version(version_id="null", etag="e", size=1, digests={form.algorithms[0]: known}, first_seen=_THEN)


def _written(form: Form, folder: Path, names: list[str]) -> Path:
    """Write a manifest with one digest for each name."""
    lines = [form.head]
    for name in names:
        record = KeyRecord(key=name, versions=(_version(form, name),))
        lines += form.rows(name, record, (form.algorithms[0],))
    path = folder / f"manifest-{form.algorithms[0]}.txt"
    path.write_bytes(b"".join(lines))
    return path


CHECKS: Final[tuple[ManifestCheck, ...]] = (
    odd_names_come_back_unchanged,
    lines_of_a_key_without_the_digest_are_none,
    a_digest_of_another_length_is_refused,
)
