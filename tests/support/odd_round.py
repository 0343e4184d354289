"""The whole way of a key, for any server: list, read, queue, hash, recognise, report."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import markupsafe

from auditor.ledger import open_ledger
from auditor.model.object import ObjectRef
from auditor.text import visible
from tests.support.paths import ROOT


@dataclass(frozen=True, slots=True)
class Round:
    """objects: the lines of the first audit. digests: the ledger's sha256 by key. known: of the second audit."""

    objects: list[dict[str, Any]]
    digests: dict[str, str]
    known: int
    page: str

    def check(self, expected: Mapping[str, str]) -> None:
        """Every key arrives unchanged, with the digest of its own bytes. expected: sha256 by key."""
        assert [line["key"] for line in self.objects] == sorted(expected)
        assert self.digests == expected
        assert self.known == len(expected)

    def check_page(self, keys: Iterable[str]) -> None:
        """The page names samples of the keys, each whole and as text."""
        named = [key for key in keys if f">{markupsafe.escape(visible(key))}</code>" in self.page]
        assert len(named) >= 5
        assert all(character.isprintable() or character == "\n" for character in self.page)


async def go_round(
    endpoint: str, bucket: str, moto_url: str, engine: str, folder: Path, environment: Mapping[str, str]
) -> Round:
    """Audit to the queue, work, audit again; commands as a user runs them. The queue is moto's."""
    sqs: Any = boto3.client("sqs", endpoint_url=moto_url)
    queue = sqs.create_queue(QueueName=f"round-{uuid4().hex}")["QueueUrl"]
    sqs.close()
    places = ["--ledger", "sqlite:digests.db", "--queue", queue]
    flags = [*places, "--endpoint-url", endpoint, "--engine", engine, "--format", "json"]

    def auditor(*arguments: str) -> dict[str, Any]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AUDITOR_")}
        done = subprocess.run(
            [sys.executable, "-m", "auditor", *arguments, *flags],
            cwd=folder,
            env={**kept, "PYTHONPATH": str(ROOT), **environment},
            capture_output=True,
            check=False,
            timeout=300,
        )
        assert done.returncode in (0, 3, 4), done.stderr.decode()
        summary: dict[str, Any] = json.loads(done.stdout)
        return summary

    first = auditor("audit", f"s3://{bucket}")
    worked = auditor("work", "--idle", "0.2")
    assert worked["failed"] == 0
    second = auditor("audit", f"s3://{bucket}")
    run = folder / "auditor-runs" / f"bucket={bucket}" / f"run={first['run']}"
    objects = [
        json.loads(line)
        for part in sorted((run / "objects").glob("*.gz"))
        for line in gzip.decompress(part.read_bytes()).splitlines()
    ]
    return Round(
        objects,
        await _digests(folder, bucket, objects),
        second["hashing"]["known"],
        (run / "report.html").read_text(encoding="utf-8"),
    )


async def _digests(folder: Path, bucket: str, objects: list[dict[str, Any]]) -> dict[str, str]:
    refs = [ObjectRef(line["key"], line["etag"], line["size"], line["last_modified"]) for line in objects]
    async with open_ledger(f"sqlite:{folder / 'digests.db'}") as ledger:
        found = await ledger.known(bucket, refs, ["sha256"])
    return {ref.key: digests.get("sha256", "") for ref, digests in zip(refs, found, strict=True)}
