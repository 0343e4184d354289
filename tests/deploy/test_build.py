"""The builder, with packages of a few bytes: what stays, what comes out equal, what is skipped, what is refused."""

from __future__ import annotations

import ctypes
import io
import os
import stat
import struct
import sys
import sysconfig
import zipfile
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from auditor.aws import SERVICES
from deploy import build as builder
from deploy.budget import Budget
from deploy.build import build
from deploy.cut import is_needed
from deploy.errors import BuildError
from deploy.native import slim
from deploy.options import Options, entry_time, read_options, this_architecture

MACHINES = {"x86_64": 62, "arm64": 183}


def library(architecture: str, tail: bytes = b"sections and symbols") -> bytes:
    """An ELF header, one segment of four bytes, and what follows it."""
    header = bytearray(b"\x7fELF\x02\x01\x01".ljust(64, b"\0"))
    struct.pack_into("<H", header, 18, MACHINES[architecture])
    struct.pack_into("<Q", header, 32, 64)
    struct.pack_into("<Q", header, 40, 64 + 56 + 4)
    struct.pack_into("<HHHHH", header, 54, 56, 1, 64, 3, 2)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 64 + 56, 0, 0, 4, 4, 8)
    return bytes(header) + segment + b"code" + tail


class Packages:
    """Stands for uv: writes a few packages, counts how often."""

    def __init__(self, **more: bytes) -> None:
        self.calls = 0
        self._more = more

    def __call__(self, folder: Path, options: Options) -> None:
        self.calls += 1
        files = {f"botocore/data/{name}/2020-01-01/service-2.json.gz": name.encode() for name in (*SERVICES, "ec2")}
        files |= {"sdk/__init__.py": b"x = 1\n", "sdk/fast.so": library(options.architecture)}
        for name, content in (files | self._more).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            os.utime(path, (self.calls * 1e9, self.calls * 1e9))


