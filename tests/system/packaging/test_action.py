"""The GitHub Action: its shell steps run here by their own commands, on a run of a stub's bucket."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]

from auditor.cli.main import main
from tests.architecture.test_schemas import policy
from tests.support.paths import ROOT
from tests.support.servers.stub import StubServer

ACTION: Final[dict[str, Any]] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: Final[list[dict[str, Any]]] = ACTION["runs"]["steps"]
INSTALL, ASK, UPLOAD, END = STEPS
PAGE: Final = (ROOT / "docs" / "cookbook.md").read_text(encoding="utf-8")
HOSTILE_KEY: Final = "site/\n::error::a key"
_EXPRESSION: Final = re.compile(r"\$\{\{ ([\w.-]+) \}\}")


@dataclass
class Runner:
    """A runner of the steps in one workspace. temp: RUNNER_TEMP. values: of the expressions."""

    workspace: Path
    temp: Path
    values: dict[str, str] = field(default_factory=dict)
    printed: str = ""

    def step(self, step: dict[str, Any]) -> int:
        """Run a step's script as `shell: bash` does, and return its exit code."""
        outputs = self.temp / "outputs"
        outputs.write_text("")
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHON", "UV_"))}
        environ |= {name: _EXPRESSION.sub(self._value, text) for name, text in step["env"].items()}
        environ |= {"RUNNER_TEMP": str(self.temp), "GITHUB_ACTION_PATH": str(ROOT), "GITHUB_OUTPUT": str(outputs)}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(command, cwd=self.workspace, env=environ, capture_output=True, text=True, check=False)
        self.printed = done.stdout + done.stderr
        for line in outputs.read_text().splitlines():
            name, _, value = line.partition("=")
            self.values[f"steps.{step['id']}.outputs.{name}"] = value
        return done.returncode

    def ask(self, **inputs: str) -> tuple[int, dict[str, Any] | None]:
        """Return the exit code of the whole action, and what it uploads."""
        defaults = {name: one["default"] for name, one in ACTION["inputs"].items() if "default" in one}
        given = defaults | {"run": "s3://audited", "policy": "policies/audited.json"} | inputs
        self.values |= {f"inputs.{name}": value for name, value in given.items()}
        assert self.step(ASK) == 0, self.printed
        printed, sarif = self.printed, self.values.get("steps.ask.outputs.sarif")
        code = self.step(END)
        self.printed = printed
        return code, json.loads(Path(sarif).read_text()) if sarif else None

    def _value(self, found: re.Match[str]) -> str:
        return self.values[found[1]]


@pytest.fixture(scope="module")
def temp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A RUNNER_TEMP that the packages are installed in."""
    folder = tmp_path_factory.mktemp("temp")
    runner = Runner(folder, folder, {"runner.temp": str(folder)})
    assert runner.step(INSTALL) == 0, runner.printed
    return folder


@pytest.fixture
def ask(
    temp: Path, stub: StubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., tuple[int, dict[str, Any] | None, str]]]:
    """Ask for a policy that opens keys like `opened`: the exit code, the uploaded SARIF, what was printed."""
    for key in ("private", HOSTILE_KEY):
        stub.put("audited", key)
    monkeypatch.chdir(tmp_path)
    assert main(["audit", "s3://audited", "--endpoint-url", stub.url]) in (0, 3)
    stub.forget()
    # Neither is to be read from the pull request's files.
    (tmp_path / "auditor.toml").write_text("[audit]\nno-such-setting = 1\n")
    (tmp_path / "auditor").mkdir()
    (tmp_path / "auditor" / "__init__.py").write_text("raise SystemExit('a module of the pull request ran')")
    (tmp_path / "policies").mkdir()

    def call(opened: str, **inputs: str) -> tuple[int, dict[str, Any] | None, str]:
        (tmp_path / "policies" / "audited.json").write_text(json.dumps(policy(opened, "audited")))
        runner = Runner(tmp_path, temp, {"runner.temp": str(temp)})
        return *runner.ask(**inputs), runner.printed

    yield call
    assert stub.requests == []
    assert not (tmp_path / "hacked").exists()


Ask = Callable[..., tuple[int, dict[str, Any] | None, str]]


def test_a_policy_that_opens_objects_fails_at_its_statement_and_one_that_opens_nothing_passes(ask: Ask) -> None:
    code, sarif, printed = ask("site/*")
    assert code == 3, printed
    assert sarif is not None
    (result,) = sarif["runs"][0]["results"]
    location = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert (result["ruleId"], location) == ("new-exposure", {"uri": "policies/audited.json"})
    assert "from private to exposed: 1 object" in printed
    first, *_, last = [line for line in printed.splitlines() if line.lstrip().startswith("::")]
    assert re.fullmatch(r"::stop-commands::[0-9a-f]{32}", first), "a key is no command to the runner"
    assert last == f"::{first.rpartition('::')[2]}::"
    code, sarif, printed = ask("other/*")
    assert code == 0, printed
    assert sarif is not None
    assert sarif["runs"][0]["results"] == []
    code, sarif, printed = ask("site/*", upload="false")
    assert (code, sarif) == (3, None)
    assert "from private to exposed: 1 object" in printed


@pytest.mark.parametrize("name", ["run", "policy", "out", "upload"])
def test_an_input_is_no_shell_code_and_no_flag(ask: Ask, name: str) -> None:
    for text in ('"; touch hacked; "', "$(touch hacked)", "`touch hacked`", "--keys=hacked"):
        code, sarif, printed = ask("site/*", **{name: text})
        assert sarif is None
        assert code == (3 if name == "upload" else 2), printed


def test_sarif_is_uploaded_where_there_is_any_and_no_script_has_an_expression_in_it() -> None:
    assert [step for step in STEPS if "${{" in step.get("run", "")] == []
    assert UPLOAD["if"] == "steps.ask.outputs.sarif != ''"
    assert UPLOAD["with"]["sarif_file"] == "${{ steps.ask.outputs.sarif }}"
    assert UPLOAD["uses"].startswith("github/codeql-action/upload-sarif@")


def test_the_example_gives_the_inputs_that_there_are_and_the_rights_that_it_takes() -> None:
    (text,) = re.findall(r"<!-- workflow: policies -->\n```yaml\n(.*?)```", PAGE, re.DOTALL)
    workflow = yaml.safe_load(text)
    (given,) = [one["with"] for one in workflow["jobs"]["what-if"]["steps"] if "/s3-auditor@" in one["uses"]]
    required = {name for name, one in ACTION["inputs"].items() if one.get("required")}
    assert required <= given.keys() <= ACTION["inputs"].keys()
    assert workflow["permissions"] == {"contents": "read", "id-token": "write", "security-events": "write"}
