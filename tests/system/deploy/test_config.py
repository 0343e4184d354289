"""An auditor.toml in the package: its place, when the package is rebuilt, and which files are refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from deploy import build as builder
from deploy.build import build
from deploy.errors import BuildError
from deploy.options import Options
from tests.system.deploy.packages import Packages, names

CONFIG = f"""
max_calls = 1000
[rules.M01]
required = ["owner"]
[[exceptions]]
prefix = "vault/"
action = "GetObjectAcl"
reason = "the vault denies everyone"
owner = "security"
until = {datetime.now(UTC).date() + timedelta(days=90)}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "ours.toml"
    path.write_text(CONFIG)
    return path


def test_a_changed_configuration_is_built_and_so_is_one_that_is_gone(options: Options, config: Path) -> None:
    packages, configured = Packages(), replace(options, config=config)
    (options.root / "auditor.toml").write_text("not taken = 'for it is not named'\n")
    build(configured, installer=packages)
    assert build(configured, installer=packages) == [f"{options.output}: unchanged"]
    config.write_text(CONFIG.replace('"owner"', '"team"'))
    build(configured, installer=packages)
    build(options, installer=packages)
    assert packages.calls == 3
    assert "auditor.toml" not in names(options.output)


REFUSED = {
    "rules = ": "is not TOML",
    "[rules.M99]": "there is no rule 'M99'",
    "[rules.M01]\nrequired = 7": "required is not a list",
    "[[exceptions]]\nprefix = 'vault/'": "the key 'reason' is missing",
    "max_calls = 0": "give a whole number of at least 1",
    "maxcalls = 1": "the key 'maxcalls' is unknown",
    "only = ['M01']": "rule M01 needs its options",
    "ledger = 'sqlite:digests.db'": "a function cannot have ledger",
    "profile = 'mine'": "a function cannot have profile",
}


def test_a_configuration_that_the_functions_would_refuse_is_refused_in_a_sentence_and_the_last_package_stays(
    options: Options, config: Path
) -> None:
    configured = replace(options, config=config)
    build(configured, installer=Packages())
    good = options.output.read_bytes()
    for text, sentence in REFUSED.items():
        config.write_text(text)
        with pytest.raises(BuildError, match=sentence) as refused:
            build(configured, installer=Packages())
        assert "\n" not in str(refused.value)
        assert "ours.toml" in str(refused.value) or "M01" in str(refused.value)
    assert options.output.read_bytes() == good


def test_a_setting_that_a_parameter_outvotes_is_named_each_time(options: Options, config: Path) -> None:
    functions = options.root / "deploy" / "functions"
    functions.mkdir()
    (functions / "audit.yml").write_text("audit:\n  environment:\n    AUDITOR_MAX_RATE: 2000\n    AUDITOR_OUT: x\n")
    config.write_text(f"max_rate = 10\n{CONFIG}")
    for _ in range(2):
        first, *others = build(replace(options, config=config), installer=Packages())
        assert first == (
            f"{config}: the deployment has a parameter for max_rate, which wins over the file where it is not empty"
        )
        assert not [line for line in others if "parameter" in line]


def test_the_command_takes_a_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "missing.toml"
    assert builder.main(["--local", "--config", str(missing), "--output", str(tmp_path / "f.zip")]) == 1
    assert capsys.readouterr().err == f"no package was made: there is no file '{missing}': fix --config\n"
