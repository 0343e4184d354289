"""The packages that are deployed, built from the lock: what is inside, and that it runs with nothing around it."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from auditor.aws.session import SERVICES
from deploy import python
from deploy.budget import Budget, check, weigh
from deploy.build import NEWEST, build
from deploy.install import locked
from deploy.native import is_native
from deploy.options import PYTHON, REQUIREMENTS, ROOT, Options, read_options
from tests.system.deploy.test_config import CONFIG

DATA_OF_ALL = {"_retry.json", "endpoints.json", "partitions.json", "sdk-default-configuration.json"}
"""What botocore reads for every client."""


Built = dict[str, Path]
"""A package of each kind, made of one copy of the sources: others may be at work on the tree."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("packages")
    root = folder / "root"
    for name in ("auditor", "handlers", "deploy"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    newest = locked("newest", NEWEST)
    for name in (newest, REQUIREMENTS, "LICENSE"):
        (root / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, root / name)

    (folder / "ours.toml").write_text(CONFIG)

    def make(architecture: str | None, name: str, *, layer: bool = False, requirements: str = newest) -> Options:
        made = read_options(architecture, layer=layer, output=folder / name, config=folder / "ours.toml", environ={})
        options = replace(made, root=root, requirements=requirements)
        build(options, interpreter=python.find())
        return options

    layered = make(None, "code.zip", layer=True)
    assert layered.layer is not None
    kinds = {"arm64": "arm64", "x86_64": "x86_64", "local": None, "again": "arm64"}
    found = {name: make(architecture, f"{name}.zip").output for name, architecture in kinds.items()}
    found["all"] = make(None, "all.zip", requirements=REQUIREMENTS).output
    return found | {"code": layered.output, "layer": layered.layer}


@pytest.fixture(scope="module")
def interpreter() -> Path:
    found = python.find()
    if found is None:
        pytest.skip(f"python{PYTHON}, which the functions run on, is not on this machine's PATH")
    return found


@pytest.fixture(scope="module")
def unzipped(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unzip(built["local"], tmp_path_factory.mktemp("task"))


def unzip(path: Path, folder: Path) -> Path:
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    return folder


def contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def run(interpreter: Path, unzipped: Path, code: str, cwd: Path) -> str:
    done = python.run(interpreter, str(unzipped), code, cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_both_architectures_hold_the_same_files_but_for_native_modules(built: Built) -> None:
    arm, intel = contents(built["arm64"]), contents(built["x86_64"])
    tag = re.compile(r"\.cpython-313-(aarch64|x86_64)-linux-gnu\.so$")
    assert sorted(tag.sub(".so", name) for name in arm) == sorted(tag.sub(".so", name) for name in intel)
    natives = set(arm.keys() ^ intel.keys())
    assert natives
    assert all(map(is_native, natives))
    different = {name for name in arm.keys() & intel.keys() if arm[name] != intel[name]}
    assert different == {"_awscrt.abi3.so"}, "its name is the same for every machine"


def test_code_and_layer_together_are_the_one_package(built: Built) -> None:
    code, layer = contents(built["code"]), contents(built["layer"])
    assert {name.partition("/")[0] for name in code} == {"auditor", "auditor.toml", "handlers"}
    whole = code | {name.removeprefix("python/"): content for name, content in layer.items()}
    assert whole == contents(built["local"])


def test_functions_run_from_bytecode_where_they_can_write_none(
    interpreter: Path, unzipped: Path, tmp_path: Path
) -> None:
    """The code of a module is as its bytecode says, even after its source was changed: nothing is compiled."""
    task = tmp_path / "task"
    shutil.copytree(unzipped, task)
    (task / "auditor/errors.py").write_text("raise SystemExit('compiled')\n")
    code = "import sys, handlers.audit; print(sys.modules['auditor.errors'].__cached__)"
    assert run(interpreter, task, code, tmp_path).strip() == str(task / "auditor/__pycache__/errors.cpython-313.pyc")


def test_a_package_is_equal_in_each_build_small_and_tells_nothing_of_the_machine(built: Built) -> None:
    assert built["arm64"].read_bytes() == built["again"].read_bytes()
    places = {ROOT, Path.home(), Path(sys.prefix), Path(sys.base_prefix), built["arm64"].parent}
    secrets = [f"{place}/".encode() for place in places] + [f"{tempfile.gettempdir()}/package-".encode()]
    for path in (built["arm64"], built["x86_64"], built["local"], built["layer"]):
        found = contents(path)
        names = [PurePosixPath(name) for name in found]
        assert not [name for name in names if name.is_absolute() or ".." in name.parts]
        assert not [(name, s) for name, content in found.items() for s in secrets if s in content]
    for path in (built["arm64"], built["x86_64"]):
        weight = weigh([path.read_bytes()])
        check(weight, Budget())
        assert weight.zipped == path.stat().st_size


def test_every_package_comes_with_its_licence(built: Built) -> None:
    names = contents(built["arm64"]).keys()
    packages = {name.partition("/")[0] for name in names if ".dist-info/" in name}
    pinned = re.findall(r"^([a-z0-9-]+)==", (ROOT / locked("newest", NEWEST)).read_text(), re.MULTILINE)
    assert len(packages) == len(set(pinned) - {"typing-extensions"})
    for package in packages:
        inside = [name for name in names if name.startswith(f"{package}/")]
        assert f"{package}/METADATA" in inside
        assert any(re.search("licen[cs]e", name, re.IGNORECASE) for name in inside), package
    assert "auditor/LICENSE" in names


def test_nothing_is_in_it_that_no_function_needs(built: Built) -> None:
    names = contents(built["arm64"])
    tops = {name.partition("/")[0] for name in names}
    assert not tops & {"bin", "pip", "setuptools", "typing_extensions.py", "deploy", "tests"}
    unwanted = re.compile(r"\.py[xi]$|\.px[di]$|/tests?/|/examples|^boto3/data/|^auditor/(cli|demo)/|/RECORD$")
    assert not [name for name in names if unwanted.search(name)]
    data = [PurePosixPath(name).parts[2:] for name in names if name.startswith("botocore/data/")]
    assert {parts[0] for parts in data} == {*SERVICES, *DATA_OF_ALL}


def test_the_handlers_import_with_nothing_else_around(interpreter: Path, unzipped: Path, tmp_path: Path) -> None:
    code = """
import json, sys
import handlers.audit, handlers.hashing, handlers.renew, handlers.verify
files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
print(json.dumps([sys.version_info[:2], [file for file in files if file]]))
"""
    version, files = json.loads(run(interpreter, unzipped, code, tmp_path))
    assert version == [3, 13]
    assert str(unzipped / "handlers" / "audit.py") in files
    assert not [file for file in files if "site-packages" in file or str(ROOT) in file]
    assert sum(file.startswith(str(unzipped)) for file in files) > 100


def test_the_functions_read_the_configuration_that_was_packed(built: Built, interpreter: Path, unzipped: Path) -> None:
    for path in (built["arm64"], built["x86_64"], built["code"]):
        assert contents(path)["auditor.toml"].decode() == CONFIG
    assert "python/auditor.toml" not in contents(built["layer"])
    code = """
from auditor.lambdas.event import read_event
from auditor.rules.judge import select
from auditor.rules import RULES
from auditor.config.file import load_settings
environ = {"AUDITOR_CONFIG": "auditor.toml", "AUDITOR_QUEUE": "http://127.0.0.1/q", "AUDITOR_LEDGER": "sqlite:d.db"}
for settings in (read_event({"bucket": "photos"}, environ).settings, load_settings(environ=environ)):
    assert settings.exceptions[0].prefix == "vault/"
    print("M01" in [rule.id for rule in select(RULES, settings.rules, (), ())])
"""
    assert run(interpreter, unzipped, code, unzipped) == "True\nTrue\n"


@pytest.mark.parametrize(
    ("package", "engines"), [("local", ["direct", "boto3"]), ("all", ["direct", "aioboto3", "boto3"])]
)
def test_every_client_opens_from_the_data_that_was_left(
    interpreter: Path, built: Built, tmp_path: Path, package: str, engines: list[str]
) -> None:
    code = """
import asyncio, json
from auditor.aws.session import SERVICES, make_client
from auditor.s3.engines import ENGINES, is_installed
from auditor.aws.connection import Connection

installed = list(filter(is_installed, ENGINES))

async def engines():
    for name in installed:
        async with ENGINES[name](Connection(bucket="b", region="eu-central-1")):
            pass

clients = {name: make_client(name, Connection(bucket="b", region="eu-central-1")) for name in SERVICES}
assert clients["s3"].get_paginator("list_objects_v2")
asyncio.run(engines())
operations = {name: len(client.meta.service_model.operation_names) for name, client in clients.items()}
print(json.dumps([installed, operations]))
"""
    unzipped = unzip(built[package], tmp_path / "task")
    found, operations = json.loads(run(interpreter, unzipped, code, tmp_path))
    assert found == engines
    assert operations.keys() == set(SERVICES)
    assert min(operations.values()) > 5


def test_what_is_left_of_awscrt_computes_the_checksum_and_botocore_goes_without_it(
    interpreter: Path, unzipped: Path, tmp_path: Path
) -> None:
    code = """
import json, os, sys
from auditor.hashing.digest.digester import make_digester
digester = make_digester(["crc64nvme"])
digester.update(memoryview(b"123456789"))
os.environ["BOTO_DISABLE_CRT"] = "false"
import botocore.compat
loaded = sorted(name for name in sys.modules if "awscrt" in name)
print(json.dumps([digester.hexdigests()["crc64nvme"], botocore.compat.HAS_CRT, loaded]))
"""
    found = json.loads(run(interpreter, unzipped, code, tmp_path))
    # The check value of CRC-64/NVME in the catalogue of parametrised CRC algorithms.
    assert found == ["ae8b14860a799888", False, ["_awscrt", "awscrt", "awscrt.checksums"]]


def test_native_modules_load_after_they_were_slimmed_and_another_services_client_does_not_open(
    interpreter: Path, unzipped: Path, tmp_path: Path
) -> None:
    modules = [
        ".".join(path.relative_to(unzipped).with_name(path.name.partition(".")[0]).parts)
        for path in unzipped.rglob("*.so")
    ]
    assert len(modules) > 5
    code = f"""
import importlib
for name in {modules!r}:
    assert importlib.import_module(name).__file__.endswith(".so")
"""
    run(interpreter, unzipped, code, tmp_path)
    done = python.run(interpreter, str(unzipped), "import boto3; boto3.client('ec2')", tmp_path)
    assert "UnknownServiceError" in done.stderr


def test_the_command_builds_from_this_tree_and_prints_the_hash(tmp_path: Path) -> None:
    output = tmp_path / "f.zip"
    command = [sys.executable, "-m", "deploy.build", "--local", "--output", str(output)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first == f"{output}: sha256 {hashlib.sha256(output.read_bytes()).hexdigest()}"
    assert "MB zipped" in second
