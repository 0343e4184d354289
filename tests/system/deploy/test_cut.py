"""Which installed files stay, how native modules are cut, and that the SDK's data covers the services in the code."""

from __future__ import annotations

import ast
import gzip
import json
import struct
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import botocore
from botocore.regions import EndpointResolver

from auditor.aws.session import SERVICES
from deploy.cut import ENDPOINTS, installed_files, is_needed, prefixes, without_documentation, without_other_services
from deploy.native import slim
from deploy.options import ROOT
from deploy.sources import source_files
from tests.system.deploy.packages import library

OPENERS = {"make_client", "open_client", "_client", "client", "_ask_service"}
"""What opens a client, with the service's name as its first argument."""


def test_a_library_loses_what_follows_its_last_segment() -> None:
    slimmed = slim("a.so", library("arm64"), "arm64")
    assert slimmed.endswith(b"code")
    assert struct.unpack_from("<Q", slimmed, 40) == (0,)
    assert struct.unpack_from("<HH", slimmed, 60) == (0, 0)
    assert slim("a.so", slimmed, "arm64") == slimmed


def test_a_library_in_another_format_stays_as_it_is() -> None:
    for content in (b"", b"\xcf\xfa\xed\xfe a library of macOS", b"\x7fELF\x01\x01 of 32 bits"):
        assert slim("a.so", content, "arm64") == content


KEPT = """
six.py bind.py sdk/__init__.py sdk/libx.so.1 aiohttp/_websocket/models.py _ext.cpython-313-aarch64-linux-gnu.so
botocore/cacert.pem botocore/data/endpoints.json botocore/data/partitions.json botocore/data/_retry.json
botocore/data/sdk-default-configuration.json botocore/data/s3/2006-03-01/service-2.json.gz
botocore/data/s3/2006-03-01/service-2.sdk-extras.json
_awscrt.abi3.so awscrt/__init__.py awscrt/checksums.py awscrt-0.38.1.dist-info/licenses/NOTICE
sdk-1.dist-info/METADATA sdk-1.dist-info/LICENSE sdk-1.dist-info/NOTICE.txt sdk-1.dist-info/licenses/AUTHORS
sdk-1.dist-info/licenses/vendor/llhttp/LICENSE
"""
GONE = """
.lock bin/jp.py sdk/__pycache__/x.cpython-313.pyc sdk/tests/test_x.py sdk/x.pyx sdk/x.c sdk/x.pyi
botocore/data/ec2/2016-11-15/service-2.json.gz botocore/data/s3/2006-03-01/examples-1.json
boto3/data/s3/2006-03-01/resources-1.json boto3/examples/s3.rst aiohttp/web_app.py
dateutil/zoneinfo/dateutil-zoneinfo.tar.gz awscrt/s3.py awscrt/aio/__init__.py
sdk-1.dist-info/RECORD sdk-1.dist-info/INSTALLER sdk-1.dist-info/entry_points.txt distutils-precedence.pth
"""


def test_the_files_that_a_function_reads_or_a_licence_asks_for_stay_and_the_others_go() -> None:
    assert [name for name in KEPT.split() if not is_needed(PurePosixPath(name), {"s3"})] == []
    assert [name for name in GONE.split() if is_needed(PurePosixPath(name), {"s3"})] == []


def test_a_service_model_loses_the_texts_for_readers_and_no_member() -> None:
    model = {
        "operations": {"Get": {"name": "Get", "documentation": "<p>Long.</p>"}},
        "shapes": {"One": {"members": {"documentation": {"shape": "Text", "documentation": "<p>Its text.</p>"}}}},
        "documentation": "<p>All of it.</p>",
    }
    slimmed = without_documentation(gzip.compress(json.dumps(model).encode()))
    assert json.loads(gzip.decompress(slimmed)) == {
        "operations": {"Get": {"name": "Get", "documentation": ""}},
        "shapes": {"One": {"members": {"documentation": {"shape": "Text", "documentation": ""}}}},
        "documentation": "",
    }
    assert without_documentation(slimmed) == slimmed


def test_the_endpoints_of_our_services_are_the_same_in_every_region() -> None:
    folder = Path(botocore.__file__).parent.parent
    whole = (folder / ENDPOINTS).read_bytes()
    ours = prefixes(folder, SERVICES)
    cut = without_other_services(whole, ours)
    assert len(cut) < len(whole) / 17
    before, after = EndpointResolver(json.loads(whole)), EndpointResolver(json.loads(cut))
    partitions = json.loads(whole)["partitions"]
    regions = [region for partition in partitions for region in partition["regions"]]
    assert {"s3", "dynamodb", "sqs"} <= ours
    for service in ours:
        for region in [*regions, "xx-new-9", "aws-global"]:
            assert after.construct_endpoint(service, region) == before.construct_endpoint(service, region)
        for name in before.get_available_partitions():
            assert after.get_available_endpoints(service, name) == before.get_available_endpoints(service, name)


def opened(source: str) -> Iterator[str]:
    """The services that a module opens clients of; a name that is handed on is the caller's to be found at."""
    tree = ast.parse(source)
    for function in ast.walk(tree):
        if not isinstance(function, ast.Call) or not function.args:
            continue
        name = getattr(function.func, "attr", getattr(function.func, "id", None))
        if name in OPENERS:
            service = function.args[0]
            if isinstance(service, ast.Constant):
                yield str(service.value)
            elif not (isinstance(service, ast.Name) and service.id == "service"):
                yield f"{ast.unparse(service)}, which is not a name that is written out"


def test_every_client_that_the_functions_open_is_of_a_declared_service_and_none_is_declared_in_vain() -> None:
    assert "not a name that is written out" in next(opened("make_client(names[0], connection)"))
    sources = source_files(ROOT)
    found = {name for path, content in sources.items() if path.endswith(".py") for name in opened(content.decode())}
    assert found == set(SERVICES)


def test_metadata_is_kept_without_its_description(tmp_path: Path) -> None:
    folder = tmp_path / "sdk-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Name: sdk\nVersion: 1\n\nA page of prose.\n")
    (tmp_path / "botocore" / "data").mkdir(parents=True)
    files = installed_files(tmp_path, [], "arm64")
    assert files["sdk-1.dist-info/METADATA"] == b"Name: sdk\nVersion: 1\n"
