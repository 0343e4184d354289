"""Of the inventories of a bucket, the one is taken whose reports an audit can use."""

from __future__ import annotations

from typing import Any, Final

import pytest

from auditor.errors import CallFailed, UsageError
from auditor.model.target import Target
from auditor.s3.inventory.place import InventoryPlace
from auditor.s3.inventory.setup import ACTION, InventoryRequest, configuration, configurations, configured_place

TARGET: Final = Target("audited", "a/")


def one(target: Target = TARGET, **members: Any) -> dict[str, Any]:
    return {**configuration(InventoryRequest(target=target, bucket="reports", prefix="night")), **members}


def placed(form: str = "CSV", bucket: str = "arn:aws:s3:::reports") -> dict[str, Any]:
    return {"S3BucketDestination": {"Bucket": bucket, "Format": form}}


def chosen(*found: dict[str, Any], target: Target = TARGET) -> InventoryPlace:
    return configured_place(found, target)


def test_folder_is_that_of_the_configuration() -> None:
    assert chosen(one()) == InventoryPlace("reports", "night/audited/auditor")
    assert chosen(one(Destination=placed())) == InventoryPlace("reports", "audited/auditor")


USELESS = [
    one(IsEnabled=False),
    one(Target("audited", "b/")),
    one(Target("audited", "a/b/")),
    one(Destination=placed("ORC")),
    one(Destination=placed(bucket="arn:aws:s3:::no bucket")),
    one(Destination={}),
    {},
]


def test_useless_configuration_is_passed_over() -> None:
    for useless in USELESS:
        with pytest.raises(UsageError, match="has no usable S3 Inventory: `auditor inventory s3://audited/a/`"):
            chosen(useless)
        assert chosen(useless, one(Id="z")).prefix == "night/audited/z"


def test_one_for_the_whole_bucket_covers_each_prefix() -> None:
    assert chosen(one(Target("audited"))).prefix == "night/audited/auditor"


def test_versions_need_all_versions() -> None:
    versions = Target("audited", "a/", versions=True)
    with pytest.raises(UsageError):
        chosen(one(), target=versions)
    assert chosen(one(), one(versions, Id="all"), target=versions).prefix == "night/audited/all"


def test_one_with_acls_goes_first() -> None:
    assert chosen(one(Id="a", OptionalFields=["ETag"]), one(Id="b")).prefix == "night/audited/b"
    assert chosen(one(Id="c"), one(Id="b")).prefix == "night/audited/b"


def page(*found: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"InventoryConfigurationList": list(found), **members}


def following(token: str) -> dict[str, Any]:
    return {"IsTruncated": True, "NextContinuationToken": token}


class Pages:
    """The answers of a server by the token that is asked for."""

    def __init__(self, pages: dict[str | None, dict[str, Any]]) -> None:
        self._pages = pages

    async def ask(self, action: str, token: str | None) -> dict[str, Any]:
        assert action == ACTION
        return self._pages[token]


async def test_all_pages_are_read() -> None:
    pages = {None: page(one(Id="a"), **following("2")), "2": page(**following("3")), "3": page(one(Id="b"))}
    assert [found["Id"] for found in await configurations(Pages(pages).ask)] == ["a", "b"]
    assert await configurations(Pages({None: {}}).ask) == []


@pytest.mark.parametrize(
    ("last", "code"), [({"IsTruncated": True}, "Malformed"), (following("2"), "RepeatedToken")], ids=["none", "same"]
)
async def test_pages_that_do_not_go_on_are_no_answer(last: dict[str, Any], code: str) -> None:
    with pytest.raises(CallFailed) as failed:
        await configurations(Pages({None: page(one(), **following("2")), "2": page(**last)}).ask)
    assert failed.value.code == code
