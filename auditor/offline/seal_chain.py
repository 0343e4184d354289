"""Follow the chain of seals: each seal names the run before it, with the SHA-256 of that run's summary, which has that
of its seal.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from auditor.errors import OutputError, UsageError
from auditor.model.json_codec import JsonError, parse_document
from auditor.runs.latest import last_run, latest_runs
from auditor.runs.paths import began_later, parse_run_id, run_path
from auditor.runs.reading import RunReader, read_seal
from auditor.runs.seal import NAME as SEAL
from auditor.runs.seal import Link, Seal, sha256_of

LINKS: Final = 10_000
"""Largest number of runs of the chain that are looked at."""


class SealChain:
    """Compares one run with the runs before and after it. The methods block.

    faults: a sentence, safe to print, for each difference that was found.
    """

    def __init__(self, run: RunReader) -> None:
        self._run = run
        self._store = run.store
        self.faults: list[str] = []

    def earlier(self, seal: Seal) -> list[str]:
        """Follow the chain to earlier runs. Return the IDs of the runs that match their digests in it."""
        found: list[str] = []
        if seal.previous is not None and not _is_earlier(seal.previous.run, self._run.run_id):
            self.faults.append(f"{SEAL} names a previous run that is not earlier")
        for link, data in self._links(seal):
            if link.sha256 is None:
                break
            if data is None:
                self._lacks_link(link, bool(found))
                break
            if sha256_of(data) != link.sha256:
                name = found[-1] if found else self._run.run_id
                self.faults.append(f"the summary of the earlier run {link.run} was altered after run {name} named it")
                break
            if not self._keeps_seal(link.run, data):
                self.faults.append(f"the seal of the earlier run {link.run} is not the one that its summary names")
                break
            found.append(link.run)
        return found

    def _lacks_link(self, link: Link, later: bool) -> None:
        """Add a fault if the run before this one has files, but has lost its summary. Runs further back in the chain
        may be deleted. later: True for a run further back.
        """
        folder = run_path(self._run.bucket_name, link.run)
        if not later and self._store.list(f"{folder}/"):
            self.faults.append(f"the earlier run {link.run} has lost its summary.json")

    def _links(self, seal: Seal) -> Iterator[tuple[Link, bytes | None]]:
        """Yield each earlier run that the chain of seals names, with the bytes of its summary. No run in the chain
        began in a later second than the one before.
        """
        link, run_id = seal.previous, seal.run
        for _ in range(LINKS):
            if link is None or not _is_earlier(link.run, run_id):
                return
            folder = run_path(self._run.bucket_name, link.run)
            yield link, self._store.get(f"{folder}/summary.json")
            earlier = read_seal(self._store, folder)
            run_id, link = link.run, earlier.previous if earlier else None

    def _keeps_seal(self, run_id: str, summary: bytes) -> bool:
        """True if the run has the seal that its summary names."""
        seal = self._store.get(f"{run_path(self._run.bucket_name, run_id)}/{SEAL}")
        try:
            return seal is not None and parse_document(summary)["sealed"][SEAL] == sha256_of(seal)
        except (JsonError, KeyError, TypeError):
            return False

    def named_by(self) -> str | None:
        """Return the name of a file or run that names this run as a complete one; None if none does."""
        with suppress(OutputError):
            for latest in latest_runs(self._store, self._run.bucket_name):
                if latest.run_id == self._run.run_id:
                    return "latest.json"
                later, seal = latest.run_id, read_seal(self._store, latest.path)
                for link, _ in self._links(seal) if seal else ():
                    if link.run == self._run.run_id:
                        return f"the later run {later}"
                    later = link.run
        return None

    def later(self, sha256: str) -> None:
        """Compare this run's summary with its digest in the seal of a later run. A difference shows that summary.json
        itself was altered.
        """
        try:
            summary = self._run.summary
            latest = last_run(self._store, summary.target) if summary else None
        except OutputError:
            return
        if latest is None or latest.run_id <= self._run.run_id:
            return
        if (seal := read_seal(self._store, latest.path)) is None:
            return
        later = latest.run_id
        for link, _ in self._links(seal):
            if link.run == self._run.run_id and link.sha256 != sha256:
                self.faults.append(f"summary.json was altered: the later run {later} names a different SHA-256 for it")
            if link.run <= self._run.run_id:
                return
            later = link.run


def _is_earlier(run_id: str, than: str) -> bool:
    """True if the text is the ID of another run, which did not begin in a later second than the run `than`."""
    try:
        parse_run_id(run_id)
    except UsageError:
        return False
    return run_id != than and not began_later(run_id, than)
