"""Measure an audit that is refused calls: by a limit, alone and beside the bucket's own users, and by chance."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from auditor.s3.engines import DEFAULT_ENGINE, ENGINES
from benchmarks.harness import DEFAULTS, Bench, summarised
from benchmarks.launch import client, run_client
from benchmarks.parts.interface import Part, Results
from benchmarks.server.answers import UNKNOWN
from benchmarks.tables import table

LIMITS: Final = (500, 5000)
LATENCY: Final = 0.015
FOREGROUND: Final = 0.8
"""The share of the limit that the bucket's own users take."""
CONNECTIONS: Final = 256
SHARES: Final = (0.0, 0.03, 0.1, 0.3)
"""Shares of calls that are refused by chance, whatever the rate; without any first, to compare with."""
SHORT: Final = 5_000
"""The objects of a short run, which is over within seconds, at a server that answers at once."""
SHORT_RUNS: Final = 10
SETTLING: Final = 5
"""Seconds that an audit has to find its rate."""
OURS: Final = UNKNOWN
"""The counters' name for callers without a name."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One situation. rate: --max-rate of the guest. guest: False for an audit that is alone."""

    limit: int
    engine: str
    guest: bool
    rate: str = "unlimited"

    def labels(self) -> dict[str, Any]:
        return {"limit": self.limit, "engine": self.engine, "guest": self.guest, "max_rate": self.rate}


def scenarios(bench: Bench) -> list[Scenario]:
    found = [Scenario(limit, DEFAULT_ENGINE, False) for limit in LIMITS]
    if not bench.quick:
        found += [Scenario(LIMITS[0], engine, False) for engine in ENGINES if engine != DEFAULT_ENGINE]
    for limit in LIMITS:
        rest = str(round(limit * (1 - FOREGROUND)))
        found += [Scenario(limit, DEFAULT_ENGINE, True, rate) for rate in (rest, "unlimited")]
    return found


def measure(bench: Bench) -> Results:
    chosen = scenarios(bench)
    runs: list[list[dict[str, Any]]] = [[] for _ in chosen]
    for turn in range(bench.repeat):
        for number, scenario in enumerate(chosen):
            bench.say(f"{turn + 1}/{bench.repeat} {' '.join(map(str, scenario.labels().values()))}")
            runs[number].append((_beside if scenario.guest else _alone)(bench, scenario))
    return {
        "chance": _by_chance(bench, bench.choose(20_000, 60_000), LATENCY, bench.repeat),
        "short": _by_chance(bench, SHORT, 0.0, bench.choose(bench.repeat, SHORT_RUNS)),
        "rows": [
            {**scenario.labels(), **{name: summarised([run[name] for run in found], 4) for name in found[0]}}
            for scenario, found in zip(chosen, runs, strict=True)
        ],
    }


def _by_chance(bench: Bench, objects: int, latency: float, repeat: int) -> list[dict[str, Any]]:
    """A row for each of SHARES. beside: objects per second, as a multiple of the same repetition without refusals."""
    runs: list[list[dict[str, float]]] = [[] for _ in SHARES]
    for turn in range(repeat):
        for number, share in enumerate(SHARES):
            bench.say(f"{turn + 1}/{repeat} {objects:,} objects, refused by chance: {share:.0%}")
            bench.server.set(**{**DEFAULTS, "objects": objects, "latency": latency, "refused_share": share})
            result = run_client(bench.server, _job(bench, Scenario(0, DEFAULT_ENGINE, False)))
            audited = result["coverage"]["audited"]
            runs[number].append({"speed": audited / result["seconds"], "lost": objects - audited})
    return [chance(share, found, runs[0]) for share, found in zip(SHARES, runs, strict=True)]


def chance(share: float, runs: list[dict[str, float]], quiet: list[dict[str, float]]) -> dict[str, Any]:
    beside = [run["speed"] / other["speed"] for run, other in zip(runs, quiet, strict=True)]
    return {
        "share": share,
        "speed": summarised([run["speed"] for run in runs], 0),
        "beside": summarised(beside, 3),
        "lost": summarised([run["lost"] for run in runs], 0),
    }


def kept(results: Results, share: float) -> float | None:
    """The speed, as a multiple of the quiet one times the share of calls that is answered."""
    found = (row for row in results.get("chance", ()) if row["share"] == share)
    row = next(found, None)
    return None if row is None else float(row["beside"]["median"]) / (1 - share)


def longer(results: Results, share: float, figure: str) -> float | None:
    """The time of a short run, as a multiple of the quiet one's. figure: "median", or "least" for the slowest run."""
    row = next((row for row in results.get("short", ()) if row["share"] == share), None)
    return None if row is None else 1.0 / float(row["beside"][figure])


def _job(bench: Bench, scenario: Scenario) -> dict[str, Any]:
    options = ("--max-rate", scenario.rate)
    return {
        "job": "audit",
        "url": bench.server.tls,
        "engine": scenario.engine,
        "concurrency": "auto",
        "options": options,
        "holes": True,  # an object whose calls are refused ten times is counted as lost
    }


def _set(bench: Bench, scenario: Scenario, calls: float) -> int:
    """The server's behaviour, with the objects that need so many calls."""
    objects = int(calls / 2)
    bench.server.set(**{**DEFAULTS, "objects": objects, "latency": LATENCY, "rate": scenario.limit})
    return objects


