"""Parameters that are missing, unknown or wrong: refused in a sentence, before anything is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deploy.checks.packaged import needs_osls, refusal


@needs_osls
@pytest.mark.parametrize(
    ("given", "word"),
    [
        ([], "the parameter buckets is missing"),
        (["buckets=Not_A_Bucket"], "which is no bucket"),
        (["buckets=photos", "level=deep"], "give exposure or metadata or fixity"),
        (["buckets=photos", "shedule=rate(1 day)"], "there is no parameter 'shedule'"),
        (["buckets=photos", "hashingTimeout=1000"], "give a whole number from 10 to 900"),
        (["buckets=photos", "visibilityTimeout=900"], "give six times hashingTimeout, 5400, or more"),
        (["buckets=photos", "architecture=riscv"], "give arm64 or x86_64"),
    ],
    ids=lambda value: "" if isinstance(value, str) else (value[-1].split("=")[0] if value else "none"),
)
def test_a_wrong_parameter_is_refused_in_a_sentence(tmp_path: Path, given: list[str], word: str) -> None:
    arguments = [part for one in given for part in ("--param", one)]
    said = refusal(tmp_path, "--stage", "prod", *arguments)
    assert word in said
    assert "parameters.js:" not in said, "a stack trace helps nobody who mistyped"
