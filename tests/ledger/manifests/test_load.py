"""Import of manifests: all of it or nothing, once or twice, in little memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from auditor.errors import ManifestError
from auditor.ledger.base import Expectation
from auditor.ledger.manifests.base import ManifestFile
from auditor.ledger.manifests.load import BATCH, Imported, Spool, import_all, read_all
from auditor.model.target import Target
from tests.support.fakes.manifests import THEN, MemoryLedger

SHA = "ab" * 32
OTHER = "cd" * 32
MD5 = "ef" * 16
OURS = "key,version_id,etag,size,algorithm,digest,source,recorded_at,verified_at,bytes_read\r\n"


def write(tmp_path: Path, **files: str) -> list[ManifestFile]:
    """Files by name, with `_` for a dot."""
    sources = []
    for name, text in files.items():
        path = tmp_path / name.replace("_", ".")
        path.write_bytes(text.encode())
        sources.append(ManifestFile(str(path)))
    return sources


async def imported(ledger: MemoryLedger, sources: list[ManifestFile], prefix: str = "", *algorithms: str) -> Imported:
    with Spool(sources) as spool:
        read_all(sources, spool, prefix, algorithms=algorithms)
        return await import_all(spool, ledger, Target("b", prefix), THEN, lambda done: True)


def refused(sources: list[ManifestFile]) -> str:
    with Spool(sources) as spool, pytest.raises(ManifestError) as error:
        read_all(sources, spool, "")
    return str(error.value)


async def test_names_are_joined_to_the_prefix_as_data(tmp_path: Path) -> None:
    ledger = MemoryLedger()
    sources = write(tmp_path, sums=f"{SHA}  ./a\n{OTHER}  ../b\n{OTHER}  /c\n")
    assert await imported(ledger, sources, "p/") == Imported(3, 0, complete=True)
    assert [one.key for one in ledger.expected.values()] == ["p/../b", "p//c", "p/a"]
    assert ledger.expected["p/a", "sha256", "sums"] == Expectation(
        key="p/a", algorithm="sha256", digest=SHA, origin="sums", imported_at=THEN
    )


def test_contradiction_names_both_lines(tmp_path: Path) -> None:
    for lines in ([f"{SHA}  a", f"{SHA}  b", f"{OTHER}  ./a"], [f"{SHA}  a", f"{MD5}  a", f"SHA256 (a) = {OTHER}"]):
        told = refused(write(tmp_path, sums="\n".join(lines)))
        assert f"sums:3: another sha256 of 'a' than in {tmp_path}/sums:1" in told
    sources = write(tmp_path, a_csv=f"key,size,digest\nk,1,{SHA}\nk,2,{SHA}\n")
    assert f"a.csv:3: another size of 'k' than in {tmp_path}/a.csv:2" in refused(sources)
    rest = f"auditor,{THEN},,3\r\n"
    text = OURS + f"k,v1,e,3,sha256,{SHA},{rest}k,v1,e,3,sha256,{OTHER},{rest}"
    assert "all.csv:3: another sha256 of 'k' than" in refused(write(tmp_path, all_csv=text))


def test_contradiction_of_two_files_of_one_name(tmp_path: Path) -> None:
    """The ledger keeps one digest for a key, an algorithm and a manifest's name: the second would replace the first."""
    paths = [tmp_path / folder / "sums" for folder in "ab"]
    for path, digest in zip(paths, [SHA, OTHER], strict=True):
        path.parent.mkdir()
        path.write_text(f"{digest}  k\n")
    told = refused([ManifestFile(str(path)) for path in paths])
    assert f"b/sums:1: another sha256 of 'k' than in {paths[0]}:1" in told


async def test_nothing_is_written_when_the_last_line_of_the_last_file_is_bad(tmp_path: Path) -> None:
    ledger = MemoryLedger()
    with pytest.raises(ManifestError, match="two:3: "):
        await imported(ledger, write(tmp_path, one=f"{SHA}  a\n", two=f"{SHA}  b\n{SHA}  c\nnonsense\n"))
    assert ledger.expected == {}


def test_name_that_is_no_key(tmp_path: Path) -> None:
    for text, sentence in (
        (f"{SHA}  a\n{SHA}  {'x' * 1025}\n", "sums:2: the name is longer than a key can be (1,024 bytes)"),
        (f"{SHA}  {'é' * 513}\n", "sums:1: the name is longer than a key"),
        (f"{SHA}  ./\n", "sums:1: the line names no file"),
        (f"key,digest\n,{SHA}\n", "sums:2: the line names no file"),
    ):
        assert sentence in refused(write(tmp_path, sums=text))


def test_tag_manifest_is_left_out_and_other_algorithms_are_counted(tmp_path: Path) -> None:
    tags = ManifestFile(str(tmp_path / "tagmanifest-sha256.txt"))
    (tmp_path / "tagmanifest-sha256.txt").write_text(f"{SHA}  bag-info.txt\n")
    sources = [tags, *write(tmp_path, sums=f"{SHA}  a\n{MD5}  a\n")]
    with Spool(sources) as spool:
        read = read_all(sources, spool, "", algorithms=["sha256"])
    assert [(one.form, one.digests, one.other) for one in read] == [("", 0, 0), ("sha256sum", 1, 1)]


async def test_last_version_of_our_table_speaks_for_its_key(tmp_path: Path) -> None:
    rest = f"auditor,{THEN},,3\r\n"
    text = OURS + f"k,v1,e,3,sha256,{SHA},{rest}k,v1,e,3,md5,{MD5},{rest}k,v2,f,4,sha256,{OTHER},{rest}"
    ledger = MemoryLedger()
    await imported(ledger, write(tmp_path, all_csv=text))
    assert {place[:2]: (one.digest, one.size) for place, one in ledger.expected.items()} == {
        ("k", "sha256"): (OTHER, 4)
    }


async def test_stop_leaves_the_rest_for_another_time(tmp_path: Path) -> None:
    ledger = MemoryLedger()
    sources = write(tmp_path, sums="".join(f"{SHA}  {number}\n" for number in range(BATCH + 1)))
    with Spool(sources) as spool:
        read_all(sources, spool, "")
        done = await import_all(spool, ledger, Target("b"), THEN, lambda done: done < BATCH)
    assert (done, len(ledger.expected)) == (Imported(BATCH, 0, complete=False), BATCH)
    assert await imported(ledger, sources) == Imported(1, BATCH, complete=True)


def test_memory_does_not_grow_with_the_manifest(tmp_path: Path) -> None:
    def peak(lines: int) -> int:
        with (tmp_path / "sums").open("w") as file:
            file.writelines(f"{number:064x}  folder/{number}\n" for number in range(lines))
        sources = [ManifestFile(str(tmp_path / "sums"))]
        tracemalloc.start()
        with Spool(sources) as spool:
            assert read_all(sources, spool, "")[0].digests == lines
            assert sum(map(len, spool.batches(THEN))) == lines
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(100)
    # The process's other threads only add to a peak: the smaller of two is the import's own.
    assert min(peak(5_000) for _ in range(2)) < peak(1_000) + 200_000
