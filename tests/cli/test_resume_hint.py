"""The command that resumes a run: a shell reads the flags of the first command."""

from __future__ import annotations

import subprocess
from typing import Any

from auditor.cli.audits import resume_command
from auditor.cli.help import make_parser
from auditor.model.target import parse_target

RUN = "20260102T030405Z-0a1b2c"


def read_by_bash(command: str) -> list[str]:
    """The words of a command as bash splits them."""
    script = f'auditor() {{ printf "%s\\0" "$@"; }}\n{command}'
    out = subprocess.run(["bash", "-c", script], check=True, capture_output=True, env={"LC_ALL": "C.UTF-8"}).stdout
    return out.decode().split("\0")[:-1]


def flags(arguments: list[str]) -> dict[str, Any]:
    given = vars(make_parser().parse_args(arguments))
    return {name: value for name, value in given.items() if name != "run"}  # a function, made anew by each parser


def test_every_flag_is_given_again() -> None:
    target = "s3://one-bucket/a prefix/*"
    for arguments in (
        ["--versions", "--requester-pays", "-v", "-v"],
        ["--only", "O01,O02", "--ignore", "O02", "--max-rate", "unlimited", "--max-calls", "100"],
        ["--start-after", "it's $HOME; a b\\", "--stop-at=-zé"],
        ["--stop-at", "\u202ea\n"],
        ["--resume", RUN],
        ["--out", "s3://reports/a b", "--ledger", "sqlite:d.db", "--hash", "--algorithm", "md5,sha1"],
        ["--format", "json", "--config", "my file.toml", "--endpoint-url", "http://127.0.0.1:1", "--fail-on", "never"],
    ):
        given = ["audit", "s3://another", target, *arguments]
        again = resume_command(make_parser().parse_args(given), parse_target(target), RUN)
        assert again.isprintable()
        assert flags(read_by_bash(again)) == flags(given) | {"targets": [target], "resume": RUN}
    filled = make_parser().parse_args(["audit", "--fill", "a folder", "--max-rate", "5"])
    again = resume_command(filled, parse_target("s3://bucket"), RUN)
    assert again.endswith(f"audit --max-rate 5 --fill 'a folder' --resume {RUN}")
