"""The functions with which Python programs judge a run again, check it and ask it, without a request to its bucket."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Unpack

from auditor.audit.judging_configuration import judged_by
from auditor.config import values
from auditor.config.layers import Layer
from auditor.offline import folder_place
from auditor.offline.check_run import RunCheck, RunChecker
from auditor.offline.folder_place import StoreConnection
from auditor.offline.library.keyword_types import JudgeKeywords
from auditor.offline.library.keywords import check_flags, check_texts, documented, plain_value, renamed
from auditor.offline.library.run import Run
from auditor.offline.rejudge import JudgeAgain
from auditor.offline.what_if import WhatIf, WhatIfQuestion, checked_policy, lines_to
from auditor.runs.run_files import PLAN
from auditor.runs.stores import open_store
from auditor.verdict.change import BucketChange, switches


@documented(JudgeKeywords)
def judge_run(
    run: str | os.PathLike[str],
    *,
    out: str | None = None,
    config: str | None = None,
    all_rules: bool = False,
    endpoint_url: str | None = None,
    profile: str | None = None,
    region: str | None = None,
    **settings: Unpack[JudgeKeywords],
) -> Run:
    """Judge a run again from its folder, without a request to its bucket, and return the new run.

    run: path or URI of the run folder. out: place of the new run folder; None: beside the other. config: path of an
    auditor.toml that replaces the run's configuration; None: judge by the run's own. all_rules: True to select among
    all rules of this version. endpoint_url, profile, region: of the bucket that has the run folder. settings: settings
    that replace those of the configuration: `only`, `ignore`, `level`, `trusted`, `semantics`.

    Blocks. Raises UsageError for a wrong argument and for a run without the facts of its bucket, and OutputError for a
    damaged run folder.
    """
    check_texts(out=out, config=config)
    keywords = renamed(settings, JudgeKeywords)
    connection = StoreConnection(endpoint_url=endpoint_url, profile=profile, region=region)
    with folder_place.open_run(run, **connection) as source:
        given = Layer({name: plain_value(value) for name, value in keywords.items()}, str)
        by = judged_by(source.begun_with, f"{source.uri}/{PLAN}", given, config, anew=all_rules)
        with nullcontext(source.store) if out is None else open_store(out, **connection) as store:
            summary = JudgeAgain(source, store, by).run()
    return Run(summary.out, **connection)


def check_run(
    run: str | os.PathLike[str],
    *,
    endpoint_url: str | None = None,
    profile: str | None = None,
    region: str | None = None,
) -> RunCheck:
    """Check that no part of a run was altered, cut, left out or added since the run wrote it.

    run: path or URI of the run folder. endpoint_url, profile, region: of the bucket that has it. Blocks. Raises
    UsageError if no run is there, and OutputError if it cannot be read.
    """
    connection = StoreConnection(endpoint_url=endpoint_url, profile=profile, region=region)
    with folder_place.open_run(run, **connection) as opened:
        return RunChecker(opened).run()


def what_if(
    run: str | os.PathLike[str],
    *,
    acls: bool | None = None,
    policy: str | None = None,
    block_public_access: bool | None = None,
    ignore_public_acls: bool = False,
    restrict_public_policy: bool = False,
    requester_pays: bool = False,
    trust: str | Iterable[str] = (),
    keys: str | None = None,
    endpoint_url: str | None = None,
    profile: str | None = None,
    region: str | None = None,
) -> WhatIf:
    """Ask a run what a change of its bucket would do to each object, without a request to the bucket. Blocks.

    run: path or URI of a run folder. acls: False to turn ACLs off, True to turn them on. policy: text of the new bucket
    policy; "" for none. block_public_access: True to turn all four switches on, False to turn the bucket's off.
    ignore_public_acls, restrict_public_policy: True to turn on the two switches on ACLs, or the two on policies.
    trust: further entries of the setting `trusted`. None leaves a thing as it is. keys: path of a file that gets a JSON
    line for each object that the change moves, or makes unpredictable. endpoint_url, profile, region: of the bucket
    that has the run.

    Raises UsageError for a wrong argument, a change of nothing, and a run without the facts of its bucket.
    """
    check_texts(policy=policy, keys=keys)
    check_flags(
        acls=acls,
        block_public_access=block_public_access,
        ignore_public_acls=ignore_public_acls,
        restrict_public_policy=restrict_public_policy,
        requester_pays=requester_pays,
    )
    entries = trust if isinstance(trust, str) or not isinstance(trust, Iterable) else list(trust)
    if policy:
        checked_policy(policy, "the keyword policy")
    change = BucketChange(
        acls=acls,
        policy=policy,
        block=block_public_access,
        switches=switches(acls=ignore_public_acls, policies=restrict_public_policy),
        requester_pays=requester_pays,
        trusted=values.trusted(entries, "the keyword trust"),
    )
    connection = StoreConnection(endpoint_url=endpoint_url, profile=profile, region=region)
    with folder_place.open_run(run, **connection) as opened, lines_to(keys) as sink:
        return WhatIfQuestion(opened, change, sink=sink).answer()
