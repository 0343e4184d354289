"""Odd keys, all the way round, on RGW: every key, on every engine."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from auditor.s3.engines import ENGINES
from tests.support.odd_keys import ODD_KEYS
from tests.support.odd_round import go_round
from tests.support.servers.rgw import RgwServer
from tests.system.real.world import ODD


@pytest.mark.parametrize("engine", ENGINES)
async def test_every_odd_key_comes_through_unchanged(
    rgw: RgwServer, owner: Any, moto_url: str, tmp_path: Path, engine: str
) -> None:
    bodies = {key: owner.get_object(Bucket=ODD, Key=key)["Body"].read() for key in ODD_KEYS.values()}
    credentials = {"AWS_ACCESS_KEY_ID": rgw.owner.access_key, "AWS_SECRET_ACCESS_KEY": rgw.owner.secret_key}
    went = await go_round(rgw.url, ODD, moto_url, engine, tmp_path, credentials)
    went.check({key: sha256(body).hexdigest() for key, body in bodies.items()})