def _alone(bench: Bench, scenario: Scenario) -> dict[str, float]:
    objects = _set(bench, scenario, scenario.limit * bench.choose(10, 30))
    result = run_client(bench.server, _job(bench, scenario))
    return settled(bench.server.counters(), scenario.limit) | {"lost": objects - result["coverage"]["audited"]}


def settled(counters: Mapping[str, Any], limit: float) -> dict[str, float]:
    """Calls admitted a second as a share of the limit, and the share of calls refused. Both leave out the first
    seconds, and the last one, which is not whole.
    """
    admitted, refused = (_by_second(counters[name], OURS) for name in ("admitted", "refused"))
    seconds = sorted(admitted)
    whole = range(seconds[0] + SETTLING, seconds[-1])
    if not whole:
        raise RuntimeError("the audit was over before it had settled")
    got, lost = (sum(found.get(second, 0) for second in whole) for found in (admitted, refused))
    return {"throughput": got / len(whole) / limit, "refused": lost / (got + lost)}


def _by_second(found: Mapping[str, Any], caller: str) -> dict[int, int]:
    return {int(second): count for second, count in found.get(caller, {}).items()}


def _beside(bench: Bench, scenario: Scenario) -> dict[str, float]:
    rest = scenario.limit * (1 - FOREGROUND)
    objects = _set(bench, scenario, rest * bench.choose(6, 20))
    job = {
        "job": "foreground",
        "url": bench.server.tls,
        "authority": bench.server.authority,
        "rate": scenario.limit * FOREGROUND,
        "connections": CONNECTIONS,
        "objects": objects,
    }
    with client(bench.server, job) as users:
        time.sleep(bench.choose(4, 12))
        came = time.monotonic()
        result = run_client(bench.server, _job(bench, scenario))
        went = time.monotonic()
        time.sleep(bench.choose(2, 10))
        seen = users.result()
    ours = _by_second(bench.server.counters()["admitted"], OURS)
    return beside(seen, int(came), int(went), ours) | {"lost": objects - result["coverage"]["audited"]}


def beside(seen: Mapping[str, Any], came: int, went: int, ours: Iterable[int]) -> dict[str, float]:
    """The latencies and refusals of the bucket's own users, without the guest (before and after) and with it.

    came, went: the seconds in which the guest's process began and ended. ours: seconds with answers to its calls.
    """
    latencies = {int(second): values for second, values in seen["latencies"].items()}
    refused = {int(second): count for second, count in seen["refused"].items()}
    without = [*range(min(latencies) + 1, came), *range(went + 1, max(latencies))]
    alone = [value for second in without for value in latencies.get(second, ())]
    there = sorted(ours)
    during = [value for second in there for value in latencies.get(second, ())]
    if not alone or not during:
        raise RuntimeError("the guest and the bucket's users were not there together")
    calm, busy = percentile(alone, 0.99), percentile(during, 0.99)
    return {
        "p99_alone": calm / 1000,
        "p99_during": busy / 1000,
        "p99_rise": busy / calm - 1,
        "foreground_refused": sum(refused.get(second, 0) for second in there) / len(during),
        "guest_seconds": len(there),
    }


def percentile(values: Iterable[int], share: float) -> int:
    """The smallest value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def worst(results: Results, figure: str, *, guest: bool, capped: bool = False, least: bool = False) -> float | None:
    """The worst value of the default engine over all limits. capped: with --max-rate. least: small is bad."""
    found = [
        float(row[figure]["median"])
        for row in results["rows"]
        if row["guest"] == guest and row["engine"] == DEFAULT_ENGINE and (row["max_rate"] != "unlimited") == capped
    ]
    return (min if least else max)(found, default=None)


def page(results: Results) -> str:
    guests = [
        (
            row["limit"],
            row["max_rate"],
            *(row[name]["median"] for name in ("p99_alone", "p99_during")),
            f"{row['p99_rise']['median']:+.1%}",
            f"{row['foreground_refused']['median']:.2%}",
        )
        for row in results["rows"]
        if row["guest"]
    ]
    shown = (
        f"As a guest beside users who take {FOREGROUND:.0%} of the limit:\n\n"
        + table(
            ("limit, calls/s", "--max-rate", "users' p99 alone, ms", "with guest", "rise", "users refused"),
            guests,
        )
        + "\n\nRefused by chance, whatever the rate; without a ceiling of its own; the first seconds included:\n\n"
        + table(("refused", "objects/s", "of the quiet speed", "lost"), _chances(results.get("chance", ())))
    )
    if "short" not in results:
        return shown
    return (
        f"{shown}\n\nThe same for {SHORT:,} objects of a server that answers at once, {SHORT_RUNS} times:\n\n"
        + table(("refused", "objects/s", "of the quiet speed", "slowest", "lost"), _short(results["short"]))
    )


def _chances(rows: Iterable[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        (f"{row['share']:.0%}", row["speed"]["median"], f"{row['beside']['median']:.1%}", _lost(row)) for row in rows
    ]


def _short(rows: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        (*cells, f"{row['beside']['least']:.1%}", lost)
        for row, (*cells, lost) in zip(rows, _chances(rows), strict=True)
    ]


def _lost(row: Mapping[str, Any]) -> int:
    """The figure of the worst repetition."""
    return int(row["lost"]["most"])


PART: Final = Part(measure, page)
