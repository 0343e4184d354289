"""The command `auditor inventory`."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterator
from typing import Any, Final

from auditor.aws.partition import partition_of
from auditor.aws.session import make_session
from auditor.cli.options import settings_of
from auditor.cli.output import print_result, remark
from auditor.config.settings import Settings
from auditor.model.target import parse_target
from auditor.s3.inventory.configuration import ID, InventoryRequest, configuration, destination_policy
from auditor.s3.inventory.fields import CSV, PARQUET
from auditor.s3.inventory.place import parse_place
from auditor.s3.prices import Prices, in_dollars, money, prices_with

_BILLION: Final = 10**9


def run(options: argparse.Namespace) -> int:
    """Print the configuration of S3 Inventory, the policy of its destination and its price, and return 0. No call is
    made.
    """
    settings = settings_of(options)
    asked = _request(options, settings)
    prices = prices_with(settings.prices)
    document = {
        "bucket": asked.target.bucket,
        "id": ID,
        "configuration": configuration(asked),
        "destination_policy": destination_policy(asked),
        "dollars_per_billion": in_dollars(prices.inventory * _BILLION),
        "placeholders": list(asked.placeholders),
    }
    print_result(options.format, document, lambda: "".join(f"{line}\n" for line in _lines(asked, prices)))
    if asked.placeholders:
        remark(f"replace {' and '.join(asked.placeholders)}, or name them by --inventory and --expected-owner")
    return 0


def _request(options: argparse.Namespace, settings: Settings) -> InventoryRequest:
    given: dict[str, Any] = {}
    if settings.inventory is not None:
        place = parse_place(settings.inventory)
        given = {"bucket": place.bucket, "prefix": place.prefix}
    if settings.expected_owner is not None:
        given["account"] = settings.expected_owner
    return InventoryRequest(
        target=parse_target(options.target, versions=settings.versions),
        form=PARQUET if options.parquet else CSV,
        frequency="Weekly" if options.weekly else "Daily",
        partition=partition_of(make_session(settings.profile, settings.region).region_name),
        **given,
    )


def _lines(asked: InventoryRequest, prices: Prices) -> Iterator[str]:
    yield "# The policy of the destination: S3 may write reports of this bucket there. Add its statement to the one"
    yield "# that the bucket has, because put-bucket-policy replaces the whole policy."
    policy = shlex.quote(json.dumps(destination_policy(asked), indent=2))
    yield f"aws s3api put-bucket-policy --bucket {asked.bucket} --policy {policy}"
    yield ""
    dollars = money(prices.inventory * _BILLION)
    yield f"# The configuration. A report costs {dollars} for each 1,000,000,000 objects that it lists (price of"
    yield f"# {prices.as_of}, {prices.region}), and its storage. The first one comes within 48 hours."
    form = shlex.quote(json.dumps(configuration(asked), indent=2))
    yield (
        f"aws s3api put-bucket-inventory-configuration --bucket {asked.target.bucket} --id {ID}"
        f" --inventory-configuration {form}"
    )
