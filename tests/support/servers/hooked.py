"""A stub whose answers a test writes itself, byte for byte: for servers that no reference describes."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.servers.http_server import Answer, Later
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_answers import framed
from tests.support.servers.stub_calls import Call, Reply
from tests.support.servers.stub_xml import document, tag
from tests.support.servers.world import World


class HookedServer(StubServer):
    """hook: called for every call; with None the world answers."""

    def __init__(self, world: World | None = None, hook: Callable[[Call], Reply | None] = lambda call: None) -> None:
        super().__init__(world)
        self.hook = hook

    def __enter__(self) -> HookedServer:
        super().__enter__()
        return self

    def answer_call(self, call: Call) -> Answer | Later:
        reply = self.hook(call)
        return super().answer_call(call) if reply is None else framed(reply, call)


def listing(*entries: str, truncated: bool | str = False, token: str | None = None) -> Reply:
    """A page of ListObjectsV2."""
    head = tag("EncodingType", "url") + tag("IsTruncated", truncated) + tag("NextContinuationToken", token)
    return Reply(200, {}, document("ListBucketResult", head + "".join(entries)))


def entry(key: str, size: int | str = 0, written: str = "2026-01-02T03:04:05.000Z") -> str:
    """One object of a page. key: as it stands in the document, percent-encoded."""
    facts = tag("LastModified", written) + tag("ETag", '"d41d8cd98f00b204e9800998ecf8427e"') + tag("Size", size)
    return f"<Contents><Key>{key}</Key>{facts}</Contents>"
