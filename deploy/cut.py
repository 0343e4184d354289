"""Select the installed files that a function needs."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Collection
from pathlib import Path, PurePosixPath
from typing import Any, Final

from deploy.errors import BuildError
from deploy.native import is_native, slim

DATA: Final = ("botocore", "data")
"""One folder for each service of AWS, and a few files that every client reads."""

ENDPOINTS: Final = "botocore/data/endpoints.json"
"""The endpoints of every service in every region, of which a function needs a fiftieth. Each process parses it."""

NOT_LOADED: Final = (
    *("bin/", "boto3/data/", "boto3/examples/"),
    *("aiohttp/pytest_plugin.py", "aiohttp/test_utils.py", "aiohttp/web", "aiohttp/worker.py", "uvloop/_testbase.py"),
    *(f"jinja2/{name}.py" for name in ("constants", "ext", "meta", "nativetypes", "sandbox")),
    *("adbc_driver_duckdb/", "duckdb/experimental/"),
    *(
        "dateutil/rrule.py",
        "dateutil/tz/win.py",
        "dateutil/zoneinfo/",
        "urllib3/contrib/emscripten/",
        "s3transfer/processpool.py",
    ),
)
"""Beginnings of names: programs, models of boto3's resources (we use none), examples, test helpers, aiohttp's server,
the parts of the templates' engine that no template of ours asks for, DuckDB behind other interfaces, calendars, time
zones by name, and code for Windows and browsers."""

KEPT_ALONE: Final = {"awscrt": ("__init__.py", "checksums.py")}
"""Packages of which only these files are kept. awscrt's checksums need only its native module, _awscrt."""

_BUILD_ONLY: Final = frozenset({".c", ".cpp", ".h", ".hash", ".pxd", ".pxi", ".pyc", ".pyi", ".pyx"})
_FOLDERS: Final = frozenset({"__pycache__", "test", "tests", ".hash"})
_LICENCE: Final = re.compile(r"(licen[cs]e|copying|notice|authors)", re.IGNORECASE)

Files = dict[str, bytes]
"""The contents of files by their names inside a zip."""


def installed_files(folder: Path, services: Collection[str], architecture: str) -> Files:
    """Return the files to pack, with slimmed native modules. services: the AWS services whose API models are kept."""
    missing = sorted(name for name in services if not folder.joinpath(*DATA, name).is_dir())
    if missing:
        raise BuildError(f"botocore has no service {missing[0]!r}, which auditor/aws/session.py declares in SERVICES")
    files: Files = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and is_needed(PurePosixPath(name), services):
            content = path.read_bytes()
            if path.name == "METADATA":
                content = content.partition(b"\n\n")[0] + b"\n"  # the description, a page of prose, is left out
            elif path.name == "service-2.json.gz":
                content = without_documentation(content)
            elif name == ENDPOINTS:
                content = without_other_services(content, prefixes(folder, services))
            files[name] = slim(name, content, architecture) if is_native(name) else content
    return files


def without_documentation(content: bytes) -> bytes:
    """Return a service's API model, gzipped JSON, with empty texts for readers: they are most of its bytes."""
    model = json.loads(gzip.decompress(content), object_hook=_without_text)
    return gzip.compress(json.dumps(model, separators=(",", ":")).encode(), mtime=0)


def prefixes(folder: Path, services: Collection[str]) -> set[str]:
    """Return the names by which the endpoints' file knows these services: the `endpointPrefix` of their API models."""
    found = set()
    for service in services:
        for path in folder.joinpath(*DATA, service).glob("*/service-2.json.gz"):
            found.add(str(json.loads(gzip.decompress(path.read_bytes()))["metadata"]["endpointPrefix"]))
    return found


def without_other_services(content: bytes, kept: Collection[str]) -> bytes:
    """Return botocore's endpoints.json with the partitions, their regions, and the endpoints of the kept services."""
    endpoints = json.loads(content)
    for partition in endpoints["partitions"]:
        partition["services"] = {name: value for name, value in partition["services"].items() if name in kept}
    return json.dumps(endpoints, separators=(",", ":")).encode()


def _without_text(value: dict[str, Any]) -> dict[str, Any]:
    if isinstance(value.get("documentation"), str):  # a member of a shape may have this name: its value is an object
        value["documentation"] = ""  # botocore reads the texts of a client's own parameters, and fails without them
    return value


def is_needed(path: PurePosixPath, services: Collection[str]) -> bool:
    """True if a function may read this installed file, or if it is a licence, which must be shipped."""
    if path.suffix in _BUILD_ONLY or _FOLDERS & set(path.parts):
        return False
    if path.as_posix().startswith(NOT_LOADED):
        return False
    if path.parts[0] in KEPT_ALONE:
        return path.relative_to(path.parts[0]).as_posix() in KEPT_ALONE[path.parts[0]]
    if path.parts[0].endswith(".dist-info"):
        return path.name == "METADATA" or any(map(_LICENCE.match, path.parts[1:]))
    if path.parts[:2] == DATA and len(path.parts) > 3:
        return path.parts[2] in services and not path.name.startswith("examples")
    return len(path.parts) > 1 or path.suffix == ".py" or is_native(path.name)
