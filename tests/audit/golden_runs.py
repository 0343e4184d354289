"""The goldens of whole runs: each file of a run folder as an audit of the stub writes it.

`make goldens` writes them anew, and `git diff` shows what changes in a run folder. The run's ID, its place, its
duration, and the sizes and digests of compressed files differ from run to run: words stand for them.
"""

from __future__ import annotations

import asyncio
import gzip
import re
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from auditor.ledger import open_ledger
from auditor.model.access import Verdict
from auditor.model.exception import ExceptionEntry
from auditor.model.object import ALL_USERS, Grant
from auditor.model.version import VERSION
from tests.support.audit_runs import audit
from tests.support.odd_keys import ODD_KEYS
from tests.support.servers.clients import BUCKET
from tests.support.servers.samples import SAMPLES
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import VANISH, on_keys
from tests.support.servers.world import OWNER, STRANGER, Odd, StubBucket, World

PLACE: Final = Path(__file__).parent / "goldens"
FIRST: Final = datetime(2027, 3, 1, 2, 0, tzinfo=UTC).timestamp()
DAY: Final = 86_400.0
PUBLIC: Final[Mapping[str, Any]] = {"acl": "public-read"}
SHARED: Final[Mapping[str, Any]] = {"grants": (Grant(OWNER, "FULL_CONTROL"), Grant(STRANGER, "READ"))}
DARK: Final[Mapping[str, Any]] = {**PUBLIC, "deny": {"acl"}}
NIGHTS: Final[Mapping[str, tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]]] = {
    "new/a": ({}, PUBLIC),
    f"uploaded/{ODD_KEYS['emoji']}": (None, PUBLIC),
    "worsened/a": (SHARED, PUBLIC),
    "improved/a": (PUBLIC, SHARED),
    "resolved/a": (PUBLIC, {}),
    "gone/a": (PUBLIC, None),
    "unread/a": (PUBLIC, DARK),
    "decided/a": (DARK, PUBLIC),
    "open/a": (PUBLIC, PUBLIC),
    "site/index.html": (PUBLIC, PUBLIC),
    ODD_KEYS["double quote"]: ({}, {}),
    ODD_KEYS["separator"]: (PUBLIC, PUBLIC),
    ODD_KEYS["both line ends"]: (DARK, DARK),
}
"""By key: the fields of the object in the first night and in the second; None: it is not there."""
EXCEPTIONS: Final = (
    ExceptionEntry("a website", "web", "2999-12-31", prefix="site/", verdict=Verdict.EXPOSED, audience="anyone"),
    ExceptionEntry("over", "web", "2020-01-01", prefix="open/", rule="O02", grantee=ALL_USERS, id="old"),
    ExceptionEntry("nothing like it", "web", "2999-12-31", prefix="none/", rule="O02"),
    ExceptionEntry("it may stay dark", "web", "2999-12-31", action="GetObjectAcl", code="AccessDenied", pattern="one*"),
)


def golden(name: str) -> Path:
    """Return the file with the expected texts of a run."""
    return PLACE / f"{name}.txt"


async def second_night(stub: StubServer, out: Path) -> Path:
    """Audit two nights of one bucket, with changes of each kind, exceptions and a ledger; return the second folder."""
    told: dict[str, Any] = {"only": ("B02", "O02", "O08"), "exceptions": EXCEPTIONS, "part_lines": 5}
    told |= {"engine": "direct", "hash": False}
    async with open_ledger(f"sqlite:{out / 'digests.db'}") as ledger:
        for night in range(2):
            bucket = stub.world.buckets[BUCKET] = StubBucket(name=BUCKET)
            for key, nights in NIGHTS.items():
                if (fields := nights[night]) is not None:
                    bucket.put(key, key.encode(), **fields)
            result = await audit(stub, out, ledger=ledger, clock=partial(float, FIRST + night * DAY), **told)
    return result.folder


async def versions(stub: StubServer, out: Path) -> Path:
    """Audit versions, delete markers, an object that vanishes, and settings of the bucket that cannot be read."""
    bucket = stub.world.buckets[BUCKET] = StubBucket(name=BUCKET)
    bucket.put("before versioning", b"null", metadata={"team": "é", "Build": "7"})
    bucket.versioning = "Enabled"
    for kind in ("public-read", "foreign-owner", "kms", "sse-c", "archived", "denied-head"):
        bucket.put(f"kind/{kind}", kind.encode(), **SAMPLES[kind])
    bucket.put("kind/kms", b"newer", checksums={"SHA256": "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="})
    bucket.delete("kind/archived")
    bucket.put("vanishing", b"x")
    for operation in ("GetBucketPolicy", "GetPublicAccessBlock"):
        bucket.odd[operation] = Odd.DENIED
    stub.faults.append(on_keys(lambda key: key == "vanishing", VANISH))
    told: dict[str, Any] = {"versions": True, "keep_metadata": True, "ignore": ("K01",)}
    result = await audit(stub, out, engine="direct", clock=partial(float, FIRST), **told)
    return result.folder


RUNS: Final[Mapping[str, Callable[[StubServer, Path], Awaitable[Path]]]] = {
    "second_night": second_night,
    "versions": versions,
}


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the names and the bytes of the files of a run, unpacked; that of its page is left out."""
    for path in sorted(folder.rglob("*.*")):
        if path.is_file() and path.suffix in (".json", ".gz"):
            data = path.read_bytes()
            yield path.relative_to(folder).as_posix(), gzip.decompress(data) if path.suffix == ".gz" else data
    yield "latest.json", (folder.parent / "latest.json").read_bytes()


def texts_of(folder: Path) -> bytes:
    """Return the files of a run, each after a line with its name, with words for all that differs from run to run."""
    data = b"".join(b"== %s\n%s" % (name.encode(), text) for name, text in _files(folder))
    text = data.decode().replace(str(folder.parent.parent), "OUT")
    text = text.replace(f'"auditor": "{VERSION}"', '"auditor": "VERSION"')
    text = re.sub(r"([0-9]{8}T[0-9]{6}Z)-[0-9a-f]{6}", r"\1-RUN", text)
    text = re.sub(r'("seconds": )[0-9.]+', r"\1SECONDS", text)
    text = re.sub(r'("(?:sha256|[a-z0-9-]+\.(?:json|html))": ")[0-9a-f]{64}', r"\1SHA256", text)
    text = re.sub(r'("bytes": )[0-9]+(, "sha256")', r"\1BYTES\2", text)
    return text.encode()


async def made_in(name: str, out: Path) -> Path:
    """Make a run below the folder `out`, and return its folder."""
    world = World()
    world.add(BUCKET)
    with StubServer(world) as stub:
        return await RUNS[name](stub, out)


async def made(name: str, out: Path) -> bytes:
    """Make a run below the folder `out`, and return the texts of its files."""
    return texts_of(await made_in(name, out))


def main() -> None:
    for name in RUNS:
        with tempfile.TemporaryDirectory() as out:
            golden(name).write_bytes(asyncio.run(made(name, Path(out))))


if __name__ == "__main__":
    main()
