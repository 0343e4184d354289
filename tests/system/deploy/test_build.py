"""The builder, with packages of a few bytes: packed files, equal outputs, skipped builds, refusals."""

from __future__ import annotations

import os
import stat
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path

import pytest

from deploy import build as builder
from deploy.budget import Budget
from deploy.build import build
from deploy.errors import BuildError
from deploy.options import Options, entry_time
from tests.system.deploy.packages import Packages, library, names

OURS = ["auditor/rules/access/o01_everyone_control.py", "handlers/audit.py"]


def test_two_builds_at_different_times_are_equal_with_bytecode_for_every_module(
    options: Options, tmp_path: Path
) -> None:
    packages, interpreter = Packages(), Path(sys.executable)
    build(options, installer=packages, interpreter=interpreter)
    again = replace(options, output=tmp_path / "again" / "f.zip")
    for path in options.root.rglob("*.py"):
        os.utime(path, (1, 1))
    build(again, installer=packages, interpreter=interpreter)
    assert packages.calls == 2
    assert options.output.read_bytes() == again.output.read_bytes()
    with zipfile.ZipFile(options.output) as archive:
        assert archive.testzip() is None
        cached = {name: archive.read(name) for name in archive.namelist() if name.endswith(".pyc")}
    assert sorted(cached) == sorted([*(cache_from_source(name) for name in OURS), "sdk/__init__.pyc"])
    assert "sdk/__init__.py" not in names(options.output)
    for content in cached.values():
        assert (content[:4], content[4:8]) == (MAGIC_NUMBER, b"\1\0\0\0")
        assert b"/var/task/" in content


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


def test_the_package_holds_the_functions_code_and_licence_and_says_that_it_has_no_bytecode(options: Options) -> None:
    (options.root / "auditor/__pycache__").mkdir()
    (options.root / "auditor/__pycache__/x.pyc").write_bytes(b"")
    (options.root / "auditor/.notes.swp").write_bytes(b"")
    lines = build(options, installer=Packages())
    ours = [name for name in names(options.output) if name.startswith(("auditor/", "handlers/"))]
    assert ours == ["auditor/LICENSE", *OURS], "the command line is no function's"
    assert [line for line in lines if "without its bytecode" in line]
    assert not [name for name in names(options.output) if name.endswith(".pyc")]


def test_a_layer_has_the_dependencies_below_python_and_stays_the_same_when_only_our_code_changes(
    options: Options, tmp_path: Path
) -> None:
    layer = tmp_path / "out" / "layer.zip"
    layered = replace(options, layer=layer)
    build(layered, installer=Packages())
    assert names(layered.output) == ["auditor/LICENSE", *OURS]
    assert "python/sdk/__init__.py" in names(layer)
    assert all(name.startswith("python/") for name in names(layer))
    before = (layer.read_bytes(), options.output.read_bytes())
    (options.root / "handlers/audit.py").write_text("changed = True\n")
    build(layered, installer=Packages())
    assert layer.read_bytes() == before[0]
    assert options.output.read_bytes() != before[1]


def test_a_changed_input_or_option_is_built_and_unchanged_ones_are_not(options: Options, tmp_path: Path) -> None:
    packages = Packages()
    build(options, installer=packages)
    changed = (
        "requirements.txt",
        "auditor/rules/access/o01_everyone_control.py",
        "handlers/new.py",
        "deploy/build.py",
        "deploy/new.py",
        "LICENSE",
    )
    for calls, name in enumerate(changed, 2):
        assert build(options, installer=packages) == [f"{options.output}: unchanged"]
        (options.root / name).write_text("changed\n")
        build(options, installer=packages)
        assert packages.calls == calls, name
    others = [
        replace(options, architecture="x86_64"),
        replace(options, platform=None),
        replace(options, layer=tmp_path / "layer.zip"),
        replace(options, time=(2000, 1, 1, 0, 0, 0)),
    ]
    for calls, other in enumerate(others, packages.calls + 1):
        build(other, installer=packages)
        assert packages.calls == calls, other


def test_a_package_that_is_not_as_it_was_made_is_built(options: Options) -> None:
    packages = Packages()
    build(options, installer=packages)
    good = options.output.read_bytes()
    damages: list[Callable[[], object]] = [options.output.unlink, lambda: options.output.write_bytes(good[:-1])]
    for damage in damages:
        damage()
        build(options, installer=packages)
        assert options.output.read_bytes() == good


@pytest.mark.parametrize("limits", [Budget(zipped=100_000), Budget(unzipped=200_000)])
def test_a_package_over_its_budget_names_the_largest_and_keeps_the_last_good_one(
    options: Options, limits: Budget
) -> None:
    build(options, installer=Packages())
    good = options.output.read_bytes()
    (options.root / "requirements.txt").write_text("sdk==2\nhuge==1\n")
    packages = Packages(**{"huge/__init__.py": os.urandom(300_000), "sdk/data.bin": os.urandom(1_000)})
    with pytest.raises(BuildError, match=r"over its budget of .* MB; the largest in it are huge 0\.3 MB, sdk"):
        build(options, installer=packages, limits=limits)
    assert options.output.read_bytes() == good
    assert sorted(path.name for path in options.output.parent.iterdir()) == ["f.zip", "f.zip.stamp"]


def test_requirements_that_uv_cannot_install_are_refused_and_uv_says_why(
    options: Options, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")
    (options.root / "requirements.txt").write_text(f"six==1.17.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(BuildError, match=r"uv did not install requirements.txt for aarch64"):
        build(options)
    assert "six" in capfd.readouterr().err
    assert not options.output.exists()


def test_packages_that_no_function_could_run_are_refused(options: Options) -> None:
    def without_sqs(folder: Path, options: Options) -> None:
        Packages()(folder, options)
        (folder / "botocore/data/sqs").rename(folder / "botocore/data/other")

    with pytest.raises(BuildError, match="no service 'sqs'"):
        build(options, installer=without_sqs)
    with pytest.raises(BuildError, match=r"sdk/slow\.so is not built for arm64"):
        build(options, installer=Packages(**{"sdk/slow.so": library("x86_64")}))
    with pytest.raises(BuildError, match="false does not compile the package"):
        build(options, installer=Packages(), interpreter=Path("/bin/false"))


def test_the_entries_time_is_source_date_epoch_or_the_first_that_a_zip_knows() -> None:
    for epoch, expected in ((None, (1980, 1, 1, 0, 0, 0)), ("0", (1980, 1, 1, 0, 0, 0))):
        assert entry_time(epoch) == expected
    assert entry_time("1767322985") == (2026, 1, 2, 3, 3, 4)
    for wrong in ("yesterday", "99999999999", "9" * 40):
        with pytest.raises(BuildError, match="SOURCE_DATE_EPOCH"):
            entry_time(wrong)


def test_wrong_usage_exits_with_2_and_a_package_that_cannot_be_built_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ("", "--architecture mips", "--local --architecture arm64", "--local --fast"):
        with pytest.raises(SystemExit) as exited:
            builder.main(arguments.split())
        assert exited.value.code == 2
        assert "usage:" in capsys.readouterr().err
    assert builder.main(["--local", "--output", "package.tar"]) == 1
    assert capsys.readouterr().err == "no package was made: --output package.tar does not end in .zip\n"
