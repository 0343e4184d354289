"""Which installed files stay, how native modules are cut, and that the SDK's data covers the services in the code."""

from __future__ import annotations

import ast
import gzip
import json
import struct
from collections.abc import Iterator
from pathlib import Path

import botocore
from botocore.regions import EndpointResolver

from auditor.aws.session import SERVICES
from deploy.cut import ENDPOINTS, prefixes, without_documentation, without_other_services
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
