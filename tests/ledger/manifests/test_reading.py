"""Manifests of other tools: the meaning of each line, and the lines that are refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from contextlib import closing
from hashlib import new
from pathlib import Path

import pytest

from auditor.errors import ManifestError, UsageError
from auditor.ledger.manifests import FORMS, form_of
from auditor.ledger.manifests.base import LONGEST, ManifestFile, Record
from auditor.ledger.manifests.csv_table import COLUMNS

SHA = "ab" * 32
SHA1 = "ab" * 20
MD5 = "ab" * 16

FILE_NAMES = (
    *("plain.txt", "line one\nline two", "\n", "a\rb", "a\r", "a\\b", "a\\nb", "-rf", " a", "a ", " ", "*a", "#a"),
    *("caf\u00e9 \U0001f4e6", "cafe\u0301", "a\u2028b\x0b\x0c\x85c", "a) = b", "SHA256 (a) = b", SHA, "=cmd()"),
    *("folder/a", "folder/ b/c"),
)


def read(tmp_path: Path, data: bytes, form: str = "sha256sum", name: str = "sums") -> list[Record]:
    path = tmp_path / name
    path.write_bytes(data)
    return list(FORMS[form].read(ManifestFile(str(path))))


def refused(tmp_path: Path, data: bytes, form: str = "sha256sum", name: str = "sums") -> str:
    with pytest.raises(ManifestError) as error:
        read(tmp_path, data, form, name)
    return str(error.value).removeprefix(f"{tmp_path}/")


def test_odd_names_as_coreutils_writes_them(tmp_path: Path) -> None:
    files, names = tmp_path / "files", FILE_NAMES
    for name in names:
        (files / name).parent.mkdir(parents=True, exist_ok=True)
        (files / name).write_bytes(name.encode())
    for algorithm, option in (("sha256", "--text"), ("sha1", "--binary"), ("md5", "--tag"), ("sha256", "--tag")):
        tool = shutil.which(f"{algorithm}sum")
        if tool is None:
            pytest.skip(f"{algorithm}sum is not installed")
        written = subprocess.run([tool, option, "--", *names], cwd=files, check=True, capture_output=True).stdout
        assert [(record.name, record.algorithm, record.digest) for record in read(tmp_path, written)] == [
            (name, algorithm, new(algorithm, name.encode(), usedforsecurity=False).hexdigest()) for name in names
        ], (algorithm, option)


def test_line_of_sums_means_this_name(tmp_path: Path) -> None:
    for line, name in (
        (f"{SHA}  a", "a"),
        (f"{SHA} *a", "a"),
        (f"{SHA.upper()}  a", "a"),
        (f"  {SHA}  a", "a"),
        (f"{SHA}  a\r", "a"),
        (f"{SHA}  ./a/./b", "a/./b"),
        (f"{SHA}  ././a", "./a"),
        (f"{SHA}  /a", "/a"),
        (f"{SHA}  a\\nb", "a\\nb"),
        (f"\\{SHA}  a\\nb\\\\c\\r", "a\nb\\c\r"),
        (f"{SHA} a", "a"),
        (f"SHA256 (a) = {SHA}", "a"),
        (f"SHA256(a)= {SHA}", "a"),
        (f"\\SHA256 (a\\nb) = {SHA}", "a\nb"),
    ):
        assert read(tmp_path, f"{line}\n".encode()) == [Record(1, name, "sha256", SHA)], line


def test_comments_empty_lines_and_a_byte_order_mark_say_nothing(tmp_path: Path) -> None:
    data = f"\ufeff# made by hand\n\n{SHA}  a\n#\n{SHA}  b".encode()
    assert [(record.line, record.name) for record in read(tmp_path, data)] == [(3, "a"), (5, "b")]


def test_line_of_sums_that_is_refused(tmp_path: Path) -> None:
    for data, sentence in (
        (b"no digest here\n", "sums:1: this is not a line of sha256sum"),
        (f"{SHA}  a\n{SHA}\n".encode(), "sums:2: this is not a line"),
        (f"{SHA}  \n".encode(), "sums:1: the line names no file"),
        (f"{SHA}a  b\n".encode(), "sums:1: a digest of 65 hexadecimal digits"),
        (
            f"{'ab' * 48}  a\n".encode(),
            "sums:1: a digest of 96 hexadecimal digits is not one of sha256, sha512, sha1, md5",
        ),
        (f"SHA384 (a) = {'ab' * 48}\n".encode(), "sums:1: SHA384 is not one of sha256, sha512, sha1, md5"),
        (f"SHA1 (a) = {SHA}\n".encode(), "is not a valid sha1 digest: write 40 hexadecimal digits"),
        (f"\\{SHA}  a\\tb\n".encode(), "sums:1: a backslash in the name"),
        (f"\\{SHA}  a\\\n".encode(), "sums:1: a backslash in the name"),
        (f"{SHA}  a\0{SHA}  b\0".encode(), "sums:1: the line contains a NUL byte: write the manifest without --zero"),
        (f"{SHA}  a\n{SHA} b\n".encode(), "sums:2: one space before the name, where the lines above have two"),
        (f"{SHA}  a\n".encode() + f"{SHA}  caf\xe9\n".encode("latin-1"), "sums:2: the line is not UTF-8"),
        (f"{SHA}  a\n{SHA}  ".encode() + b"x" * LONGEST, "sums:2: the line is longer than any key allows"),
        (b"\x1f\x8b\x08\x00" + bytes(range(256)), "sums:1: "),
    ):
        assert sentence in refused(tmp_path, data)


def test_path_of_a_bag_means_this_name(tmp_path: Path) -> None:
    for path, name in (
        ("data/a b", "a b"),
        ("data/a%0Ab%0dc%25d", "a\nb\rc%d"),
        ("data/%2525", "%25"),
        ("data/100%", "100%"),
        ("data/%41", "%41"),
        ("data/data/a", "data/a"),
        ("./data/a", "a"),
        ("*data/a", "a"),
        ("data//a", "/a"),
        ("data/a\\b", "a\\b"),
    ):
        found = read(tmp_path, f"{SHA} \t{path}\n".encode(), "bagit", "manifest-sha256.txt")
        assert found == [Record(1, name, "sha256", SHA)], path


def test_line_of_a_bag_that_is_refused(tmp_path: Path) -> None:
    for line, name, sentence in (
        (f"{SHA}  a", "manifest-sha256.txt", "a path that begins with data/; if sha256sum"),
        (f"{SHA}  data/", "manifest-sha256.txt", "a path that begins with data/"),
        (f"{MD5}  data/a", "manifest-sha256.txt", "has the length of md5, but the file's name says sha256"),
        (f"{'ab' * 48}  data/a", "manifest-sha384.txt", "a digest of 96 hexadecimal digits"),
        (f"{SHA}  data/a", "manifest-sha512.txt", "has the length of sha256, but the file's name says sha512"),
    ):
        told = refused(tmp_path, f"{line}\n".encode(), "bagit", name)
        assert told.startswith(f"{name}:1: ")
        assert sentence in told


def test_plain_table(tmp_path: Path) -> None:
    cases: list[tuple[str, list[Record]]] = [
        (f"key,digest\na,{SHA}\n", [Record(2, "a", "sha256", SHA)]),
        (f"key,digest\r\n./a,{SHA1}\r\n", [Record(2, "a", "sha1", SHA1)]),
        (f'digest,key,size\n{MD5},"a,b",7\n', [Record(2, "a,b", "md5", MD5, 7)]),
        (f'key,digest\n"a\nb",{SHA}\n\nc,{SHA1}\n',
         [Record(2, "a\nb", "sha256", SHA), Record(5, "c", "sha1", SHA1)]),
        (f"key,algorithm,digest\na,CRC64NVME,{'0f' * 8}\na,SHA-1,{SHA1}\n",
         [Record(2, "a", "crc64nvme", "0f" * 8), Record(3, "a", "sha1", SHA1)]),
        (f"key,digest,size\n'=a,{SHA.upper()},\n", [Record(2, "'=a", "sha256", SHA)]),
    ]  # fmt: skip
    for text, records in cases:
        assert read(tmp_path, text.encode(), "csv") == read(tmp_path, f"\ufeff{text}".encode(), "csv") == records


def test_row_that_is_refused(tmp_path: Path) -> None:
    cases = [
        *((head, "sums:1: the header must be that of the auditor's export, or name the columns key and digest, and")
          for head in ("", f"a,{SHA}\n", "key\n", "key,key,digest\n", "key,sha256\n", "path,digest\n", "Key,Digest\n",
                       "key;digest\n", "key\tdigest\n", "key,digest,version_id\n")),
        (f"key,digest\na,{SHA}\nb\n", "sums:3: 1 cells, where the header has 2"),
        (f"key,digest,algorithm\na,{MD5},sha256\n", "is not a valid sha256 digest"),
        ("key,digest\na,\n", "sums:2: the row has no digest"),
        (f'key,digest,algorithm\n"a\nb\nc",{SHA1},md5\n', "sums:2: "),
        (f"key,digest,size\na,{SHA},1.5\n", "'1.5' is not a size"),
        (f"key,digest,size\na,{SHA},-1\n", "'-1' is not a size"),
        (f"key,algorithm,digest\na,sha512,{SHA}\n", "is not a valid sha512 digest"),
        (f"key,algorithm,digest\na,sha384,{SHA}\n", "'sha384' is not one of sha256"),
        (f"key,algorithm,digest\na,,{SHA}\n", "'' is not one of sha256"),
        (f'key,digest\n"a"b,{SHA}\n', "sums:2: this row is not CSV"),
        (f'key,digest\n"a,{SHA}\n' + "x\n" * 100_000, "sums:2: this row is not CSV"),
        (f"key,digest\na\rb,{SHA}\n", "sums:2: this row is not CSV"),
        ("key,digest,algorithm\na,\u0660,sha256\n", "is not a valid sha256 digest"),
        (f"key,digest\na,{'ab' * 8}\n", "a digest of 16 hexadecimal digits is not one of sha256, sha512, sha1, md5"),
    ]  # fmt: skip
    for text, sentence in cases:
        assert sentence in refused(tmp_path, text.encode(), "csv"), text[:40]


def test_form_is_detected(tmp_path: Path) -> None:
    for name, text, form in (
        ("manifest-md5.txt", f"{MD5}  data/a\n", "bagit"),
        ("a.CSV", "whatever", "csv"),
        ("a.txt", f"# sums\n\n{SHA}  a\n", "sha256sum"),
        ("a.txt", f"MD5 (a) = {MD5}\n", "sha256sum"),
        ("a.txt", f"digest,key\n{SHA},a\n", "csv"),
        ("a.txt", ",".join(COLUMNS), "csv"),
        ("a.txt", "", "sha256sum"),
        ("my-manifest-md5.txt", f"{MD5}  data/a\n", "sha256sum"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert form_of(ManifestFile(str(tmp_path / name))).name == form, text


def test_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    for name in ("missing", "."):
        with pytest.raises(UsageError, match="cannot be read"):
            list(ManifestFile(str(tmp_path / name)).lines())


@pytest.mark.parametrize("count", [3, 5000])
def test_pipe_is_read_whole_after_its_form_was_detected(tmp_path: Path, count: int) -> None:
    os.mkfifo(tmp_path / "pipe")
    text = "".join(f"{SHA}  key {number}\n" for number in range(count))
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=(text,))
    writer.start()
    with closing(ManifestFile(str(tmp_path / "pipe"))) as source:
        records = list(form_of(source).read(source))
    writer.join()
    assert [record.name for record in records] == [f"key {number}" for number in range(count)]


def test_endless_line_of_a_device_is_refused() -> None:
    with (
        closing(ManifestFile("/dev/zero")) as source,
        pytest.raises(ManifestError, match="/dev/zero:1: the line is longer"),
    ):
        list(source.lines())
