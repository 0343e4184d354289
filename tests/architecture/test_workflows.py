"""The workflows: actions pinned by commit, least permissions, each suite of .ci/run, targets of the Makefile."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]

from tests.support.paths import ROOT

GITHUB: Final = ROOT / ".github"
FILES: Final = sorted([*GITHUB.glob("workflows/*.yml"), *GITHUB.glob("actions/*/action.yml"), ROOT / "action.yml"])
READ: Final = {"contents": "read"}
MORE: Final[dict[str, dict[str, str]]] = {
    "assets": {"contents": "write", "id-token": "write", "attestations": "write"},
    "pypi": {"id-token": "write"},
    "pages": {"contents": "read", "pages": "write", "id-token": "write"},
    "image": {"contents": "read", "packages": "write"},
    "index": {"packages": "write"},
}
"""The jobs that may do more than read the repository."""
_USES: Final = re.compile(r"\buses: (\S+)(?: # (\S+))?$", re.MULTILINE)
_PINNED: Final = re.compile(r"[\w-]+(/[\w-]+)+@[0-9a-f]{40}")
_MAKE: Final = re.compile(r"^ *(?:beside )?make ((?:[a-z][a-z0-9-]* ?)+)", re.MULTILINE)


def workflow(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((GITHUB / "workflows" / f"{name}.yml").read_text(encoding="utf-8"))
    return loaded


def steps(name: str) -> Iterator[dict[str, Any]]:
    for job in workflow(name)["jobs"].values():
        yield from job.get("steps", ())


def targets(text: str) -> set[str]:
    return {target for line in _MAKE.findall(text) for target in line.split()}


def called(name: str) -> set[str]:
    return targets("\n".join(step.get("run", "") for step in steps(name)))


def test_an_action_is_pinned_by_its_commit_says_its_release_and_is_the_same_everywhere() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in FILES)
    assert len(_USES.findall(text)) == text.count("uses:")
    uses = {(used, said) for used, said in _USES.findall(text) if not used.startswith("./")}
    assert [used for used, _ in uses if not _PINNED.fullmatch(used)] == []
    assert [used for used, said in uses if not re.fullmatch(r"v\d+\.\d+\.\d+", said)] == []
    names = [used.partition("@")[0] for used, _ in uses]
    assert len(names) == len(set(names)) > 3


@pytest.mark.parametrize("name", ["ci", "release"])
def test_a_job_may_read_the_repository_and_no_more_than_its_task_needs(name: str) -> None:
    more = MORE if name == "release" else {}
    assert workflow(name)["permissions"] == {}
    for job, content in workflow(name)["jobs"].items():
        assert content["permissions"] == more.get(job, READ), job


@pytest.mark.parametrize("name", ["ci", "release"])
def test_a_checkout_leaves_no_credentials(name: str) -> None:
    checkouts = [step for step in steps(name) if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts
    assert [step for step in checkouts if step.get("with", {}).get("persist-credentials") is not False] == []


def test_the_workflow_runs_each_suite_that_the_bare_machine_runs() -> None:
    here = targets((ROOT / ".ci" / "run").read_text(encoding="utf-8"))
    assert here > {"check", "test-e2e"}
    assert called("ci") == here - {"check"} | {"lint", "test"}


def test_each_target_that_a_workflow_or_a_hook_calls_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    wanted = called("ci") | called("release") | set(re.findall(r"entry: make (\S+)", hooks))
    assert "lint" in wanted
    assert {one for one in wanted if not re.search(rf"^{re.escape(one)}:", makefile, re.MULTILINE)} == set()


def test_dependabot_looks_where_the_locks_are() -> None:
    updates = yaml.safe_load((GITHUB / "dependabot.yml").read_text(encoding="utf-8"))["updates"]
    places = {one["package-ecosystem"]: one.get("directories", [one.get("directory")]) for one in updates}
    locked = {f"/{path.parent.relative_to(ROOT)}".removesuffix("/.") for path in ROOT.glob("tests/*/package-lock.json")}
    assert set(places["npm"]) == {"/", *locked}
    acting = {f"/{path.parent.relative_to(ROOT)}" for path in GITHUB.glob("actions/*/action.yml")}
    assert set(places["github-actions"]) == {"/", *acting}
    assert places["gomod"] == [f"/{path.parent.relative_to(ROOT)}" for path in ROOT.glob("benchmarks/*/go.sum")]
    assert places["uv"] == places["docker"] == ["/"]
