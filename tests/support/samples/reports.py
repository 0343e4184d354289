"""Judgements and summaries to report on."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.audit.compare_with_last import LastRunComparison
from auditor.audit.conclude_run import RunEnd, summarize
from auditor.config.settings import Settings
from auditor.model.access import ObjectAccess, Verdict
from auditor.model.exception import Excepted
from auditor.model.finding import Finding, Judgement, Severity
from auditor.model.object import ALL_USERS, Acl, Ask, Evidence, Grant, Head, ObjectRef, Skipped, Unread
from auditor.model.rollup import RollUps
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.reports.page.build import page_data
from auditor.reports.page.data import PageData
from auditor.reports.page.index import IndexPage
from auditor.reports.page.render import render
from auditor.reports.rollup import RollUpBuilder
from auditor.reports.summary import not_looked_at
from auditor.rules import RULES
from auditor.runs.paths import began_at
from auditor.runs.run_files import RunPlan, one_range
from auditor.runs.tally import Tally
from tests.support.samples.bucket import facts

OWNER = "a0" * 32
RUN = "20260102T030405Z-0a1b2c"


def target(**changes: Any) -> Target:
    return Target("audited", **changes)


def finding(key: str | None, rule: str = "O02", severity: Severity = Severity.HIGH) -> Finding:
    return Finding(
        "f" * 32, rule, severity, key, None, ALL_USERS, "READ", "its ACL lets anyone on the internet read it"
    )


def judged(
    key: str, *findings: Finding, version_id: str | None = None, verdict: Verdict = Verdict.PRIVATE, **changes: Any
) -> Judgement:
    """An audited, private object, but for its verdict and the changes of its evidence."""
    ref = ObjectRef(key, "e" * 32, 3, "2026-01-02T03:04:05Z", version_id, owner=OWNER)
    facts: dict[str, Any] = {
        "acl": Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"),)),
        "head": Head(etag="e" * 32, content_length=3, metadata={"team": "x", "build": "7"}),
    }
    return Judgement(Evidence(ref, **(facts | changes)), ObjectAccess(verdict), findings, ())


def denied(key: str) -> Judgement:
    evidence = judged(
        key, acl=Unread("GetObjectAcl", "AccessDenied"), head=Skipped("no selected rule needs it")
    ).evidence
    return Judgement(evidence, ObjectAccess(Verdict.UNKNOWN), (), ("O02", "O01", "O02"))


def gone(key: str) -> Judgement:
    return Judgement(judged(key, acl=Unread("GetObjectAcl", "NoSuchKey"), vanished=True).evidence, None, (), ())


def tally_of(*judgements: Judgement) -> Tally:
    tally = Tally()
    for judgement in judgements:
        tally.add(judgement)
    return tally


def rollups_of(*judgements: Judgement, new: bool | None = None) -> RollUps:
    """The roll-ups of a complete run over these objects. new: what the last run says of each result."""
    builder, builds = RollUpBuilder(), LastRunComparison(began_at(RUN))
    for judgement in sorted(judgements, key=lambda one: one.evidence.ref.key.encode(errors="surrogatepass")):
        found = builds.object(judgement, Excepted(findings=(None,) * len(judgement.findings)))
        standing = found.standing and replace(found.standing, new=new)
        builder.add(replace(found, standing=standing, findings=tuple(replace(one, new=new) for one in found.findings)))
        builder.upto(judgement.evidence.ref.key)
    return builder.rollups(RUN, target(), True)


ROLLED_UP: Final = rollups_of().to_json()
"""The rollups.json of a run that found nothing."""


def sample_file(**changes: Any) -> RunPlan:
    """The run.json of a run by all rules, of an ordinary bucket."""
    values: dict[str, Any] = {
        "run": RUN,
        "target": target(),
        "now": began_at(RUN),
        "ledger": False,
        "selected": tuple(rule.id for rule in RULES),
        "configuration": {},
        "selection": {},
        "facts": facts(),
        "ask": Ask(),
        "ranges": one_range(changes.get("target", target())),
    }
    return RunPlan(**values | changes)


class PageSource(Struct, frozen=True, kw_only=True):
    """The files of a run of which its page is made."""

    summary: Summary
    bucket: RunPlan
    rollups: RollUps


def content_of(source: PageSource) -> PageData:
    return page_data(source.summary, source.bucket, source.rollups)


def audit_page(source: PageSource) -> str:
    return render("audit.html", content_of(source))


def print_index(page: IndexPage) -> str:
    return render("index.html", page)


def page_source(summary: Summary, *judgements: Judgement) -> PageSource:
    """The source of the page of a run over these objects."""
    return PageSource(summary=summary, bucket=sample_file(), rollups=rollups_of(*judgements))


def sample_summary(tally: Tally | None = None, **changes: Any) -> Summary:
    """The summary of a complete run with the tally's findings; by default it has none."""
    aim = changes.pop("target", target())
    end = RunEnd(
        run=RUN,
        out=f"runs/bucket=audited/run={RUN}",
        target=aim,
        settings=Settings(engine="boto3"),
        now=began_at(RUN),
        tally=tally or Tally(),
        rules_undecided=(),
        algorithms=changes.pop("algorithms", None),
        not_looked_at=changes.pop("not_looked_at", not_looked_at(None, aim)),
        seconds=12.345,
        resume=changes.get("resume"),
    )
    made, accepted_rules = summarize(end), changes.pop("accepted_rules", 0)
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in changes.items()}
    accepted = replace(made.accepted, rules=accepted_rules)
    return replace(made, **{"rules_undecided": (), "accepted": accepted} | given)
