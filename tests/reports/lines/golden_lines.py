"""The goldens of lines: the bytes of each kind of line that odd results of judging make.

`make goldens` writes them anew, and `git diff` shows what changes in a run folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.support.encoded_lines import encode_finding, encode_object, encode_undecided
from tests.support.samples.odd_results import OddResult, odd_results

PLACE: Final = Path(__file__).parent / "goldens"


def golden(group: str) -> Path:
    """Return the file with the expected lines of a group."""
    return PLACE / f"{group}.jsonl"


def object_line(result: OddResult) -> bytes:
    """Return the line of the object, which ends with a newline."""
    return encode_object(result.judgement, result.hashed, result.keep_metadata, result.standing)


def finding_lines(result: OddResult) -> list[bytes]:
    """Return the lines of the findings, each with its newline."""
    judgement = result.judgement
    verdicts = [None if found.key is None else judgement.verdict for found in judgement.findings]
    pairs = zip(judgement.findings, verdicts, strict=True)
    return [encode_finding(found, verdict, result.finding) for found, verdict in pairs]


def lines(results: list[OddResult]) -> Iterator[tuple[str, bytes]]:
    """Yield each line of the results with its newline, and words that name it."""
    for result in results:
        yield f"{result.name}, the object", object_line(result)
        yield from ((f"{result.name}, a finding", line) for line in finding_lines(result))
        if (undecided := encode_undecided(result.judgement)) is not None:
            yield f"{result.name}, undecided", undecided


def main() -> None:
    PLACE.mkdir(exist_ok=True)
    for group, results in odd_results().items():
        golden(group).write_bytes(b"".join(line for _, line in lines(results)))


if __name__ == "__main__":
    main()
