"""The screens of docs/quickstart.md for a bucket of one's own are those of the commands that it shows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Final

import pytest

from auditor.model.object import Grant
from tests.cli.conftest import Run
from tests.support.paths import ROOT
from tests.support.servers.strangers import StrangersServer
from tests.support.servers.world import OWNER

PAGE: Final = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
SCREENS: Final = re.findall(r"^```console\n\$ auditor (.*)\n((?s:.*?))^```", PAGE, re.MULTILINE)
"""Each command of the page that stands with its output, and the output. A line of two dots leaves lines out."""
PARTNER: Final = "b2" * 32


@pytest.fixture
def server() -> Iterator[StrangersServer]:
    """my-bucket with 400 objects: one is public, and one is shared with a partner."""
    with StrangersServer() as server:
        bucket = server.world.add("my-bucket")
        bucket.put("2026/salaries.csv", b"x", acl="public-read")
        grants = (Grant(OWNER, "FULL_CONTROL"), Grant(PARTNER, "READ"))
        bucket.put("2026/contract.pdf", b"x", grants=grants)
        for number in range(398):
            bucket.put(f"2026/report-{number:03}.txt", b"x")
        yield server


def test_each_screen_of_an_own_bucket_is_the_output_of_its_command(run: Run, server: StrangersServer) -> None:
    assert [command.split()[0] for command, _ in SCREENS] == ["audit", "explain", "probe"]
    for (command, shown), expected in zip(SCREENS, (3, 0, 0), strict=True):
        code, out, err = run(*shlex.split(command), "--endpoint-url", server.url)
        assert code == expected, err
        lines = iter(out.splitlines())
        missing = [line for line in shown.splitlines() if line != ".." and line not in lines]
        assert missing == [], out + err
