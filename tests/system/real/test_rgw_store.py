"""A store on a server that is not moto: its conditional writes keep two processes from one run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from auditor.errors import RunTaken
from auditor.runs.checkpoint import load_checkpoint
from auditor.runs.paths import FIRST
from auditor.runs.reading import RunReader
from auditor.runs.segment import Segment
from auditor.runs.stores import open_store
from auditor.runs.stores.s3 import S3Store
from auditor.runs.tally import Tally
from tests.support.killed_run import PART, end, judgements, put_all
from tests.support.log_lines import logged
from tests.support.samples.reports import RUN, sample_summary
from tests.support.servers.rgw import RgwServer


@pytest.fixture
def store(rgw: RgwServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Store]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", rgw.owner.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", rgw.owner.secret_key)
    with closing(rgw.client(rgw.owner)) as client:
        client.create_bucket(Bucket="run-folders")
        with open_store("s3://run-folders/runs", endpoint_url=rgw.url, region="us-east-1", sdk=True) as made:
            assert isinstance(made, S3Store)
            yield made


def test_conditions_are_kept(store: S3Store, tmp_path: Path) -> None:
    with logged() as lines:
        store.check_writable()
    assert lines == []
    first = store.put_if("state", b"1", None)
    assert first is not None
    assert store.put_if("state", b"2", None) is None
    assert store.put_if("state", b"3", first) is not None
    assert store.put_if("state", b"4", first) is None
    assert store.put_if("gone", b"5", first) is None
    (tmp_path / "other").write_bytes(b"other")
    assert not store.put_new_file("state", tmp_path / "other")
    assert store.get("state") == b"3"


def test_of_two_writers_one_is_refused_and_the_run_adds_up(store: S3Store) -> None:
    def segment(tally: Tally) -> Segment:
        state = load_checkpoint(store, "audited", RUN, FIRST)
        return Segment(store, "audited", RUN, tally=tally, state=state, part_lines=PART)

    tally = Tally()
    with segment(tally) as one, segment(Tally()) as two:
        one.prepare()
        put_all(one, tally, judgements()[:12])
        with pytest.raises(RunTaken):
            two.prepare()
        put_all(one, tally, judgements()[12:])
        end(store, one, sample_summary(), update_latest=True)
    assert load_checkpoint(store, "audited", RUN, FIRST) is None
    lines = [line.key for line in RunReader(store, "audited", RUN).objects()]
    assert lines == [judgement.evidence.ref.key for judgement in judgements()]
