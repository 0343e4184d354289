"""The stranger of --as: a foreign account signs the questions that an unsigned request cannot answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.errors import UsageError
from auditor.model.object import AUTHENTICATED_USERS, Grant
from auditor.offline.probe.probe_run import ProbeOrder
from tests.offline.probe.conftest import Probing
from tests.offline.probe.test_probe import FULL, counts, left_out
from tests.support.servers.strangers import FOREIGN, FOREIGN_ID, FOREIGN_KEY, OWN_KEY, signer_of
from tests.support.servers.world import STRANGER, Odd

AS = ProbeOrder(profile="stranger")


@pytest.fixture(autouse=True)
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two profiles: one of another account, one of the bucket owner's."""
    path = tmp_path / "credentials"
    sections = {"stranger": FOREIGN_KEY, "mine": OWN_KEY}
    lines = (f"[{name}]\naws_access_key_id={key}\naws_secret_access_key=fake\n" for name, key in sections.items())
    path.write_text("".join(lines))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(path))


def put_all(probing: Probing) -> None:
    probing.put("any-account", grants=(FULL, Grant(AUTHENTICATED_USERS, "READ")))
    probing.put("named", grants=(FULL, Grant(STRANGER, "READ")))
    probing.put("private")
    probing.put("public", acl="public-read")


async def test_agrees(probing: Probing) -> None:
    put_all(probing)
    found = await probing.probe(AS)
    assert (found.exit_code, counts(found)) == (0, {"agreed": 4})
    assert left_out(found) == {"shared with named parties": 1}
    signed = {(call.key, call.operation) for call in probing.server.asked if signer_of(call) == FOREIGN_KEY}
    assert signed == {("any-account", "HeadObject"), ("private", "HeadObject"), ("private", "GetObjectAcl")}
    assert "7 unsigned requests and 3 requests signed by the foreign account" in probing.told[0]
    assert found.to_dict()["answers"]["signed"] == {"200": 1, "403": 2}


async def test_an_own_profile_is_an_insider(probing: Probing) -> None:
    put_all(probing)
    await probing.audit()
    mine = "the vantage is an insider: --as 'mine', it belongs to the bucket owner's account"
    for sts in ({}, {"GetCallerIdentity": Odd.DENIED}):
        probing.server.world.odd.update(sts)
        with pytest.raises(UsageError, match=mine):
            await probing.probe(ProbeOrder(profile="mine"))
    assert probing.server.asked == []


@pytest.mark.parametrize("entry", [FOREIGN, FOREIGN_ID])
async def test_a_trusted_account_is_an_insider(probing: Probing, entry: str) -> None:
    put_all(probing)
    await probing.audit(trusted=frozenset({entry}))
    with pytest.raises(UsageError, match=f"the vantage is an insider: --as 'stranger', `trusted` has {entry}"):
        await probing.probe(AS)
    assert probing.server.asked == []
