"""The bytes of a checkpoint, which other versions of the auditor read, and the damage that is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from auditor.errors import OldRun, RunDamaged
from auditor.model.json_codec import plain
from auditor.runs.checkpoint import Checkpoint, RangeEnd
from auditor.runs.run_files import parsed
from auditor.runs.tally import Tally
from tests.support.samples.reports import RUN

PLAIN = Checkpoint(
    run=RUN,
    next_part=3,
    start_after="photos/c",
    tally=Tally(),
)
WRITTEN: dict[str, Any] = {
    "format": 1,
    "run": RUN,
    "next_part": 3,
    "start_after": "photos/c",
    "tally": plain(Tally()),
}


def test_it_is_one_line_of_json_and_reads_back() -> None:
    for checkpoint, more in (
        (PLAIN, {}),
        (replace(PLAIN, skipped_parts=(0, 2)), {"void": [0, 2]}),
        (replace(PLAIN, writer="a process"), {"writer": "a process"}),
        (replace(PLAIN, ended=RangeEnd(lacks_acls=True)), {"ended": {"lacks_acls": True}}),
    ):
        data = checkpoint.to_json()
        assert data.endswith(b"}\n")
        assert json.loads(data) == WRITTEN | more
        assert parsed(data, "checkpoint/00000.json", Checkpoint, RUN) == checkpoint


def test_a_run_has_begun_once_a_part_has_lines() -> None:
    assert not replace(PLAIN, next_part=0).begun
    assert not replace(PLAIN, next_part=2, skipped_parts=(0, 1)).begun
    assert replace(PLAIN, next_part=3, skipped_parts=(0, 1)).begun


def test_damage_is_named_with_the_file_and_the_member() -> None:
    changes: list[tuple[dict[str, Any], str]] = [
        ({"format": 2}, "format is not 1, the only format known"),
        ({"format": True}, "format is not 1, the only format known"),
        ({"more": 1}, "it has other members"),
        ({"void": [3]}, "void has a part out of order"),
        ({"void": [0, 4]}, "void has a part out of order"),
        ({"void": [-1]}, "void"),
        ({"ended": {"lacks_acls": 1}}, "ended"),
        ({"ended": True}, "ended"),
        ({"tally": {}}, "tally"),
        ({"run": "20260102T030405Z-ffffff"}, "it is another run's"),
        ({"next_part": "3"}, "next_part"),
        ({"next_part": 10**30}, "it has a number that is too large"),
        ({"next_part": -1}, "next_part"),
        ({"start_after": 3}, "start_after"),
    ]
    damaged = [(json.dumps(WRITTEN | change), words) for change, words in changes]
    nested = '{"a":' * 450 + "1" + "}" * 450
    damaged += [(text, "") for text in ("", "[]", "[" * 100_000, json.dumps(WRITTEN)[:-1] + f', "tally": {nested}}}')]
    for text, words in damaged:
        with pytest.raises(
            RunDamaged, match=rf"^s3://out/checkpoint/00000\.json is damaged \({words}.*\): start a new run$"
        ):
            parsed(text.encode(), "s3://out/checkpoint/00000.json", Checkpoint, RUN)


def test_a_checkpoint_of_a_development_version() -> None:
    data = json.dumps({"v": 1, **{name: value for name, value in WRITTEN.items() if name != "format"}}).encode()
    with pytest.raises(
        OldRun, match=r"^checkpoint/00000\.json was written by a development version: audit again$"
    ) as refused:
        parsed(data, "checkpoint/00000.json", Checkpoint, RUN)
    assert refused.value.exit_code == 2
