"""The files of an estate in the store of run folders: the report of each start, and that of the last one.

Each estate has a folder of its own, so that several estates may share a store. FOLDER/start=ID/estate.json is the
report of a start, and FOLDER/estate.json is that of the last start.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from auditor.errors import OldRun, UsageError
from auditor.model.estate import EarlierEstate, EstateReport
from auditor.model.json_codec import JsonError, OldFormatError, parse_document, plain, typed
from auditor.runs.paths import began_later, parse_run_id
from auditor.runs.run_files import damaged
from auditor.runs.stores.base import Store, json_file

NAME: Final = "estate.json"
KINDS: Final = ("account=", "estate=")
"""The beginnings of the names of folders."""
_LAST: Final = re.compile(r"(?:account|estate)=[^/]+/estate\.json")


def folder_of(name: str | None, account: str | None) -> str:
    """Return the folder of an estate. name: that of its file; None for every bucket of one account. account: the number
    of that account; None if it is not known.
    """
    return f"account={account or 'own'}" if name is None else f"estate={name}"


class EstateFiles:
    """The files of one estate. accounts: the numbers of its accounts. All methods block, and raise OutputError.

    A damaged file is an error, because the names in it are those of buckets that must not be forgotten.
    """

    def __init__(self, store: Store, folder: str, accounts: Collection[str | None]) -> None:
        self._store = store
        self._accounts = frozenset(accounts)
        self.folder = folder

    def last(self) -> EarlierEstate | None:
        """Return the report of the last start; None if there is none.

        Raises UsageError if it is on other accounts only: then two files of one name share a store.
        """
        found = _read(self._store, f"{self.folder}/{NAME}")
        if found is None:
            return None
        others = found.numbers - {None}
        if others and self._accounts - {None} and not others & self._accounts:
            named = ", ".join(sorted(map(str, others))[:5])
            raise UsageError(f'{self.uri} belongs to other accounts ({named}): write name = ".." into this estate file')
        return found

    def start(self, start: str) -> EarlierEstate | None:
        """Return the report of a start as far as it has come; None if there is none."""
        return _read(self._store, self._path(start))

    def around(self, start: str) -> tuple[EarlierEstate | None, EarlierEstate | None]:
        """Return the report of a start as an earlier process left it, and that of the start before. None: there is
        none.
        """
        own = self.start(start)
        if own is None:
            return None, self.last()
        return own, None if own.since is None else self.start(own.since)

    @property
    def uri(self) -> str:
        """The URI of the folder."""
        return self._store.uri(self.folder)

    def write(self, report: EstateReport) -> None:
        """Write the report of a start. It is the last one unless a later start has written its own."""
        self._store.put(self._path(report.estate), json_file(plain(report)))

        def change(value: dict[str, Any] | None) -> dict[str, Any] | None:
            later = value is not None and began_later(str(value.get("estate", "")), report.estate)
            return None if later else plain(report)

        self._store.update_json(f"{self.folder}/{NAME}", change)

    def _path(self, start: str) -> str:
        parse_run_id(start)
        return f"{self.folder}/start={start}/{NAME}"


def last_estates(store: Store) -> list[EarlierEstate]:
    """Return the last report of each estate in a store, the newest first. Blocks. Raises OutputError."""
    found = [one for path in _last_paths(store) if (one := _read(store, path)) is not None]
    return sorted(found, key=lambda one: one.estate, reverse=True)


def _last_paths(store: Store) -> list[str]:
    if store.bucket is None:  # a directory, which may have much else below it
        root = Path(store.uri())
        return sorted(path.relative_to(root).as_posix() for kind in KINDS for path in root.glob(f"{kind}*/{NAME}"))
    return [path for kind in KINDS for path in store.list(kind) if _LAST.fullmatch(path)]


def _read(store: Store, path: str) -> EarlierEstate | None:
    data = store.get(path)
    if data is None:
        return None
    try:
        return typed(EarlierEstate, parse_document(data))
    except OldFormatError as error:
        raise OldRun(f"{store.uri(path)} {error.problem}, with another --out") from error
    except JsonError as error:
        raise damaged(store.uri(path), error, "move it away, and start again") from error