@pytest.fixture
def options(tmp_path: Path) -> Options:
    root = tmp_path / "root"
    for name in ("auditor/rules/o01.py", "auditor/cli/parser.py", "handlers/audit.py", "deploy/build.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"# {name}\n")
    (root / "requirements.txt").write_text("sdk==1\n")
    (root / "LICENSE").write_text("do what you like\n")
    return Options("arm64", "aarch64-manylinux_2_34", tmp_path / "out" / "f.zip", root=root)


def names(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def test_two_builds_at_different_times_are_equal(options: Options, tmp_path: Path) -> None:
    packages = Packages()
    build(options, installer=packages)
    again = replace(options, output=tmp_path / "again" / "f.zip")
    for path in options.root.rglob("*.py"):
        os.utime(path, (1, 1))
    build(again, installer=packages)
    assert packages.calls == 2
    assert options.output.read_bytes() == again.output.read_bytes()


def test_entries_are_sorted_with_one_time_and_fixed_modes(options: Options) -> None:
    (options.root / "handlers/audit.py").chmod(0o700)
    build(replace(options, time=(2026, 1, 2, 3, 4, 6)), installer=Packages())
    with zipfile.ZipFile(options.output) as archive:
        entries = archive.infolist()
    assert [entry.filename for entry in entries] == sorted(entry.filename for entry in entries)
    assert {entry.date_time for entry in entries} == {(2026, 1, 2, 3, 4, 6)}
    modes = {entry.filename: entry.external_attr >> 16 for entry in entries}
    assert modes.pop("sdk/fast.so") == stat.S_IFREG | 0o755
    assert set(modes.values()) == {stat.S_IFREG | 0o644}


def test_the_package_holds_the_functions_code_and_licence_and_not_the_command_line(options: Options) -> None:
    (options.root / "auditor/__pycache__").mkdir()
    (options.root / "auditor/__pycache__/x.pyc").write_bytes(b"")
    (options.root / "auditor/.notes.swp").write_bytes(b"")
    build(options, installer=Packages())
    ours = [name for name in names(options.output) if name.startswith(("auditor/", "handlers/"))]
    assert ours == ["auditor/LICENSE", "auditor/rules/o01.py", "handlers/audit.py"]


def test_with_a_layer_the_dependencies_are_below_python_and_the_code_is_alone(options: Options, tmp_path: Path) -> None:
    layered = replace(options, layer=tmp_path / "out" / "layer.zip")
    build(layered, installer=Packages())
    assert names(layered.output) == ["auditor/LICENSE", "auditor/rules/o01.py", "handlers/audit.py"]
    assert "python/sdk/__init__.py" in names(tmp_path / "out" / "layer.zip")
    assert all(name.startswith("python/") for name in names(tmp_path / "out" / "layer.zip"))


def test_a_layer_stays_the_same_when_only_our_code_changes(options: Options, tmp_path: Path) -> None:
    layer = tmp_path / "out" / "layer.zip"
    layered = replace(options, layer=layer)
    build(layered, installer=Packages())
    before = (layer.read_bytes(), options.output.read_bytes())
    (options.root / "handlers/audit.py").write_text("changed = True\n")
    build(layered, installer=Packages())
    assert layer.read_bytes() == before[0]
    assert options.output.read_bytes() != before[1]


def test_unchanged_input_is_not_built_again_and_says_so(options: Options) -> None:
    packages = Packages()
    build(options, installer=packages)
    assert build(options, installer=packages) == [f"{options.output}: unchanged"]
    assert packages.calls == 1


@pytest.mark.parametrize(
    "name",
    ["requirements.txt", "auditor/rules/o01.py", "handlers/new.py", "deploy/build.py", "deploy/new.py", "LICENSE"],
)
def test_a_changed_input_is_built(options: Options, name: str) -> None:
    packages = Packages()
    build(options, installer=packages)
    (options.root / name).write_text("changed\n")
    build(options, installer=packages)
    assert packages.calls == 2


def test_a_changed_option_is_built(options: Options, tmp_path: Path) -> None:
    packages = Packages()
    changes: list[Options] = [
        options,
        replace(options, architecture="x86_64"),
        replace(options, platform=None),
        replace(options, layer=tmp_path / "layer.zip"),
        replace(options, time=(2000, 1, 1, 0, 0, 0)),
    ]
    for changed in changes:
        build(changed, installer=packages)
    assert packages.calls == len(changes)


@pytest.mark.parametrize("damage", ["missing", "altered"])
def test_a_package_that_is_not_as_it_was_made_is_built(options: Options, damage: str) -> None:
    packages = Packages()
    build(options, installer=packages)
    good = options.output.read_bytes()
    if damage == "missing":
        options.output.unlink()
    else:
        options.output.write_bytes(good[:-1])
    build(options, installer=packages)
    assert options.output.read_bytes() == good


@pytest.mark.parametrize("limits", [Budget(zipped=100_000), Budget(unzipped=200_000)])
def test_a_package_over_its_budget_names_the_largest_and_keeps_the_last_good_one(
    options: Options, limits: Budget
) -> None:
    build(options, installer=Packages())
    good = options.output.read_bytes()
    (options.root / "requirements.txt").write_text("sdk==2\nhuge==1\n")
    packages = Packages(**{"huge/__init__.py": os.urandom(300_000)})
    with pytest.raises(BuildError, match=r"over its budget of .* MB; the largest in it are huge 0\.3 MB, sdk"):
        build(options, installer=packages, limits=limits)
    assert options.output.read_bytes() == good
    assert sorted(path.name for path in options.output.parent.iterdir()) == ["f.zip", "f.zip.stamp"]


def test_an_installation_that_fails_leaves_nothing(options: Options) -> None:
    def refuse(folder: Path, options: Options) -> None:
        raise BuildError("uv did not install")

    with pytest.raises(BuildError, match="uv did not install"):
        build(options, installer=refuse)
    assert not options.output.exists()


def test_requirements_that_uv_cannot_install_are_refused_and_uv_says_why(
    options: Options, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")
    (options.root / "requirements.txt").write_text(f"six==1.17.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(BuildError, match=r"uv did not install requirements.txt for arm64"):
        build(options)
    assert "six" in capfd.readouterr().err


def test_a_declared_service_that_the_sdk_does_not_know_is_refused(options: Options) -> None:
    def without_sqs(folder: Path, options: Options) -> None:
        Packages()(folder, options)
        (folder / "botocore/data/sqs").rename(folder / "botocore/data/other")

    with pytest.raises(BuildError, match="no service 'sqs'"):
        build(options, installer=without_sqs)


def test_a_native_module_of_another_architecture_is_refused(options: Options) -> None:
    with pytest.raises(BuildError, match=r"sdk/slow\.so is not built for arm64"):
        build(options, installer=Packages(**{"sdk/slow.so": library("x86_64")}))


def test_a_library_loses_what_follows_its_last_segment() -> None:
    slimmed = slim("a.so", library("arm64"), "arm64")
    assert slimmed.endswith(b"code")
    assert struct.unpack_from("<Q", slimmed, 40) == (0,)
    assert struct.unpack_from("<HH", slimmed, 60) == (0, 0)
    assert slim("a.so", slimmed, "arm64") == slimmed


@pytest.mark.parametrize("content", [b"", b"\xcf\xfa\xed\xfe a library of macOS", b"\x7fELF\x01\x01 of 32 bits"])
def test_a_library_in_another_format_stays_as_it_is(content: bytes) -> None:
    assert slim("a.so", content, "arm64") == content


def test_a_slimmed_library_still_loads(tmp_path: Path) -> None:
    folder = Path(sysconfig.get_paths()["platlib"])
    source = next(folder.glob("multidict/*.so"), None)
    if source is None or sys.platform != "linux":
        pytest.skip("no native module of this machine's own to try")
    content = source.read_bytes()
    slimmed = tmp_path / source.name
    slimmed.write_bytes(slim(source.name, content, this_architecture(os.uname().machine)))
    assert slimmed.stat().st_size < len(content)
    assert hasattr(ctypes.CDLL(str(slimmed)), "PyInit__multidict")


@pytest.mark.parametrize(
    "name",
    [
        "six.py",
        "_ext.cpython-313-aarch64-linux-gnu.so",
        "sdk/__init__.py",
        "sdk/libx.so.1",
        "botocore/cacert.pem",
        "botocore/data/endpoints.json",
        "botocore/data/partitions.json",
        "botocore/data/_retry.json",
        "botocore/data/sdk-default-configuration.json",
        "botocore/data/s3/2006-03-01/service-2.json.gz",
        "botocore/data/s3/2006-03-01/service-2.sdk-extras.json",
        "sdk-1.dist-info/METADATA",
        "sdk-1.dist-info/LICENSE",
        "sdk-1.dist-info/NOTICE.txt",
        "sdk-1.dist-info/licenses/vendor/llhttp/LICENSE",
        "sdk-1.dist-info/licenses/AUTHORS",
    ],
)
def test_what_a_function_reads_or_a_licence_asks_for_stays(name: str) -> None:
    assert is_needed(PurePosixPath(name), {"s3"})


@pytest.mark.parametrize(
    "name",
    [
        ".lock",
        "bin/jp.py",
        "sdk/__pycache__/x.cpython-313.pyc",
        "sdk/tests/test_x.py",
        "sdk/x.pyx",
        "sdk/x.c",
        "sdk/x.pyi",
        "botocore/data/ec2/2016-11-15/service-2.json.gz",
        "botocore/data/s3/2006-03-01/examples-1.json",
        "boto3/data/s3/2006-03-01/resources-1.json",
        "boto3/examples/s3.rst",
        "sdk-1.dist-info/RECORD",
        "sdk-1.dist-info/INSTALLER",
        "sdk-1.dist-info/entry_points.txt",
        "distutils-precedence.pth",
    ],
)
def test_what_no_function_reads_goes(name: str) -> None:
    assert not is_needed(PurePosixPath(name), {"s3"})


def test_the_outputs_have_names_by_architecture_and_layer(tmp_path: Path) -> None:
    arm = read_options("arm64", layer=True, output=None, environ={})
    assert [path.name for path in arm.outputs] == ["function-arm64.zip", "function-arm64-layer.zip"]
    assert arm.platform == "aarch64-manylinux_2_34"
    local = read_options(None, layer=False, output=tmp_path / "mine.zip", environ={})
    assert (local.outputs, local.platform) == ((tmp_path / "mine.zip",), None)


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        (None, (1980, 1, 1, 0, 0, 0)),
        ("0", (1980, 1, 1, 0, 0, 0)),
        ("1767322985", (2026, 1, 2, 3, 3, 4)),
    ],
)
def test_the_entries_time_is_source_date_epoch_or_the_first_that_a_zip_knows(
    epoch: str | None, expected: tuple[int, ...]
) -> None:
    assert entry_time(epoch) == expected


@pytest.mark.parametrize("epoch", ["yesterday", "99999999999", "9" * 40])
def test_an_epoch_that_no_zip_can_say_is_refused(epoch: str) -> None:
    with pytest.raises(BuildError, match="SOURCE_DATE_EPOCH"):
        entry_time(epoch)


def test_a_machine_that_lambda_has_none_like_is_refused() -> None:
    assert this_architecture("AMD64") == "x86_64"
    with pytest.raises(BuildError, match="this machine is riscv64"):
        this_architecture("riscv64")


@pytest.mark.parametrize(
    "arguments", [[], ["--architecture", "mips"], ["--local", "--architecture", "arm64"], ["--local", "--fast"]]
)
def test_wrong_usage_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        builder.main(arguments)
    assert exited.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_what_cannot_be_built_exits_with_1_and_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert builder.main(["--local", "--output", "package.tar"]) == 1
    assert capsys.readouterr().err == "no package was made: --output package.tar does not end in .zip\n"


def test_the_zip_is_whole(options: Options) -> None:
    build(options, installer=Packages())
    with zipfile.ZipFile(io.BytesIO(options.output.read_bytes())) as archive:
        assert archive.testzip() is None
