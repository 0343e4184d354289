"""Write the pages that the browser opens."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec.structs import replace

from auditor.model.access import Verdict
from auditor.model.digest import VerifyOutcome
from auditor.model.finding import RuleUndecided
from auditor.reports.page.index import index_page
from auditor.verify.outcome import Verified
from auditor.verify.page import Examples, verify_page
from tests.reports.page.test_audit_page import HOSTILE
from tests.support.samples.index_pages import (
    ESTATE,
    estate_entries,
    hostile_entries,
    hostile_estate,
    many_entries,
    rich_entries,
)
from tests.support.samples.pages import rich_page
from tests.support.samples.reports import (
    audit_page,
    denied,
    finding,
    judged,
    page_source,
    print_index,
    sample_summary,
    tally_of,
    target,
)
from tests.verify.test_verify_page import summary as verification

HOSTILE_PREFIX: Final = '"><script>alert(1)</script>{{ 7 * 7 }}/'


def written_pages(folder: Path) -> dict[str, Path]:
    """Write a page of each kind into the folder, and return their paths by name."""
    pages = {
        "rich": audit_page(rich_page()),
        "hostile": _hostile(),
        "empty": _empty(),
        "plain": _plain(),
        "verify": _verify(),
        "index": print_index(index_page(rich_entries(), "s3://acme-reports/audits")),
        "estate": print_index(index_page(estate_entries(), "s3://acme-reports/audits/estate=shop", [ESTATE])),
        "hostile estate": print_index(index_page(hostile_entries(), HOSTILE_PREFIX, [hostile_estate()])),
        "large estate": print_index(index_page(estate_entries(1_000), "s3://acme-reports/audits", [ESTATE])),
        "large index": print_index(index_page(many_entries(), "s3://acme-reports/audits")),
        "hostile index": print_index(index_page(hostile_entries(), HOSTILE_PREFIX)),
    }
    found = {}
    for name, text in pages.items():
        found[name] = folder / f"{name}.html"
        found[name].write_text(text, encoding="utf-8")
    return found


def _empty() -> str:
    return audit_page(page_source(sample_summary()))


def _verify() -> str:
    examples = Examples()
    for key in HOSTILE:
        examples.add(Verified(key=key, outcome=VerifyOutcome.MISMATCH, version_id=key))
    return verify_page(verification({"match": 900, "mismatch": len(HOSTILE), "not_due": 5, "unreadable": 2}), examples)


def _plain() -> str:
    many = [judged(f"k{at}", finding(f"k{at}"), verdict=Verdict.EXPOSED) for at in range(7)]
    many += [judged("s", verdict=Verdict.SHARED), denied("d")]
    made = sample_summary(tally_of(*many), rules_undecided=[RuleUndecided("B01", "GetBucketAcl", "AccessDenied")])
    return audit_page(page_source(made, *many))


def _hostile() -> str:
    source = rich_page()
    many = [judged(key, finding(key), verdict=Verdict.EXPOSED) for key in HOSTILE]
    made = replace(
        sample_summary(tally_of(*many), target=target(prefix=HOSTILE_PREFIX)),
        not_looked_at=tuple(HOSTILE),
        trust_unused=tuple(HOSTILE),
    )
    groups = tuple(
        replace(group, audience=HOSTILE[at % len(HOSTILE)], prefix=HOSTILE[(at + 1) % len(HOSTILE)])
        for at, group in enumerate(source.rollups.groups)
    )
    exceptions = tuple(replace(one, reason=HOSTILE[1], owner=HOSTILE[0]) for one in source.summary.exceptions)
    rollups = replace(source.rollups, groups=groups, first=())
    return audit_page(replace(source, summary=replace(made, exceptions=exceptions), rollups=rollups))
