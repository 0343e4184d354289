"""Make reproducible zips: sorted entries, one date for all, fixed modes and one level of compression."""

from __future__ import annotations

import io
import os
import stat
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from deploy.cut import Files
from deploy.native import is_native
from deploy.options import Moment

_LEVEL: Final = 9
_UNIX: Final = 3


def pack(files: Files, time: Moment) -> bytes:
    """Return the zip of the files. Equal files make equal zips if zlib is the same. time: the date of every entry."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, time)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = _UNIX
            entry.external_attr = (stat.S_IFREG | (0o755 if is_native(name) else 0o644)) << 16
            archive.writestr(entry, files[name])
    return buffer.getvalue()


def replace(path: Path, content: bytes) -> None:
    """Write a file atomically: an interrupted build, or two builds at once, leave no partial file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
