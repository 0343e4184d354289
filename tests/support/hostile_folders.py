"""Run folders that somebody has made hostile: bombs, deep nesting, pipes, links, and files without end."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

MIB: Final = 1024 * 1024
FILES: Final = ("run.json", "seal.json", "rollups.json", "summary.json")
CHECKPOINT: Final = "checkpoint/00000.json"


def bomb(size: int) -> bytes:
    """Return a file in gzip that unpacks to one line of at least this many bytes."""
    piece = b"a" * 16 * MIB
    return gzip.compress(piece, mtime=0) * (size // len(piece) + 1)


def many_lists(size: int) -> bytes:
    """Return a JSON object of this size whose values take twenty times the memory."""
    return b'{"a": [' + b"[]," * (size // 3) + b"[]]}\n"


def deep(levels: int = 200_000) -> bytes:
    """Return a JSON object that is nested so deep."""
    return b'{"a": ' + b"[" * levels + b"]" * levels + b"}\n"


def _part(data: bytes, kind: str = "objects") -> Callable[[Path], None]:
    """Return a change that replaces the first part's file of a kind, and names the new one in the seal."""

    def change(folder: Path) -> None:
        file = folder / kind / "part-00000-00000.jsonl.gz"
        file.write_bytes(data)
        seal = json.loads((folder / "seal.json").read_bytes())
        for entry in seal["parts"]:
            if entry["path"] == f"{kind}/{file.name}":
                entry |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        (folder / "seal.json").write_text(json.dumps(seal))

    return change


def _each(name: str, make: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        make(folder / name)

    return change


def _killed(name: str, make: Callable[[Path], object]) -> Callable[[Path], None]:
    """Return a change that adds a file of a run that was killed, and takes its summary away."""

    def change(folder: Path) -> None:
        (folder / "summary.json").unlink()
        (folder / name).parent.mkdir()
        make(folder / name)

    return change


def _sparse(file: Path) -> None:
    file.touch()
    os.truncate(file, 20 * 1024**3)


def attacks() -> Iterator[tuple[str, Callable[[Path], None]]]:
    """Yield the changes of a run folder, each with its name."""
    first = b'{"key":"'
    yield "a line of a gigabyte", _part(bomb(1024 * MIB))
    yield "a key of a gigabyte", _part(gzip.compress(first, mtime=0) + bomb(1024 * MIB))
    yield "a finding of a gigabyte", _part(bomb(1024 * MIB), "findings")
    yield "a line that is nested deep", _part(gzip.compress(deep()))
    yield "a finding that is nested deep", _part(gzip.compress(deep()), "findings")
    for name, change in (*((name, _each) for name in FILES), (CHECKPOINT, _killed)):
        yield f"{name} of many lists", change(name, lambda file: file.write_bytes(many_lists(16 * MIB)))
        yield f"{name} that is nested deep", change(name, lambda file: file.write_bytes(deep()))
        yield (
            f"{name} of one text",
            change(name, lambda file: file.write_bytes(b'{"a": "' + "a\U0001f600".encode() * 10 * MIB + b'"}')),
        )
    parts = ("objects/part-00000-00000.jsonl.gz", "findings/part-00000-00000.jsonl.gz")
    for name, change in (*((name, _each) for name in (*FILES, *parts)), (CHECKPOINT, _killed)):
        yield f"{name} is a pipe", change(name, os.mkfifo)
        yield f"{name} is without end", change(name, lambda file: file.symlink_to("/dev/zero"))
        yield f"{name} is huge", change(name, _sparse)
