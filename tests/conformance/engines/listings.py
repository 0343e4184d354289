"""Checks of listings: order, pages, versions, odd keys."""

from __future__ import annotations

from auditor.model.object import Acl, Grant
from auditor.s3.engines.base import ListQuery, Page

from .world import ODD_KEYS, STRANGER, EngineWorld, list_all, same


async def lists_every_page_in_key_order(world: EngineWorld) -> None:
    for number in range(7):
        owner = STRANGER if number == 3 else world.owner
        world.put(f"k{number}", b"x" * number, acl=Acl(owner, (Grant(owner, "FULL_CONTROL"),)))
    world.put("k8", b"-", storage_class="GLACIER", checksum_sha256="eA==", etag="f-2")
    async with world.open() as engine:
        refs, markers, pages = await list_all(engine, ListQuery(page_size=3))
    same((pages, markers), (3, []))
    same([ref.key for ref in refs], [*(f"k{number}" for number in range(7)), "k8"])
    same([ref.size for ref in refs], [*range(7), 1])
    same([ref.owner for ref in refs], [*[world.owner] * 3, STRANGER, *[world.owner] * 4])
    last = refs[-1]
    same((last.etag, last.storage_class, last.checksum_algorithms), ("f-2", "GLACIER", ("SHA256",)))
    same((last.version_id, last.is_latest, last.restored), (None, True, False))


async def lists_from_a_prefix_and_after_a_key(world: EngineWorld) -> None:
    for key in ("a", "p/1", "p/2", "p/2+", "p/3", "q"):
        world.put(key)
    async with world.open() as engine:
        refs, _, _ = await list_all(engine, ListQuery(prefix="p/", start_after="p/2", page_size=1))
    same([ref.key for ref in refs], ["p/2+", "p/3"])


async def lists_versions_and_delete_markers_over_pages(world: EngineWorld) -> None:
    world.put("old", b"null version")
    world.keep_versions()
    for body in (b"1", b"22", b"333"):
        world.put("twice", body)
    world.delete("gone")
    world.delete("twice")
    async with world.open() as engine:
        refs, markers, pages = await list_all(engine, ListQuery(versions=True, page_size=2))
    same((pages, markers), (3, ["gone", "twice"]))
    found = [(ref.key, ref.size, ref.is_latest) for ref in refs]
    same(found, [("old", 12, True), ("twice", 3, False), ("twice", 2, False), ("twice", 1, False)])
    same(refs[0].version_id, "null")
    same(len({ref.version_id for ref in refs}), 4)


async def lists_versions_after_a_whole_key(world: EngineWorld) -> None:
    world.keep_versions()
    for key in ("a", "a", "b", "b", "c"):
        world.put(key)
    async with world.open() as engine:
        refs, _, _ = await list_all(engine, ListQuery(versions=True, start_after="a", page_size=1))
    same([ref.key for ref in refs], ["b", "b", "c"])


async def lists_an_empty_bucket_as_one_empty_page(world: EngineWorld) -> None:
    async with world.open() as engine:
        for versions in (False, True):
            same(await engine.list_page(ListQuery(versions=versions), None), Page((), None))


async def lists_odd_keys_as_they_are(world: EngineWorld) -> None:
    for key in ODD_KEYS.values():
        world.put(key)
    async with world.open() as engine:
        refs, _, _ = await list_all(engine, ListQuery(page_size=5))
    same([ref.key for ref in refs], sorted(ODD_KEYS.values(), key=str.encode))


async def lists_versions_of_odd_keys_as_they_are(world: EngineWorld) -> None:
    world.keep_versions()
    for key in ODD_KEYS.values():
        world.put(key)
    async with world.open() as engine:
        refs, _, _ = await list_all(engine, ListQuery(versions=True, page_size=5))
    same([ref.key for ref in refs], sorted(ODD_KEYS.values(), key=str.encode))


async def takes_odd_keys_as_prefix_and_start_after(world: EngineWorld) -> None:
    for key in ODD_KEYS.values():
        world.put(key)
        world.put(f"{key}\u00ff"[:300])
    async with world.open() as engine:
        for key in ODD_KEYS.values():
            if len(key.encode()) > 900:
                continue
            refs, _, _ = await list_all(engine, ListQuery(prefix=key, start_after=key))
            keys = {ref.key for ref in refs}
            same((f"{key}\u00ff" in keys, key in keys), (True, False))
