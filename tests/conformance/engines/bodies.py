"""Checks of GetObject: partial reads, spans, conditions."""

from __future__ import annotations

from auditor.s3.engines.base import Span

from .world import EngineWorld, failure_of, opened, pieces, read, same


async def reads_pieces_no_larger_than_asked(world: EngineWorld) -> None:
    content = bytes(range(256)) * 4000
    etag = world.put("big", content).etag
    async with world.open() as engine, engine.get("big", None, None) as body:
        same((body.length, body.etag), (len(content), etag))
        found = [piece async for piece in pieces(body, 100_000)]
    same(b"".join(found) == content, True)
    same(max(map(len, found)) <= 100_000, True)


async def reads_an_empty_object(world: EngineWorld) -> None:
    world.put("empty", b"")
    async with world.open() as engine:
        same(await read(engine, "empty"), b"")


async def refuses_an_object_that_was_overwritten(world: EngineWorld) -> None:
    etag = world.put("k", b"old").etag
    async with world.open() as engine:
        async with engine.get("k", None, etag) as body:
            same(body.etag, etag)
        world.put("k", b"new")
        failure = await failure_of(engine, lambda engine: opened(engine, "k", etag))
    same((failure.code, failure.status), ("PreconditionFailed", 412))


async def reads_a_span(world: EngineWorld) -> None:
    content = bytes(range(256)) * 8
    etag = world.put("k", content).etag
    spans = {Span(0, 0): content[:1], Span(100, 299): content[100:300], Span(2000): content[2000:]}
    async with world.open() as engine:
        for span, wanted in {**spans, Span(2000, 9999): content[2000:]}.items():
            async with engine.get("k", None, etag, span) as body:
                same((body.length, body.etag), (len(wanted), etag))
                same(b"".join([piece async for piece in pieces(body, 64)]), wanted)


async def refuses_a_span_beyond_the_end(world: EngineWorld) -> None:
    world.put("key", b"abc")
    async with world.open() as engine:
        failure = await failure_of(engine, lambda engine: opened(engine, "key", None, Span(3, 9)))
    same((failure.code, failure.status), ("InvalidRange", 416))


async def refuses_an_archived_object(world: EngineWorld) -> None:
    world.put("key", storage_class="DEEP_ARCHIVE")
    async with world.open() as engine:
        failure = await failure_of(engine, lambda engine: read(engine, "key"))
    same((failure.code, failure.status), ("InvalidObjectState", 403))


async def goes_on_after_a_body_left_half_read(world: EngineWorld) -> None:
    world.put("big", b"x" * 3_000_000)
    world.put("key", b"small")
    async with world.open() as engine:
        async with engine.get("big", None, None) as body:
            await body.readinto(memoryview(bytearray(10)))
        same(await read(engine, "key"), b"small")
