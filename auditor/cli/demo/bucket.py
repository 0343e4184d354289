"""Choose the demo's files, and fill its bucket with them and with problems, in an order that moto serves correctly."""

from __future__ import annotations

import json
import os
import platform
import stat
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from auditor.cli.demo.plants import DECOYS, METADATA, PLANTED, PUBLIC_PREFIX, STRANGER, Planted
from auditor.errors import UsageError
from auditor.text import visible

BUCKET: Final = "auditor-demo"
UPLOADS: Final = 8
"""Largest number of uploads at once."""
MOST_FILES: Final = 500
"""Largest number of files: the demo ends within 90 seconds on two cores."""
MOST_BYTES: Final = 64 * 1024 * 1024
LARGEST: Final = 1024 * 1024
"""Largest size of a file, in bytes, because moto holds all files in memory."""
_LONGEST_KEY: Final = 1024
_SKIPPED_FOLDERS: Final = frozenset({"site-packages", "dist-packages", "__pycache__", ".git"})


def _allow(name: str, principal: object, action: str, below: str, **more: object) -> dict[str, object]:
    resource = f"arn:aws:s3:::{BUCKET}{below}"
    return {"Sid": name, "Effect": "Allow", "Principal": principal, "Action": action, "Resource": resource, **more}


POLICY: Final = {
    "Version": "2012-10-17",
    "Statement": [
        _allow("Website", "*", "s3:GetObject", f"/{PUBLIC_PREFIX}*"),
        _allow(
            "Offices", "*", "s3:GetObject", "/intranet/*", Condition={"IpAddress": {"aws:SourceIp": "198.48.0.0/12"}}
        ),
        _allow("Partner", {"CanonicalUser": STRANGER}, "s3:PutBucketPolicy", ""),
    ],
}


class Choice(Struct, frozen=True):
    """The files to upload, by their object keys. origin: words for the user on where they come from. left_out: True if
    there are more files than these.
    """

    files: Mapping[str, Path]
    origin: str
    left_out: bool = False

    @property
    def keys(self) -> list[str]:
        """The keys of all objects that load() puts into the bucket."""
        return [*(plant.key for plant in (*PLANTED, *DECOYS) if plant.key is not None), *self.files]


def choose(folder: str | None, paths: Mapping[str, str] | None = None) -> Choice:
    """Choose files below `folder`, each time the same in the same order; None: sources of Python and its packages.

    paths: the folders of Python's sources; None: sysconfig.get_paths(). Raises UsageError if there are no files.
    """
    if folder is None:
        places = paths or sysconfig.get_paths()
        roots = {"files/stdlib/": Path(places["stdlib"]), "files/packages/": Path(places["purelib"])}
        sources = ((key, path) for key, path in _walk(roots, _SKIPPED_FOLDERS) if path.suffix == ".py")
        files, _ = _pick(sources)
        if not files:
            raise UsageError(f"there are no Python sources in {places['stdlib']}: give files with --from DIR")
        return Choice(files, f"source files of Python {platform.python_version()}")
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise UsageError(f"--from {folder[:200]!r} is not a directory: name one that holds files")
    files, left_out = _pick(_walk({"files/": root}, frozenset()))
    if not files:
        raise UsageError(f"--from {folder[:200]!r} holds no files that the demo could load: name another directory")
    return Choice(files, f"files from {root.name or root}", left_out)


def _walk(roots: Mapping[str, Path], skipped: frozenset[str]) -> Iterator[tuple[str, Path]]:
    """Yield the key and the path of every file, sorted by name within each folder. Links to folders are not followed.

    roots: the folders by the prefixes of their keys. skipped: names of folders to leave out.
    """
    for prefix, root in roots.items():
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(name for name in folders if name not in skipped)
            for path in (Path(folder, name) for name in sorted(names)):
                yield f"{prefix}{path.relative_to(root).as_posix()}", path


def _pick(found: Iterator[tuple[str, Path]]) -> tuple[dict[str, Path], bool]:
    """Return the first files that the demo can load, at most MOST_FILES, and True if others are left out."""
    files: dict[str, Path] = {}
    room, left_out = MOST_BYTES, False
    for key, path in found:
        size = _size(path)
        if len(files) == MOST_FILES:
            return files, True
        if size is None or size > min(LARGEST, room) or not _plain(key):
            left_out = True
            continue
        room -= size
        files[key] = path
    return files, left_out


def _size(path: Path) -> int | None:
    """Return a file's size in bytes; None if it is not a regular file that can be read."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) and os.access(path, os.R_OK) else None


def _plain(key: str) -> bool:
    """True if rule K01 has nothing to find in the object key: an uploaded file must have no finding."""
    return key.isprintable() and "\\" not in key and len(key.encode()) <= _LONGEST_KEY


def load(s3: Any, choice: Choice, report: Callable[[int, int], None]) -> int:
    """Create the bucket, put all objects into it, and return the sum of their sizes in bytes.

    The problems that are `old` are uploaded first, before the bucket's encryption is turned on, and so are not
    encrypted. The bucket's public ACL is set at the end, because moto gives it to every later object. report: called
    after each upload but the old ones, with the number of those done and of all.
    """
    plants = [plant for plant in (*PLANTED, *DECOYS) if plant.key is not None]
    s3.create_bucket(Bucket=BUCKET)
    size = _put_all(s3, [_of_plant(plant) for plant in plants if plant.old], lambda *_: None)
    default = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    s3.put_bucket_encryption(Bucket=BUCKET, ServerSideEncryptionConfiguration={"Rules": [default]})
    files = [{"Key": key, "Body": path, "Metadata": {METADATA: "this machine"}} for key, path in choice.files.items()]
    size += _put_all(s3, [*(_of_plant(plant) for plant in plants if not plant.old), *files], report)
    s3.put_bucket_policy(Bucket=BUCKET, Policy=json.dumps(POLICY))
    s3.put_bucket_acl(Bucket=BUCKET, ACL="public-read")
    return size


def _of_plant(plant: Planted) -> dict[str, Any]:
    """Return the arguments of PutObject."""
    text = {"Key": plant.key, "Body": f"{plant.description}\n".encode(), "ContentType": "text/plain"}
    return {**text, "Metadata": {METADATA: "demo"} if plant.labelled else {}, **plant.put}


def _put_all(s3: Any, uploads: Sequence[dict[str, Any]], report: Callable[[int, int], None]) -> int:
    """Upload all objects, and return the sum of their sizes. After Ctrl-C, only the running uploads are finished."""
    pool = ThreadPoolExecutor(UPLOADS, thread_name_prefix="demo-upload")
    size = 0
    try:
        started = [pool.submit(_put, s3, **upload) for upload in uploads]
        for done, future in enumerate(as_completed(started), 1):
            size += future.result()
            report(done, len(uploads))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return size


def _put(s3: Any, *, Body: bytes | Path, **arguments: Any) -> int:  # noqa: N803 - as PutObject names it
    try:
        body = Body if isinstance(Body, bytes) else Body.read_bytes()
    except OSError as error:
        raise UsageError(f"{visible(str(Body))} cannot be read ({error.strerror}): choose other files") from error
    s3.put_object(Bucket=BUCKET, Body=body, **arguments)
    return len(body)
