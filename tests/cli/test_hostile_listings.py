"""Every command that lists refuses a listing that cannot be right: exit 1, and the sentence names the key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from auditor.errors import OutputError
from auditor.runs.stores import open_store
from tests.cli.conftest import Run
from tests.support.engine_names import OURS_FIRST
from tests.support.servers.clients import BUCKET
from tests.support.servers.hooked import HookedServer
from tests.support.servers.stub_answers import reply_of
from tests.support.servers.stub_calls import LISTINGS, Call, Reply
from tests.support.servers.world import World

TARGET = f"s3://{BUCKET}/wanted/"
LONG = f"wanted/{'é' * 509}"
"""A key of 1,025 bytes, and of far fewer characters."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[HookedServer]:
    world = World()
    world.add(BUCKET)
    with HookedServer(world) as running:
        for key in ("wanted/a", "wanted/b", "wanted/c"):
            running.put(BUCKET, key, b"x", acl="private")
        monkeypatch.setenv("AUDITOR_ENDPOINT_URL", running.url)
        yield running


def without_prefix(server: HookedServer, *, after_first: bool = False) -> None:
    """The server lists all keys, whatever the prefix. after_first: only where a listing begins after a key."""

    def hook(call: Call) -> Reply | None:
        begins = {"start-after", "key-marker", "continuation-token"} & call.query.keys()
        if call.operation not in LISTINGS or (after_first and not begins):
            return None
        return reply_of(server.world, replace(call, query={**call.query, "prefix": ""}))

    server.hook = hook


def ignores_the_prefix(server: HookedServer) -> str:
    server.put(BUCKET, "other/\x1b[31mx", b"x")
    without_prefix(server)
    return r"other/\x1b[31mx, which does not begin with the prefix"


def turns_the_order(server: HookedServer) -> str:
    def hook(call: Call) -> Reply | None:
        if call.operation not in LISTINGS:
            return None
        reply = reply_of(server.world, call)
        text = reply.body.decode()
        entries = re.findall(r"<(?:Contents|Version)>.*?</(?:Contents|Version)>", text)
        return replace(reply, body=text.replace("".join(entries), "".join(reversed(entries))).encode())

    server.hook = hook
    return "wanted/b, not in the order of its keys"


def names_a_key_that_is_too_long(server: HookedServer) -> str:
    server.put(BUCKET, LONG, b"x")
    return f"{LONG[:100]}.., a key of 1,025 bytes"


def names_a_size_below_zero(server: HookedServer) -> str:
    server.put(BUCKET, "wanted/minus", b"x").size = -7
    return "wanted/minus, with -7 bytes"


COMMANDS = (
    ("audit", TARGET),
    ("audit", TARGET, "--versions"),
    ("audit", TARGET, "--jobs", "2"),
    ("audit", TARGET, "--stop-at", "wanted/x"),
    ("estimate", TARGET),
    ("hash", TARGET, "--ledger", "sqlite:digests.db"),
    ("plan", TARGET, "--ranges", "2"),
    ("verify", TARGET, "--ledger", "sqlite:digests.db"),
    ("verify", TARGET, "--ledger", "sqlite:digests.db", "--versions"),
    ("explain", f"s3://{BUCKET}/zzz/there"),
    ("explain", f"s3://{BUCKET}/zzz/invented"),
    ("explain", f"s3://{BUCKET}/zzz/there", "--version-id", "null"),
    ("explain", f"s3://{BUCKET}/zzz/marked"),
)


@pytest.mark.parametrize("engine", OURS_FIRST)
def test_every_engine(run: Run, server: HookedServer, engine: str) -> None:
    for fault in (ignores_the_prefix, turns_the_order, names_a_key_that_is_too_long, names_a_size_below_zero):
        server.hook = lambda call: None
        bucket = server.world.add(BUCKET)
        for key in ("wanted/a", "wanted/b", "wanted/c"):
            bucket.put(key, b"x")
        words = fault(server)
        code, out, err = run("audit", TARGET, "--engine", engine)
        assert (code, out, words in err) == (1, "", True), err


def test_every_command(run: Run, server: HookedServer) -> None:
    bucket = server.world.buckets[BUCKET]
    bucket.versioning = "Enabled"
    server.put(BUCKET, "zzz/there", b"x", acl="public-read")
    bucket.put("zzz/marked", b"x")
    bucket.delete("zzz/marked")
    assert run("hash", TARGET, "--ledger", "sqlite:digests.db")[0] == 0  # there is no verification without a ledger
    words, failures = ignores_the_prefix(server), []
    for command in COMMANDS:
        code, out, err = run(*command)
        if (code, out) != (1, "") or words not in err:
            failures.append((command, code, out, err))
    assert not failures, failures


def test_fault_on_a_later_page_keeps_the_lines_before(run: Run, server: HookedServer, tmp_path: Path) -> None:
    for number in range(1100):
        server.put(BUCKET, f"wanted/k{number:04}", b"x")
    server.put(BUCKET, "wanted0", b"x")
    without_prefix(server, after_first=True)
    code, out, err = run("audit", TARGET, "--level", "exposure", "--concurrency", "4")
    assert (code, out) == (1, "")
    assert "names wanted0" in err
    checkpoints = list(tmp_path.rglob("checkpoint/00000.json"))
    assert len(checkpoints) == 1
    assert json.loads(checkpoints[0].read_text())


def test_planner_does_not_pass_over_a_page_that_cannot_be_right(run: Run, server: HookedServer) -> None:
    """The plan of a large target goes on with the keys that it knows if a call fails. This page is no failed call."""
    for number in range(9000):
        server.put(BUCKET, f"wanted/k{number:04}", b"x")
    server.put(BUCKET, "wanted0", b"x")
    asked = 0

    def hook(call: Call) -> Reply | None:
        nonlocal asked
        asked += call.operation in LISTINGS
        if call.operation not in LISTINGS or asked < 15:
            return None
        return reply_of(server.world, replace(call, query={**call.query, "prefix": ""}))

    server.hook = hook
    code, out, err = run("plan", TARGET, "--ranges", "2")
    assert (code, out) == (1, "")
    assert "names wanted0" in err or "names wanted/" in err


def test_store_of_run_folders_takes_no_foreign_file_for_its_own(server: HookedServer) -> None:
    """Files that a run does not need any more are deleted as they are listed."""
    server.put(BUCKET, "runs/bucket=audited/run=1/inventory/part", b"x")
    folder = "bucket=audited/run=1/inventory/"
    for sdk in (False, True):
        server.hook = lambda call: None
        with open_store(f"s3://{BUCKET}/runs", endpoint_url=server.url, sdk=sdk) as store:
            assert store.list(folder) == [f"{folder}part"]
            without_prefix(server)
            with pytest.raises(OutputError, match="names wanted/a, which does not begin with the prefix"):
                store.list(folder)
