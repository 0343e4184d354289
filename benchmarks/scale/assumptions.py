"""The tables of what the simulation assumes, with its sources, and of its prices."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.lambdas.scale import MOST_ROWS
from auditor.offline.estimate import CALL_SECONDS
from auditor.s3.calls import AUTO_CEILING
from benchmarks.scale import night, prices, words
from benchmarks.scale.assumed import ACL_DAYS, HEAD_DAYS, usual
from benchmarks.scale.measured import Measured, Mode
from benchmarks.tables import table


def assumptions(found: Measured) -> str:
    """Return the table of what is assumed."""
    return table(("assumption", "value", "source"), list(_rows(found)))


def _rows(found: Measured) -> Iterator[tuple[str, str, str]]:
    plain = usual(Mode.LIVE)
    yield "new or changed objects", f"{words.percent(plain.changed)} a night", "a guess"
    yield "`keep` of incremental nights", f"acl={ACL_DAYS:.0f}d,head={HEAD_DAYS:.0f}d", "a guess"
    yield "ceiling of calls", f"{plain.max_rate:,.0f} a second on a bucket", "default of `max_rate`"
    in_flight = f"{CALL_SECONDS * 1000:.0f} ms, {AUTO_CEILING} in flight in a function"
    yield "ACL or HEAD call", in_flight, "assumed"
    yield "page of the listing", f"{night.LIST_SECONDS * 1000:.0f} ms", "AWS: 100 to 200 ms for a first byte"
    window = f"{plain.memory:,} MB, arm64, {night.FUNCTION_SECONDS} s, {night.WINDOW:.0f} s of them for objects"
    at_once = f"auto: {plain.at_once} at {plain.max_rate:,.0f} calls a second"
    yield "functions at once", at_once, "default of `mapConcurrency`"
    yield "function", window, "defaults of the deployment"
    yield "CPU of a function", "the measured processor's, by its share", "[measured](performance.md), not on arm64"
    kept = f"{found.line_bytes:.0f} bytes, {plain.kept_nights} nights"
    yield "object's line in the run folder", kept, "measured; default of `reportDays`"
    yield "retries, refused calls, logs, alarms, transfer", "none", "not counted"


def classes(_: Measured) -> str:
    """Return the dollars of the requests on a million objects, by storage class and level."""
    by_price: dict[float, list[str]] = {}
    for name in prices.request_prices().get:
        by_price.setdefault(prices.of_object_calls(10**6, name), []).append(name)
    rows = [
        (", ".join(f"`{name}`" for name in names), words.dollars(price), words.dollars(2 * price))
        for price, names in by_price.items()
    ]
    return table(("storage class", "`exposure`: ACL", "`metadata`: ACL and HEAD"), rows)


def price_table(_: Measured) -> str:
    """Return the table of prices, each with its page, and a mark if it was read elsewhere."""
    day, region = prices.as_of()
    rows = [
        (f"{prices.of_data_events(1000):g}", "1,000 CloudTrail data events"),
        (f"{prices.of_inventory(10**6):g}", "1,000,000 objects that S3 Inventory lists"),
    ]
    for one in prices.prices().values():
        number = f"{one.units:,} " if one.units > 1 else ""
        quoted = "" if one.seen == "AWS" else "*"
        rows.append((f"{one.dollars:.10f}".rstrip("0") + quoted, f"{number}[{one.unit}]({one.page})"))
    said = f"{region}, {day}, without free tiers or volume discounts. *: as pages other than AWS's own quote it."
    return f"{said}\n\n{table(('dollars', 'for'), rows)}"


def in_short() -> tuple[str, ...]:
    """Return the lines under the picture: what it assumes."""
    one, (day, region) = usual(Mode.LIVE), prices.as_of()
    return (
        f"S3 Standard, {one.max_rate:,.0f} calls a second, ACL and HEAD, {words.percent(one.changed)} of the objects"
        f" changed; incremental: keep acl={ACL_DAYS:.0f}d,head={HEAD_DAYS:.0f}d.",
        f"Over an hour of calls, or {MOST_ROWS / 10**6:.0f} million rows of an Inventory: ranges,"
        f" {one.at_once} functions at once.",
        f"A simulation with list prices of {region}, {day}; run folders are kept {one.kept_nights} nights.",
    )
