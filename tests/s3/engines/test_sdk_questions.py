"""The SDK's questions about a bucket wait less for a server's first answer than for later ones."""

from __future__ import annotations

import asyncio

import pytest

from auditor.aws.connection import Connection
from auditor.errors import CallFailed
from auditor.s3.engines.sdk_questions import open_questions
from tests.s3.http.raw_server import OK, Peer, serving


async def test_only_the_first_answer_has_a_limit_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    pauses = iter([None, 0.0, None, 0.4])  # None: no answer ever

    async def script(peer: Peer) -> None:
        while await peer.request():
            pause = next(pauses)
            if pause is None:
                await peer.gone()
                return
            await asyncio.sleep(pause)
            await peer.send(OK)

    async with serving(script) as server:
        url = f"http://127.0.0.1:{server.port}"
        connection = Connection(
            bucket="bucket", region="us-east-1", endpoint_url=url, first_answer=0.2, read_timeout=30
        )
        with open_questions(connection) as questions:
            for _ in range(2):
                with pytest.raises(CallFailed, match="Timeout"):
                    await questions.head_bucket()
                await questions.head_bucket()
