"""Checks of ACLs and HEADs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from auditor.model.object import ALL_USERS, Acl, Grant, Head
from auditor.s3.engines.base import Engine, ListQuery

from .world import ODD_KEYS, STRANGER, EngineWorld, failure_of, list_all, read, same


async def reads_odd_keys_as_they_are(world: EngineWorld) -> None:
    acl = Acl(world.owner, (Grant(world.owner, "FULL_CONTROL"), Grant(ALL_USERS, "READ")))
    for name, key in ODD_KEYS.items():
        world.put(key, key.encode(), metadata={"which": name}, acl=acl)
    async with world.open() as engine:
        for name, key in ODD_KEYS.items():
            same(await engine.get_acl(key, None), acl)
            same(dict((await engine.head(key, None, checksum=True)).metadata), {"which": name})
            same(await read(engine, key), key.encode())


async def invents_no_values_of_a_bare_object(world: EngineWorld) -> None:
    world.put("bare", b"", etag="b" * 32, server_side_encryption=None)
    async with world.open() as engine:
        head = await engine.head("bare", None, checksum=True)
        refs, _, _ = await list_all(engine, ListQuery())
    modified = refs[0].last_modified
    same(head, Head("b" * 32, 0, last_modified=modified, content_type="text/plain"))


async def gives_checksums_only_when_asked(world: EngineWorld) -> None:
    world.put("k", checksum_sha256="eA==", checksum_type="COMPOSITE")
    async with world.open() as engine:
        asked = await engine.head("k", None, checksum=True)
        unasked = await engine.head("k", None, checksum=False)
    same((asked.checksum_sha256, asked.checksum_type), ("eA==", "COMPOSITE"))
    same((unasked.checksum_sha256, unasked.checksum_type), (None, None))


async def reads_the_checksums_and_holds_that_s3_has_since_2026(world: EngineWorld) -> None:
    members: dict[str, Any] = {
        "checksum_md5": "CY9rzUYh03PK3k6DJie09g==",
        "checksum_sha512": "c2hhNTEy",
        "checksum_xxhash64": "eHg2NA==",
        "checksum_xxhash3": "eHgz",
        "checksum_xxhash128": "eHgxMjg=",
        "checksum_type": "FULL_OBJECT",
        "object_lock_event_hold": "ON",
        "object_lock_event_hold_duration_days": 30,
        "object_lock_event_hold_duration_years": 7,
    }
    world.put("k", b"test", **members)
    async with world.open() as engine:
        head = await engine.head("k", None, checksum=True)
        refs, _, _ = await list_all(engine, ListQuery())
        async with engine.get("k", None, None) as body:
            same(body.stored.get("md5"), "098f6bcd4621d373cade4e832627b4f6")
    same({name: getattr(head, name) for name in members}, members)
    same(sorted(refs[0].checksum_algorithms), ["MD5", "SHA512", "XXHASH128", "XXHASH3", "XXHASH64"])


async def gives_grants_in_order(world: EngineWorld) -> None:
    """The grants are to groups and to accounts, on an object that another account owns."""
    acl = Acl(STRANGER, (Grant(ALL_USERS, "WRITE_ACP"), Grant(STRANGER, "FULL_CONTROL"), Grant(world.owner, "READ")))
    world.put("k", acl=acl)
    async with world.open() as engine:
        same(await engine.get_acl("k", None), acl)


async def reads_an_acl_without_grants(world: EngineWorld) -> None:
    world.put("k", acl=Acl(world.owner, ()))
    async with world.open() as engine:
        same(await engine.get_acl("k", None), Acl(world.owner, ()))


async def reads_the_named_version(world: EngineWorld) -> None:
    world.keep_versions()
    shared = Acl(world.owner, (Grant(world.owner, "FULL_CONTROL"), Grant(ALL_USERS, "READ")))
    old = world.put("k", b"old", acl=shared).version_id
    world.put("k", b"newer")
    async with world.open() as engine:
        same(len((await engine.get_acl("k", old)).grants), 2)
        same((await engine.head("k", old, checksum=False)).content_length, 3)
        async with engine.get("k", old, None) as body:
            same(body.length, 3)


async def fails_for_a_key_that_is_not_there(world: EngineWorld) -> None:
    calls: Mapping[str, Callable[[Engine], Awaitable[object]]] = {
        "NoSuchKey GetObjectAcl": lambda engine: engine.get_acl("none", None),
        "404 HeadObject": lambda engine: engine.head("none", None, checksum=False),
        "NoSuchKey GetObject": lambda engine: read(engine, "none"),
    }
    async with world.open() as engine:
        for wanted, call in calls.items():
            failure = await failure_of(engine, call)
            same((f"{failure.code} {failure.action}", failure.status), (wanted, 404))
