"""Limit the size of a package, because every cold start loads it, and nobody notices how it grows."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO

from deploy.errors import BuildError

MB = 1_000_000
LAMBDA = 250 * 1024 * 1024
"""Bytes of a function's package and its layers, unzipped (Lambda quotas: 250 MB)."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Largest sizes, in bytes, of the function's zip and its layer's zip together."""

    zipped: int = 10 * MB
    unzipped: int = 50 * MB


@dataclass(frozen=True, slots=True)
class Weight:
    """Sizes of a package, in bytes. by_package: zipped bytes of each top-level name."""

    zipped: int
    unzipped: int
    by_package: Counter[str]

    def __str__(self) -> str:
        return f"{self.zipped / MB:.1f} MB zipped, {self.unzipped / MB:.1f} MB unzipped"


def weigh(archives: Iterable[bytes]) -> Weight:
    zipped = unzipped = 0
    by_package: Counter[str] = Counter()
    for content in archives:
        zipped += len(content)
        with zipfile.ZipFile(BytesIO(content)) as archive:
            for entry in archive.infolist():
                unzipped += entry.file_size
                by_package[_package(entry.filename)] += entry.compress_size
    return Weight(zipped, unzipped, by_package)


def check(weight: Weight, budget: Budget) -> None:
    """Raise BuildError, which names the largest packages, if the package is over its budget."""
    if weight.zipped <= budget.zipped and weight.unzipped <= budget.unzipped:
        return
    largest = ", ".join(f"{name} {size / MB:.1f} MB" for name, size in weight.by_package.most_common(3))
    raise BuildError(
        f"the package is {weight}, over its budget of {budget.zipped / MB:g} and {budget.unzipped / MB:g} MB; "
        f"the largest in it are {largest} (zipped)"
    )


def _package(name: str) -> str:
    return name.removeprefix("python/").partition("/")[0]
