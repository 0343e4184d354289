"""`auditor audit` writes an index page, and `auditor report OUT` makes it again from the folders."""

from __future__ import annotations

import re
import stat
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

import boto3
import pytest

from auditor.cli.main import main
from tests.cli.conftest import Run
from tests.support.servers.forwarding import Forwarding
from tests.support.servers.stub import StubServer
from tests.support.servers.world import Odd


@pytest.fixture
def run(run: Run, stub: StubServer) -> Run:
    """Run one command on a stub with two buckets."""
    for name in ("first", "second"):
        stub.world.add(name)
    stub.put("first", "a", b"x", acl="public-read")
    stub.put("second", "in/b", b"x")
    return lambda *arguments: run(*arguments, "--endpoint-url", stub.url)


def test_index_names_each_target_and_leads_to_its_page(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("audit", "s3://first", "s3://second/in/", "s3://gone", "--only", "O02")
    assert code == 4
    index = tmp_path / "auditor-runs" / "index.html"
    assert f"reports: {index}\n" in out
    assert stat.S_IMODE(index.stat().st_mode) == 0o600
    page = index.read_text()
    assert "Not complete. Strangers can get at <em>1 object</em>" in page
    for target in ("s3://first", "s3://second/in/", "s3://gone"):
        assert f">{target}</code>" in page
    assert "there is no bucket named &#39;gone&#39;" in page
    links = re.findall(r'href="(bucket=[^"]+)"', page)
    assert len(links) == 2
    assert all((index.parent / link).is_file() for link in links)


def test_prefix_under_which_nothing_is_listed_is_not_closed(run: Run, tmp_path: Path) -> None:
    """It may have a mistake. The table and the alert doubt it, too."""
    run("audit", "s3://second/im/", "s3://second/in/", "--only", "O02")
    page = (tmp_path / "auditor-runs" / "index.html").read_text()
    rows = [part.partition("</tr")[0] for part in page.split("<tr")]
    (mistyped,) = [row for row in rows if ">s3://second/im/</code>" in row]
    (closed,) = [row for row in rows if ">s3://second/in/</code>" in row]
    assert ("closed" in mistyped, "nothing listed" in mistyped, "closed" in closed) == (False, True, True)


def test_single_audit_writes_the_index_and_its_page_links_to_it(run: Run, tmp_path: Path) -> None:
    assert run("audit", "s3://first", "--only", "O02", "--out", "runs")[0] == 3
    runs = tmp_path / "runs"
    page = (runs / "index.html").read_text()
    assert "Strangers can get at <em>1 object</em>" in page
    (link,) = re.findall(r'href="(bucket=[^"]+)"', page)
    back = re.findall(r'href="([^"]*index.html)"', (runs / link).read_text())
    assert [(runs / link).parent.joinpath(one).resolve() for one in back] == [runs / "index.html"]
    folder = (runs / link).parent
    assert run("check", str(folder))[0] == 0
    assert run("report", str(folder), "--out", str(folder / "again.html"))[0] == 0
    assert (folder / "again.html").read_bytes() == (folder / "report.html").read_bytes()
    for linked in (True, False):
        assert run("report", str(folder))[0] == 0
        assert ('href="runs/index.html"' in (tmp_path / "report.html").read_text()) is linked
        (runs / "index.html").unlink(missing_ok=True)


def test_index_keeps_the_targets_of_other_audits_in_the_place(run: Run, tmp_path: Path) -> None:
    for target in ("s3://first", "s3://second/in/", "s3://first", "s3://gone"):
        run("audit", target, "--only", "O02")
    page = (tmp_path / "auditor-runs" / "index.html").read_text()
    assert sorted(re.findall(r'<code dir="ltr">(s3://[^<]+)</code></a>', page)) == ["s3://first", "s3://second/in/"]
    assert "gone" not in page  # nothing was written of it: the earlier page stays
    run("audit", "s3://first", "s3://gone", "--only", "O02")
    page = (tmp_path / "auditor-runs" / "index.html").read_text()
    assert "s3://second/in/" in page
    assert "there is no bucket named" in page


class Counting(Forwarding):
    """It counts the requests for an index page, and notes the prefixes whose names in the reports bucket are listed."""

    def __init__(self, behind: str) -> None:
        super().__init__(behind)
        self.counts: Counter[str] = Counter()
        self.lists: set[str] = set()

    def asked(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        path, _, query = target.partition("?")
        if path.endswith("/index.html"):
            self.counts[method] += 1
        if path.startswith("/reports") and "list-type" in query:
            self.lists.update(re.findall(r"prefix=([^&]*)", query))


def test_single_audit_into_a_bucket_lists_no_whole_place(tmp_path: Path, moto_url: str) -> None:
    """The index costs a GET and a PUT of its own, and three GETs of each other target. It keeps these."""
    s3 = boto3.client("s3", endpoint_url=moto_url)
    for name in ("first", "second", "reports"):
        s3.create_bucket(Bucket=name)
        s3.put_object(Bucket=name, Key="k", Body=b"")
    with Counting(moto_url) as server:
        for name in ("first", "second"):
            server.counts.clear()
            out = ("--out", "s3://reports/audits", "--endpoint-url", server.url, "--fail-on", "never")
            main(["audit", f"s3://{name}", "--only", "O02", *out])
            assert server.counts == {"GET": 1, "PUT": 1}
    lists = {unquote(prefix) for prefix in server.lists}
    assert {"audits/account=", "audits/estate="} <= lists
    assert all(re.fullmatch(r"audits/(bucket=[a-z]+/run=.+|account=|estate=)", prefix) for prefix in lists)
    page = s3.get_object(Bucket="reports", Key="audits/index.html")["Body"].read().decode()
    assert re.findall(r'<code dir="ltr">(s3://[^<]+)</code></a>', page) == ["s3://first", "s3://second"]
    assert not [one["Key"] for one in s3.list_objects_v2(Bucket="first")["Contents"] if one["Key"] != "k"]


def test_index_is_made_again_from_the_folders(run: Run, tmp_path: Path) -> None:
    for target in ("s3://first", "s3://second/in/", "s3://second"):
        run("audit", target, "--only", "O02", "--out", "runs")
    code, out, err = run("report", "runs")
    index = tmp_path / "runs" / "index.html"
    assert (code, out, err) == (0, f"{Path('runs') / 'index.html'}\n", "")
    page = index.read_text()
    assert re.findall(r'<code dir="ltr">(s3://[^<]+)</code></a>', page) == [
        "s3://first",
        "s3://second",
        "s3://second/in/",
    ]
    assert "s3://second/in/ is inside s3://second" in page
    code, out, _ = run("report", "runs", "--out", "-")
    assert (code, out) == (0, page)


def test_run_that_is_gone_or_damaged_is_a_hole_of_the_index(run: Run, stub: StubServer, tmp_path: Path) -> None:
    stub.world.add("third").odd["ListObjectsV2"] = Odd.DENIED
    run("audit", "s3://first", "s3://second", "s3://third", "--only", "O02", "--out", "runs")
    (summary,) = (tmp_path / "runs").glob("bucket=second/run=*/summary.json")
    latest = tmp_path / "runs" / "bucket=first" / "latest.json"

    def page() -> str:
        assert run("report", "runs")[0] == 0
        return (tmp_path / "runs" / "index.html").read_text()

    assert "it has no complete run" in page()  # as the page that the audit itself wrote says
    summary.write_text("{")
    assert ("summary.json is damaged" in page(), "2 not audited" in page()) == (True, True)
    summary.unlink()
    for text in ('{"format": 1, "runs": [1]}', "[]"):
        latest.write_text(text)
        found = page()
        for words in ("latest.json is damaged", "no longer exists", "No target was audited."):
            assert words in found
