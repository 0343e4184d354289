"""The template's sources, checked without osls."""

from __future__ import annotations

import importlib
import json
import re

import pytest

from auditor.config.values import LEVELS as SETTINGS_LEVELS
from auditor.lambdas import metrics
from tests.support.paths import ROOT
from tests.system.deploy.checks.sources import (
    LEVELS,
    functions_of_level,
    of_type,
    parameters,
    read,
    resources_of_level,
)


@pytest.mark.parametrize("level", LEVELS)
def test_every_handler_named_is_one_that_exists(level: str) -> None:
    for function in functions_of_level(level).values():
        module, name = function["handler"].rsplit(".", 1)
        assert callable(getattr(importlib.import_module(module), name))


def test_the_levels_are_those_of_the_code() -> None:
    assert LEVELS == SETTINGS_LEVELS
    assert {path.stem for path in (ROOT / "deploy" / "levels").iterdir()} == set(LEVELS)


def test_every_parameter_is_known_to_the_check_and_the_other_way_round() -> None:
    text = (ROOT / "deploy" / "parameters.js").read_text()
    names = re.search(r"const NAMES = \[(.*?)\];", text, re.DOTALL)
    assert names is not None
    assert set(re.findall(r"'(\w+)'", names[1])) == parameters()["default"].keys()
    local = parameters()["local"]
    assert local.keys() <= parameters()["default"].keys()
    assert max(local[f"{name}Timeout"] for name in ("audit", "hashing", "verify")) <= 30


def test_the_alarms_watch_metrics_that_the_code_writes() -> None:
    alarms = of_type(resources_of_level("fixity"), "AWS::CloudWatch::Alarm")
    ours = [one for one in alarms.values() if one["Namespace"] == metrics.NAMESPACE]
    assert len(ours) == 8
    for alarm in ours:
        assert alarm["MetricName"] in metrics.UNITS
        assert [one["Name"] for one in alarm["Dimensions"]] == [metrics.DIMENSION]


def test_the_lock_names_no_registry_and_the_version_is_pinned() -> None:
    lock = json.loads((ROOT / "package-lock.json").read_text())
    assert not [name for name, one in lock["packages"].items() if "resolved" in one]
    assert lock["packages"]["node_modules/osls"]["version"] == read("package.json")["devDependencies"]["osls"]
