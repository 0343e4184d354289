"""`auditor audit --estate` and `--all-buckets`: every bucket is audited, excluded or a hole, and no call is signed by
other credentials than those of its account.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.conftest import Run
from tests.support.engine_names import OURS_FIRST
from tests.support.schemas import faults
from tests.support.servers.accounts import OWN, AccountsServer, role_of
from tests.support.servers.stub_calls import Call, Reply
from tests.support.servers.world import Odd

SOON: Final = (datetime.now(UTC).date() + timedelta(30)).isoformat()
"""The last day of an exclusion that still holds."""
A, B, C = "111122223333", "222233334444", "333344445555"


@pytest.fixture
def server() -> Iterator[AccountsServer]:
    """Two accounts: A with five buckets, of which aa1 is open, and B with two."""
    with AccountsServer() as made:
        made.give(A, "aa1", "aa2", "aa3", "aa4-logs", "aa5")
        made.give(B, "bb1", "bb2-logs")
        made.put("aa1", "open", b"x", acl="public-read")
        made.put("bb1", "closed", b"x")
        yield made


@pytest.fixture
def run(run: Run, server: AccountsServer) -> Run:
    """Run one command on the two accounts."""
    return lambda *arguments: run(*arguments, "--endpoint-url", server.url)


def estate(*accounts: str, more: str = "", exclude: str = "") -> str:
    """Write estate.toml for the accounts, and return its name. more: lines of the first account."""
    entries = [f'[[accounts]]\nrole = "{role_of(account)}"\n' for account in accounts]
    Path("estate.toml").write_text(entries[0] + more + "\n" + "".join(entries[1:]) + exclude)
    return "estate.toml"


def exclusion(pattern: str, until: str = SOON, table: str = "exclude") -> str:
    return f'[[{table}]]\npattern = "{pattern}"\nreason = "scratch"\nowner = "team a"\nuntil = "{until}"\n'


def report(folder: str = "estate=estate") -> dict[str, Any]:
    """Return the last report of an estate, which is that of its start too."""
    place = Path("auditor-runs") / folder
    found: dict[str, Any] = json.loads((place / "estate.json").read_text())
    assert json.loads((place / f"start={found['estate']}" / "estate.json").read_text()) == found
    assert found["folder"] == folder
    assert not faults("estate", found)
    counts = found["counts"]
    assert counts["buckets"] == counts["audited"] + counts["excluded"] + counts["holes"] == len(found["buckets"])
    for outcome, name in (("audited", "audited"), ("excluded", "excluded"), ("hole", "holes")):
        assert sum(one["outcome"] == outcome for one in found["buckets"]) == counts[name]
    return found


def outcomes(found: dict[str, Any]) -> dict[str, str]:
    return {one["bucket"]: one["outcome"] for one in found["buckets"]}


def sentence(found: dict[str, Any], bucket: str) -> str:
    (one,) = (one for one in found["buckets"] if one["bucket"] == bucket)
    return str(one["sentence"])


@pytest.mark.parametrize("engine", OURS_FIRST)
def test_every_call_is_signed_by_the_role_of_its_account(run: Run, server: AccountsServer, engine: str) -> None:
    flags = ("--ledger", "sqlite:digests.db", "--hash", "--only", "O02,E01", "--engine", engine)
    code, out, _ = run("audit", "--estate", estate(A, B), *flags)
    assert code == 3
    for account, bucket in ((A, "aa1"), (B, "bb1")):
        assert [call.bucket for call in server.calls_by(account) if call.operation == "GetObject"] == [bucket]
    assert "7 buckets in 2 accounts = 7 audited + 0 excluded + 0 holes\n" in out
    assert {call.operation for call in server.calls_by(OWN)} == {"AssumeRole"}
    for account in (A, B):
        asked = server.calls_by(account)
        assert {call.bucket for call in asked if call.bucket} == {
            name for name, owner in server.owners.items() if owner == account
        }
        assert {"ListBuckets", "HeadBucket", "ListObjectsV2"} <= {call.operation for call in asked}
        assert {call.headers.get("x-amz-expected-bucket-owner") for call in asked if call.bucket} == {account}
        assert len(server.sessions(account)) == 1
    found = report()
    assert found["complete"]
    assert found["verdicts"]["exposed"] == 1
    assert sentence(found, "aa1") == "Strangers can get at 1 object."
    for one in found["buckets"]:
        assert Path(f"auditor-runs/bucket={one['bucket']}/run={one['run']}/summary.json").exists()


def test_role_that_cannot_be_assumed_is_a_hole_and_no_fallback(run: Run, server: AccountsServer) -> None:
    server.denied.add(role_of(B))
    server.owners["own"] = OWN  # a bucket that the own credentials could list
    server.world.add("own", account=OWN)
    code, out, err = run("audit", "--estate", estate(A, B), "--only", "O02")
    assert code == 4
    assert "5 buckets in 2 accounts = 5 audited + 0 excluded + 0 holes; 1 of the accounts is a hole" in out
    assert f"account {B}: the role {role_of(B)} cannot be assumed (AccessDenied)" in err
    assert {call.operation for call in server.calls_by(OWN)} == {"AssumeRole"}
    assert not server.calls_by(B)
    assert not [call for _, call in server.seen if call.bucket in ("bb1", "bb2-logs", "own")]
    found = report()
    assert not found["complete"]
    assert [one["hole"] is None for one in found["accounts"]] == [True, False]


@pytest.mark.parametrize("engine", OURS_FIRST)
def test_credentials_are_renewed_in_a_long_run_until_the_role_is_taken_away(
    run: Run, server: AccountsServer, engine: str
) -> None:
    """Each session ends so soon that it has to be renewed while the run goes on."""
    server.session = timedelta(seconds=45)
    for number in range(20):
        server.put("bb1", f"key-{number}", b"x")
    command = ("audit", "--estate", estate(B), "--only", "O02", "--engine", engine, "--max-rate", "30")
    code, _, _ = run(*command)
    assert (code, len(server.sessions(B)) > 2) == (0, True)

    before, session = len(server.keys), server._session

    def taken_away(call: Call) -> Reply:
        reply = session(call)
        if len(server.keys) > before + 2:
            server.denied.add(role_of(B))
        return reply

    server._session = taken_away  # type: ignore[method-assign]
    server.session = timedelta(seconds=5)
    code, _, err = run(*command)
    assert (code, "cannot be assumed (AccessDenied)" in err) == (4, True)
    assert {call.operation for call in server.calls_by(OWN)} == {"AssumeRole"}


def test_exclusions_restrictions_and_what_has_expired(run: Run) -> None:
    more = (
        'include = ["aa?", "aa4-*"]\nreason = "only these"\nowner = "team b"\n'
        f'until = "{SOON}"\n'
        + exclusion("aa5", table="accounts.exclude")
        + exclusion("aa2", "2026-01-01", "accounts.exclude")
        + exclusion("typo*", table="accounts.exclude")
    )
    code, out, _ = run("audit", "--estate", estate(A, B, more=more, exclude=exclusion("*-logs")), "--only", "O02")
    assert code == 3
    assert "7 buckets in 2 accounts = 4 audited + 3 excluded + 0 holes\n" in out
    found = report()
    excluded = {bucket for bucket, outcome in outcomes(found).items() if outcome == "excluded"}
    assert excluded == {"aa4-logs", "aa5", "bb2-logs"}
    assert sentence(found, "aa5") == f"by the pattern aa5: scratch (team a, until {SOON})"
    assert found["notes"] == [
        "the pattern aa2 of team a ended on 2026-01-01: 1 bucket is no longer excluded",
        "the pattern typo* of team a matches no bucket: remove or correct it",
        "the restriction to aa?, aa4-* of team b matches no bucket: remove or correct it",
    ]
    page = Path("auditor-runs/estate=estate/index.html").read_text()
    assert "= 4 audited + 3 excluded + 0 holes" in page
    assert "3 excluded" in page
    assert "by the pattern *-logs: scratch" in page


def test_bucket_that_is_denied_or_gone_or_of_another_region(run: Run, server: AccountsServer) -> None:
    server.refused.add("aa2")
    server.world.buckets["aa3"].odd["ListObjectsV2"] = Odd.DENIED
    del server.world.buckets["aa5"]  # deleted between the listing and its audit
    server.owners["../../x"] = A
    code, out, _ = run("audit", "--estate", estate(A, C), "--only", "O02", "--region", "eu-west-1")
    assert code == 4
    found = report()
    wanted = {"../../x": "hole", "aa1": "audited", "aa2": "hole", "aa3": "hole", "aa4-logs": "audited", "aa5": "hole"}
    assert outcomes(found) == wanted
    assert "is not a bucket name" in sentence(found, "../../x")
    assert "there is no bucket named 'aa5'" in sentence(found, "aa5")
    assert "6 buckets in 2 accounts = 2 audited + 0 excluded + 4 holes\n" in out  # an account may have no bucket
    assert "hole: aa3: the listing of s3://aa3 failed (ListObjectsV2: AccessDenied)" in out


def test_account_whose_listing_is_denied_or_breaks_off(run: Run, server: AccountsServer) -> None:
    server.give(C, "cc1", "cc2", "cc3", "cc4")
    server.unlisted.add(B)
    server.page, server.broken_after = 2, {C: 1}
    code, out, _ = run("audit", "--estate", estate(A, B, C), "--only", "O02")
    assert code == 4
    assert "7 buckets in 3 accounts = 7 audited + 0 excluded + 0 holes; 2 of the accounts are holes" in out
    found = report()
    holes = [one["hole"] for one in found["accounts"]]
    assert holes[0] is None
    refusal = "S3 refuses ListBuckets (AccessDenied): allow s3:ListAllMyBuckets"
    assert holes[1] == f"account {B}: its buckets are not all known: {refusal}"
    assert "its buckets are not all known, after 2 buckets: " in holes[2]
    page = Path("auditor-runs/estate=estate/index.html").read_text()
    assert f"account {B}" in page
    assert "Not complete." in page


def test_buckets_of_a_lost_account_are_named_from_the_last_start(run: Run, server: AccountsServer) -> None:
    file = estate(A, B)
    assert run("audit", "--estate", file, "--only", "O02")[0] == 3
    first = report()["estate"]
    server.denied.add(role_of(B))
    server.give(A, "aa6")
    del server.owners["aa5"]
    code, out, _ = run("audit", "--estate", file, "--only", "O02")
    assert code == 4
    assert "7 buckets in 2 accounts = 5 audited + 0 excluded + 2 holes; 1 of the accounts is a hole" in out
    found = report()
    assert sentence(found, "bb1") == f"its account could not be listed; an earlier start, {first}, found the bucket"
    assert found["notes"] == [f"new since the start {first}: aa6", f"not listed any more since the start {first}: aa5"]


def test_all_buckets_of_the_own_account(run: Run, server: AccountsServer) -> None:
    server.give(OWN, "own-1", "own-2")
    code, out, _ = run("audit", "--all-buckets", "--only", "O02", "--format", "json")
    assert code == 0
    *lines, last = [json.loads(line) for line in out.splitlines()]
    assert sorted(line["target"]["bucket"] for line in lines) == ["own-1", "own-2"]
    assert last == report(f"account={OWN}")
    assert last["accounts"][0]["account"] == OWN
    assert last["not_looked_at"][0].startswith("directory buckets")
    owners = {call.headers.get("x-amz-expected-bucket-owner") for call in server.calls_by(OWN) if call.bucket}
    assert owners == {OWN}
    damaged = Path(f"auditor-runs/account={OWN}") / "estate.json"
    damaged.write_text("{")  # it names buckets that must not be forgotten
    code, _, err = run("audit", "--all-buckets", "--only", "O02")
    assert (code, f"{damaged} is damaged" in err, damaged.read_text()) == (1, True, "{")
    Path("estate.toml").write_text('[[accounts]]\nid = "999988887777"\nown_credentials = true\n')
    server.seen.clear()
    code, _, err = run("audit", "--estate", "estate.toml", "--only", "O02")
    assert (code, f"the auditor's own credentials belong to account {OWN}" in err) == (4, True)
    assert {call.operation for _, call in server.seen} == {"GetCallerIdentity"}


def test_bucket_name_that_two_accounts_list_is_a_hole(run: Run, server: AccountsServer) -> None:
    listing = server._listing
    server._listing = lambda call, account: listing(call, A)  # type: ignore[method-assign]
    assert run("audit", "--estate", estate(A, B), "--only", "O02")[0] == 4
    assert set(outcomes(report()).values()) == {"hole"}
    assert "two accounts list a bucket of this name" in report()["buckets"][0]["sentence"]


def test_resumed_start_does_only_what_is_left(run: Run, server: AccountsServer) -> None:
    server.refused.add("aa2")
    file = estate(A)
    run("audit", "--estate", file, "--only", "O02")
    first = report()
    server.refused.clear()
    server.seen.clear()
    code, out, err = run("audit", "--estate", file, "--only", "O02", "--resume", first["estate"])
    assert code == 3
    assert "5 buckets in 1 account = 5 audited + 0 excluded + 0 holes\n" in out
    assert {call.bucket for call in server.calls_by(A) if call.operation == "ListObjectsV2"} == {"aa2"}
    second = report()
    assert second["estate"] == first["estate"]
    runs = [{one["bucket"]: one["run"] for one in found["buckets"]} for found in (first, second)]
    assert {name for name in runs[0] if runs[0][name] == runs[1][name]} >= {"aa1", "aa3", "aa4-logs", "aa5"}
    code, _, err = run("audit", "--estate", file, "--only", "O02", "--resume", "20260101T000000Z-000000")
    assert code == 2
    assert f"the last start is {first['estate']}" in err


def test_resumed_start_with_other_rules_calls_nothing_clean(run: Run, server: AccountsServer) -> None:
    file = estate(B)
    assert run("audit", "--estate", file, "--only", "O02")[0] == 0
    code, out, _ = run("audit", "--estate", file, "--only", "E01", "--resume", report()["estate"])
    assert code == 4
    assert "2 buckets in 1 account = 0 audited + 0 excluded + 2 holes\n" in out
    assert "began with other rules" in sentence(report(), "bb1")


def test_index_page_made_again_names_what_has_no_run(run: Run, server: AccountsServer) -> None:
    server.denied.add(role_of(B))
    server.refused.add("aa2")
    run("audit", "--estate", estate(A, B, exclude=exclusion("*-logs")), "--only", "O02")
    written = Path("auditor-runs/estate=estate/index.html").read_text()
    assert not Path("auditor-runs/index.html").exists()
    assert run("report", "auditor-runs")[0] == 0
    again = Path("auditor-runs/index.html").read_text()
    for page in (written, again):
        assert "5 buckets in 2 accounts = 3 audited + 1 excluded + 1 hole; 1 of the accounts is a hole" in page
        assert f">account {B}</code>" in page
        assert "by the pattern *-logs" in page
        assert ">s3://aa2</code>" in page
        assert "Not looked at: directory buckets" in page
    last = Path("auditor-runs/estate=estate/estate.json")
    last.write_text(last.read_text().replace(report()["estate"], "20260101T000000Z-000000"))
    server.refused.clear()
    server.owners["aa2"] = OWN
    run("audit", "s3://aa2", "--only", "O02")  # a later run closes the hole
    assert run("report", "auditor-runs")[0] == 0
    page = Path("auditor-runs/index.html").read_text()
    assert 'href="bucket=aa2/' in page
    assert 'href="../bucket=aa1/' in written
    assert 'href="bucket=aa1/' in again


def test_two_estates_and_all_buckets_share_a_place(run: Run, server: AccountsServer) -> None:
    """Each has a folder of its own, and one page over all of them has each bucket once, with the worst outcome."""
    server.give(OWN, "own-1")
    Path("teams").mkdir()
    first = estate(A, exclude=exclusion("aa5"))
    assert run("audit", "--estate", first, "--only", "O02")[0] == 3
    before = {path: path.read_text() for path in Path("auditor-runs").glob("estate=estate/**/*") if path.is_file()}
    Path("teams/two.toml").write_text(
        f'[[accounts]]\nrole = "{role_of(A)}"\ninclude = ["aa5"]\nreason = "ours"\nowner = "team b"\n'
        f'until = "{SOON}"\n[[accounts]]\nrole = "{role_of(B)}"\n'
    )
    server.refused.add("bb1")
    assert run("audit", "--estate", "teams/two.toml", "--only", "O02")[0] == 4
    assert run("audit", "--all-buckets", "--only", "O02")[0] == 0
    assert {path: path.read_text() for path in before} == before
    assert outcomes(report("estate=two"))["aa5"] == "audited"
    assert outcomes(report(f"account={OWN}")) == {"own-1": "audited"}
    assert not report("estate=two")["notes"], "nothing is new since a start of another estate"
    assert run("report", "auditor-runs")[0] == 0
    page = Path("auditor-runs/index.html").read_text()
    for name in (*server.owners,):
        assert page.count(f'<code dir="ltr">s3://{name}</code>') == 1, name
    assert "left out by name" not in page
    assert "estate=two: 7 buckets in 2 accounts = 2 audited + 4 excluded + 1 hole" in page
    assert f"account={OWN}: 1 bucket in 1 account = 1 audited" in page
