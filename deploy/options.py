"""The options of a package: its architecture, its layer, its path."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.errors import BuildError

ROOT: Final = Path(__file__).parent.parent
PYTHONS: Final = ("3.13", "3.14")
"""The versions of the functions' Python: Lambda's runtimes python3.13 and python3.14."""
PYTHON: Final = PYTHONS[0]
"""The version unless another is asked for."""

PLATFORMS: Final = {"arm64": "aarch64-manylinux_2_34", "x86_64": "x86_64-manylinux_2_34"}
"""Lambda's names of the architectures, and uv's platforms of wheels for them: Amazon Linux 2023 has glibc 2.34."""

_MACHINES: Final = {"aarch64": "arm64", "arm64": "arm64", "x86_64": "x86_64", "amd64": "x86_64"}
_ZIP_EPOCH: Final = (1980, 1, 1, 0, 0, 0)

REQUIREMENTS: Final = "requirements.txt"
"""The part of uv.lock that functions with all engines depend on."""

Moment = tuple[int, int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Options:
    """platform: uv's name of the target; None: this machine. layer: the dependencies' own zip, or None. requirements:
    the path, from root, of the requirements with hashes that are installed. python: a version of PYTHONS.

    config: an auditor.toml for the functions, or None. buckets: their targets, if no variable can hold them. time: the
    date of every entry, in UTC.
    """

    architecture: str
    platform: str | None
    output: Path
    layer: Path | None = None
    root: Path = ROOT
    requirements: str = REQUIREMENTS
    python: str = PYTHON
    config: Path | None = None
    buckets: tuple[str, ...] = ()
    time: Moment = _ZIP_EPOCH

    @property
    def outputs(self) -> tuple[Path, ...]:
        return (self.output,) if self.layer is None else (self.output, self.layer)


def read_options(
    architecture: str | None,
    *,
    layer: bool,
    output: Path | None,
    config: Path | None = None,
    buckets: str = "",
    kind: str = "function",
    requirements: str = REQUIREMENTS,
    python: str = PYTHON,
    environ: Mapping[str, str] = os.environ,
) -> Options:
    """architecture: one of PLATFORMS; None: this machine's. output: the function's zip; the layer's lies beside it.
    kind: the first part of the name of the zip, if `output` does not name it.
    """
    name = architecture or "local"
    output = output or ROOT / ".build" / f"{kind}-{name}.zip"
    if output.suffix != ".zip":
        raise BuildError(f"--output {output} does not end in .zip")
    return Options(
        architecture=architecture or this_architecture(platform.machine()),
        platform=PLATFORMS[architecture] if architecture else None,
        output=output,
        layer=output.with_name(f"{output.stem}-layer.zip") if layer else None,
        requirements=requirements,
        python=python,
        config=config,
        buckets=tuple(buckets.split(",")) if buckets else (),
        time=entry_time(environ.get("SOURCE_DATE_EPOCH")),
    )


def this_architecture(machine: str) -> str:
    """Return Lambda's name of this machine's architecture. Raises BuildError if Lambda has no such architecture."""
    try:
        return _MACHINES[machine.lower()]
    except KeyError:
        raise BuildError(f"this machine is {machine}: no package can be made for it; give --architecture") from None


def entry_time(epoch: str | None) -> Moment:
    """Return SOURCE_DATE_EPOCH (reproducible-builds.org) as a zip has it: from 1980 on, in steps of two seconds."""
    if not epoch:
        return _ZIP_EPOCH
    try:
        moment = time.gmtime(int(epoch))
    except (ValueError, OverflowError, OSError):
        raise BuildError(f"SOURCE_DATE_EPOCH {epoch!r} is not a number of seconds since 1970") from None
    if moment.tm_year > 2107:
        raise BuildError(f"SOURCE_DATE_EPOCH {epoch} is later than a zip can say")
    return max(_ZIP_EPOCH, (moment[0], moment[1], moment[2], moment[3], moment[4], moment[5] // 2 * 2))
