"""Groups of objects that no exception can cover are refused in a sentence with the fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.errors import UsageError
from auditor.model.access import Verdict
from auditor.offline.accept import entries_for_group
from auditor.runs.reading import RunReader
from auditor.runs.stores.local import LocalStore
from tests.support.samples.reports import RUN, judged, rollups_of


def test_dormant_objects_need_no_exception(tmp_path: Path) -> None:
    rollups = rollups_of(judged("a", verdict=Verdict.DORMANT))
    (group,) = rollups.groups
    run = RunReader(LocalStore(tmp_path), "audited", RUN)
    with pytest.raises(UsageError, match="nothing to accept: accept their findings of O13"):
        entries_for_group(run, rollups, group, owner="web", reason="meant", until="2027-01-31")
