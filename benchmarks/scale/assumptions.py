"""The tables of what the simulation assumes, and of its prices, each with its source."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.audit.estimate import CALL_SECONDS
from auditor.lambdas.handover import MARGIN_SECONDS
from auditor.s3.concurrency import AUTO_CEILING
from benchmarks.scale import bill, find, night, prices, words
from benchmarks.scale.assumed import ACL_DAYS, HEAD_DAYS, usual
from benchmarks.scale.measured import Measured
from benchmarks.scale.mode import Mode
from benchmarks.tables import table

_LIST = "`auditor/s3/prices.toml`"


def assumptions(found: Measured) -> str:
    """Return the table of what is assumed."""
    return table(("assumption", "value", "source"), list(_rows(found)))


def _rows(found: Measured) -> Iterator[tuple[str, str, str]]:
    plain = usual(Mode.LIVE)
    yield "calls on an object whose facts are asked", "2: ACL and HEAD", "level `metadata`"
    yield "objects that are new or changed", f"{words.percent(plain.changed)} a night", "a guess"
    due = f"acl={ACL_DAYS:.0f}d, head={HEAD_DAYS:.0f}d: N days give N - 1 turns"
    yield "`keep`, incremental", due, "a guess"
    yield "ceiling of calls", f"{plain.max_rate:,.0f} a second, for all ranges together", "default of `max_rate`"
    in_flight = f"{CALL_SECONDS * 1000:.0f} ms, {AUTO_CEILING} in flight in a function"
    yield "time of an ACL or HEAD call", in_flight, "assumed; not measured on AWS"
    paged = f"{night.LIST_SECONDS * 1000:.0f} ms, in a range one after the other"
    yield "time of a page of the listing", paged, "assumed: AWS names 100 to 200 ms for a first byte"
    window = f"{night.FUNCTION_SECONDS} s less a margin of {MARGIN_SECONDS:.0f} s"
    yield "a function", f"{plain.memory:,} MB, arm64, {window}", "defaults of the deployment"
    cold = f"{night.cold_seconds(plain.memory, found):.2f} s at {plain.memory:,} MB"
    yield "begin of an invocation", cold, "measured: a cold audit with its run folder in a bucket"
    yield "CPU of an object that is listed, judged, compared and written", _micro(found.known_cpu), "measured"
    yield "CPU of an ACL or HEAD call, beside it", _micro(found.call_cpu), "measured"
    known = ", ".join(f"{mode.value} {_micro(seconds)}" for mode, seconds in found.prior_cpu.items())
    yield "CPU of reading an object's known facts", known, "measured"
    yield "CPU of a function", "that of the measured processor, by its share", "assumed: not measured on arm64"
    kept = f"{found.line_bytes:.0f} bytes, kept {plain.kept_nights} nights"
    yield "an object's line in the run folder, compressed", kept, "measured; default of `reportDays`"
    shares = f"{night.SPREAD_SHARE:g} and {night.SORTED_SHARE:g} of reading known facts, mixed"
    yield (
        "CPU of spreading a row, and of sorting and looking up a spread one",
        shares,
        "measured once",
    )
    held = f"{night.SPREAD_MEMORY / night.MB:.0f} MB of rows, {night.ROW_MEMORY} bytes each"
    yield "pieces of spread rows: one for each range of", held, "the size of a row is a guess"
    stored = f"{found.row_bytes:.0f} bytes, {bill.INVENTORY_KEPT} reports kept"
    yield "an object's row in the Inventory, compressed", stored, "measured, with equal ACLs; the number is a guess"
    yield "ranges of a map", f"{find.RANGES}, equally large", "default of `auditor plan`, cut by the last run"
    yield (
        "read units of the ledger for a known object",
        str(bill.LEDGER_UNITS),
        "[the ledger](ledger.md#dynamodb), counted",
    )
    yield "retries, refused calls, logs, alarms", "none", "not simulated"
    yield "transfer between S3 and Lambda", "none", "free in one region"


def _micro(seconds: float) -> str:
    return f"{1e6 * seconds:.0f} us"


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
    """Return the prices, each with its page and how it was checked."""
    day, region = prices.as_of()
    rows = [
        (f"{prices.of_lists(1000):g}", "1,000", "LIST request", _LIST),
        (f"{prices.of_data_events(1000):g}", "1,000", "CloudTrail data event", _LIST),
        (f"{prices.of_inventory(10**6):g}", "1,000,000", "object that S3 Inventory lists", _LIST),
    ]
    for one in prices.prices().values():
        checked = "read there" if one.seen == "AWS" else "quoted"
        rows.append((f"{one.dollars:.10f}".rstrip("0"), f"{one.units:,}", one.unit, f"[AWS]({one.page}), {checked}"))
    said = f"In {region}, without free tiers and volume discounts, as of {day}. Quoted: by other pages than AWS's own."
    return f"{said}\n\n{table(('dollars', 'for', 'unit', 'source'), rows)}"


def in_short() -> tuple[str, ...]:
    """Return the lines under the picture: what it assumes."""
    one, (day, region) = usual(Mode.LIVE), prices.as_of()
    return (
        f"S3 Standard, {one.max_rate:,.0f} calls a second, ACL and HEAD, {words.percent(one.changed)} of the objects"
        f" changed; incremental: keep acl={ACL_DAYS:.0f}d,head={HEAD_DAYS:.0f}d.",
        "Mixed: one function; where its disk is too small for the Inventory, ranges that it is spread over.",
        f"A simulation with list prices of {region}, {day}; run folders are kept {one.kept_nights} nights.",
    )
