"""The functions run the deployed zip, nothing of the source tree, on the deployed Python version."""

from __future__ import annotations

import shutil
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deploy.options import PYTHON, ROOT
from tests.system.e2e.deployment import Deployment
from tests.system.e2e.environment import Machine
from tests.system.e2e.runtime import LocalLambda
from tests.system.e2e.system import told

PROBE = """
import importlib, os, sys

def handler(event, context):
    for name in (event, "boto3"):  # the handlers import the SDK only once they need it
        importlib.import_module(name)
    files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
    return {"version": sys.version_info[:2], "path": sys.path, "files": {name: f for name, f in files.items() if f},
            "execution": os.environ["AWS_EXECUTION_ENV"], "cwd": os.getcwd()}
"""


@pytest.fixture(scope="module", params=["audit", "hashing", "renew", "verify"])
def report(
    request: pytest.FixtureRequest, deployment: Deployment, machine: Machine, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """What a process says of itself that runs in a function's place, after importing the function's handler."""
    function = deployment.functions()[request.param]
    folder = tmp_path_factory.mktemp("probe")
    package = folder / "package"
    shutil.copytree(function.package, package)
    (package / "probe.py").write_text(PROBE)
    probe = replace(function, handler="probe.handler", package=package)
    with LocalLambda([probe], machine, folder, endpoint=deployment.url) as local:
        found = told(local.invoke(function.name, function.handler.rpartition(".")[0]))
    return found | {"package": str(package), "runtime": function.runtime}


def test_it_runs_on_the_python_that_it_was_deployed_for(report: Any) -> None:
    assert report["runtime"] == f"python{PYTHON}"
    assert report["version"] == [int(part) for part in PYTHON.split(".")]
    assert report["execution"] == f"AWS_Lambda_{report['runtime']}"


def test_every_module_of_ours_and_of_others_is_the_packages(report: Any, machine: Machine) -> None:
    ours = {name for name in report["files"] if name.partition(".")[0] in ("auditor", "handlers")}
    assert {"auditor.config.settings", "handlers"} <= ours
    for name in (*ours, "boto3", "botocore", "httptools"):
        assert Path(report["files"][name]).is_relative_to(report["package"]), name
    interpreter = Path(report["files"]["os"]).parent
    places = (Path(report["package"]), machine.client, interpreter)
    elsewhere = {
        name for name, file in report["files"].items() if not any(Path(file).is_relative_to(p) for p in places)
    }
    assert not elsewhere
    trees = (ROOT, Path(sys.prefix))
    assert not [path for path in (*report["path"], report["cwd"]) if any(Path(path).is_relative_to(t) for t in trees)]


def test_duckdb_is_the_audits_alone(deployment: Deployment) -> None:
    layers = {name: function.layers for name, function in deployment.functions().items()}
    (layer,) = layers.pop("audit")
    assert (layer / "python" / "duckdb").is_dir()
    assert set(layers.values()) == {()}


def test_what_was_unzipped_is_what_was_uploaded(deployment: Deployment) -> None:
    functions = deployment.functions().values()
    assert len(functions) == 4
    for function in functions:
        with zipfile.ZipFile(deployment.uploaded(function.name)) as archive:
            names = archive.namelist()
            ours = {f"handlers/{one}.py" for one in ("audit", "hashing", "renew", "verify")}
            assert {"auditor/__init__.py", *ours} <= set(names)
            for name in names:
                assert (function.package / name).read_bytes() == archive.read(name), name
