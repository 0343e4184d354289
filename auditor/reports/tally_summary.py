"""Make the parts of a summary that a tally counts by name: audiences, hashing, and facts of earlier sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from auditor.model.access import Verdict
from auditor.model.dates import seconds_in_utc
from auditor.model.summary import Amount, HashingSummary, KeptFact, KeptFacts
from auditor.runs.tally import OTHERS, Tally


def audiences_of(tally: Tally) -> dict[str, dict[str, int]]:
    """Return the number of objects by verdict and by audience, the largest number first and the others last."""
    found: dict[str, dict[str, int]] = {}
    for verdict in Verdict:
        start = f"{verdict.value} "
        counts = {name.removeprefix(start): n for name, n in tally.audiences.items() if name.startswith(start)}
        order = sorted(counts.items(), key=lambda item: (item[0] == OTHERS, -item[1], item[0]))
        if counts:
            found[verdict.value] = dict(order)
    return found


def hashing_of(tally: Tally, algorithms: Sequence[str]) -> HashingSummary:
    """Return the counts of the hashing. algorithms: the wanted digests."""
    left = {name: Amount(number, tally.left_bytes[name]) for name, number in sorted(tally.left_objects.items())}
    return HashingSummary(
        algorithms=tuple(algorithms),
        **tally.hashing,
        left_for_cost=left,
        routed=Amount(**tally.routed),
        failed=largest_first(tally.failed),
    )


def largest_first(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts in the order of their numbers, the largest first, and then of their names."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def kept_of(tally: Tally) -> KeptFacts:
    """Return the counts of the facts that the run took from an earlier source."""
    return KeptFacts(acl=_kept_fact(tally, "acl"), head=_kept_fact(tally, "head"))


def _kept_fact(tally: Tally, fact: str) -> KeptFact:
    at = tally.oldest.get(fact)
    oldest = None if at is None else seconds_in_utc(datetime.fromtimestamp(at, UTC))
    return KeptFact(tally.kept.get(f"{fact} run", 0), tally.kept.get(f"{fact} inventory", 0), oldest)
