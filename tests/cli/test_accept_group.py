"""`auditor accept GROUP`: the entry covers the whole group in the next run and nothing of another, or is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from auditor.model.object import ALL_USERS, Grant
from tests.cli.conftest import Run
from tests.support.servers.stub import StubServer
from tests.support.servers.world import OWNER, STRANGER

GroupJson = dict[str, Any]
BUCKET: Final = "audited"
OWN: Final = Grant(OWNER, "FULL_CONTROL")
SHARED: Final = {"grants": (OWN, Grant(STRANGER, "READ"))}
BOTH: Final = {"grants": (OWN, Grant(STRANGER, "READ"), Grant("b0" * 32, "READ"))}
CONTROL: Final = {"grants": (OWN, Grant(ALL_USERS, "FULL_CONTROL"))}
SOON: Final = (datetime.now(UTC).date() + timedelta(days=30)).isoformat()


def audited(run: Run, stub: StubServer, *rules: str) -> tuple[str, list[GroupJson]]:
    """Audit the bucket; the run folder, and the groups of its roll-ups."""
    only = ("--only", ",".join(rules)) if rules else ()
    _, out, err = run("audit", f"s3://{BUCKET}", "--endpoint-url", stub.url, "--format", "json", *only)
    assert out, err
    folder = json.loads(out)["out"]
    return folder, json.loads((Path(folder) / "rollups.json").read_text())["groups"]


def accept(run: Run, group: GroupJson, folder: str) -> tuple[int, str, str]:
    return run("accept", group["id"], "--run", folder, "--owner", "web", "--reason", "meant", "--until", SOON)


def planted(stub: StubServer) -> None:
    for at in range(3):
        stub.put(BUCKET, f"site/{at}", b"x", acl="public-read")
        stub.put(BUCKET, f"partner/{at}", b"x", **SHARED)
        stub.put(BUCKET, f"open/{at}", b"x", acl="public-read")
        stub.put(BUCKET, f"dark/{at}", b"x", deny={"acl"})
        stub.put(BUCKET, f"mixed/{at}", b"x", **(SHARED if at else {"acl": "public-read"}))
        stub.put(BUCKET, f"many/{at}", b"x", **BOTH)
        stub.put(BUCKET, f"rule/{at}", b"x", **CONTROL)


def test_each_group_is_covered_whole_and_alone_or_refused_in_a_sentence(
    run: Run, stub: StubServer, tmp_path: Path
) -> None:
    planted(stub)
    rules = ("O01", "O02", "O08", "B01", "B02")
    folder, groups = audited(run, stub, *rules)
    printed = 0
    for group in groups:
        code, text, err = accept(run, group, folder)
        if code == 2:
            assert (text, err.count("\n")) == ("", 1), group
            assert group["id"] in err
            continue
        printed += 1
        assert (code, text.replace("\n", "").isprintable()) == (0, True)
        (tmp_path / "auditor.toml").write_text(text, encoding="utf-8")
        _, after = audited(run, stub, *rules)
        (tmp_path / "auditor.toml").unlink()
        for one in after:
            if one["kind"] != group["kind"] or group["kind"] == "undecided":
                continue  # a verdict's entry covers findings of the same grants too
            wanted = one["count"] if one["id"] == group["id"] else 0
            assert one["excepted"] == wanted, (group, one)
    assert printed >= 8


def group_of(groups: list[GroupJson], **values: Any) -> GroupJson:
    (found,) = [one for one in groups if values.items() <= one.items()]
    return found


def test_entry_names_rule_prefix_and_audience(run: Run, stub: StubServer) -> None:
    planted(stub)
    folder, groups = audited(run, stub, "O02")
    group = group_of(groups, rule="O02", prefix="site/")
    code, text, err = accept(run, group, folder)
    assert code == 0
    assert text == (
        '[[exceptions]]\nrule = "O02"\nbucket = "audited"\nprefix = "site/"\naudience = "anyone"\n'
        f'owner = "web"\nreason = "meant"\nuntil = {SOON}\n'
    )
    assert err == "auditor: append this to auditor.toml: it covers 3 of this run\n"
    code, text, err = run("accept", group["id"], "--run", folder)
    assert 'owner = ""  # the person' in text
    assert "fill in owner and reason" in err


def test_hole_is_accepted_with_each_fact_that_its_objects_lack(run: Run, stub: StubServer, tmp_path: Path) -> None:
    stub.put(BUCKET, "dark/a", b"x", deny={"acl"})
    stub.put(BUCKET, "dark/b", b"x", deny={"acl", "head"})
    folder, groups = audited(run, stub, "O02", "E01")
    group = group_of(groups, kind="undecided")
    code, text, _ = accept(run, group, folder)
    assert code == 0
    assert text.count("[[exceptions]]") == 2
    assert 'action = "GetObjectAcl"\ncode = "AccessDenied"\nbucket = "audited"\nprefix = "dark/"\n' in text
    assert 'action = "HeadObject"' in text
    (tmp_path / "auditor.toml").write_text(text, encoding="utf-8")
    summary = json.loads((Path(audited(run, stub, "O02", "E01")[0]) / "summary.json").read_text())
    assert summary["accepted"]["undecided"] == summary["coverage"]["undecided"] == 2


def test_rest_of_deeper_groups_is_refused_with_their_names(run: Run, stub: StubServer) -> None:
    for at in range(4):
        stub.put(BUCKET, f"a/{at}", b"x", acl="public-read")
        stub.put(BUCKET, f"a/deep/{at}", b"x", acl="public-read")
    folder, groups = audited(run, stub, "O02")
    rest = group_of(groups, rule="O02", prefix="a/")
    deep = group_of(groups, rule="O02", prefix="a/deep/")
    assert rest["rest"]
    code, text, err = accept(run, rest, folder)
    assert (code, text) == (2, "")
    assert f"is the rest below a/, and an exception covers deeper prefixes too: {deep['id']} (4 below a/deep/);" in err
    assert accept(run, deep, folder)[0] == 0
    page = (Path(folder) / "report.html").read_text()
    assert f"auditor accept {deep['id']} --run" in page
    assert f"auditor accept {rest['id']} --run" not in page


def test_groups_that_no_entry_can_cover_are_refused(run: Run, stub: StubServer) -> None:
    stub.put(BUCKET, "dark/a", b"x", deny={"acl"})
    stub.put(BUCKET, "many/a", b"x", **BOTH)
    stub.put(BUCKET, "rule/a", b"x", **CONTROL)
    folder, groups = audited(run, stub, "O01", "O08")
    for group, words in (
        ({"kind": "verdict", "verdict": "unknown"}, "whose verdict is unknown, which is a hole"),
        ({"rule": "O08"}, f"2 of 2 let others in besides canonical-id {STRANGER}: write an entry without an audience"),
        ({"kind": "verdict", "verdict": "exposed"}, "1 of 1 objects let others in too, give control, or depend on a f"),
    ):
        code, _, err = accept(run, group_of(groups, **group), folder)
        assert (code, words in err) == (2, True), err
    assert accept(run, group_of(groups, kind="finding", rule="O01"), folder)[0] == 0
    code, _, err = run("accept", "0" * 12, "--run", folder)
    assert (code, "has no group 000000000000: see its rollups.json or its page for them" in err) == (2, True)
    (Path(folder) / "rollups.json").unlink()
    code, _, err = run("accept", groups[0]["id"], "--run", folder)
    assert (code, "rollups.json is gone: `auditor check` says" in err) == (1, True)
