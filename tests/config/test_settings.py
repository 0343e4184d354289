"""Settings: which layer wins, and the sentence for each bad value."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest

from auditor.config.layers import NO_SETTINGS, Layer, environment_layer, resolve
from auditor.config.settings import SETTINGS
from auditor.errors import UsageError
from auditor.model.bucket import Semantics
from auditor.model.finding import FailOn, Severity
from tests.support.paths import ROOT

_VARIABLE: Final = re.compile(r"\bAUDITOR_[A-Z][A-Z_]*[A-Z]\b")


def flags(**values: Any) -> Layer:
    return Layer(values, lambda name: f"--{name}")


def test_the_flag_wins_over_the_variable_and_the_variable_over_the_file() -> None:
    file = Layer({"engine": "boto3", "max_rate": 5, "versions": True}, str)
    environment = environment_layer({"AUDITOR_ENGINE": "aioboto3", "AUDITOR_MAX_RATE": "7"})
    settings = resolve([flags(engine="boto3"), environment, file])
    assert (settings.engine, settings.max_rate, settings.versions) == ("boto3", 7.0, True)


def test_a_variable_that_is_mistyped_is_told_with_the_name_that_was_meant() -> None:
    others = {"AUDITOR_BIN": "/opt/bin", "AUDITOR_VERSION": "1.2", "AUDITOR_MAXRATE": "", "AUDIT": "1"}
    assert environment_layer({**others, "AUDITOR_ENGINE": ""}).values == {}
    for variable, meant in (
        ("AUDITOR_MAXRATE", "AUDITOR_MAX_RATE"),
        ("AUDITOR_CONCURENCY", "AUDITOR_CONCURRENCY"),
        ("AUDITOR_ALGORITHM", "AUDITOR_ALGORITHMS"),
        ("AUDITOR_BUCKET", "AUDITOR_BUCKETS"),
    ):
        with pytest.raises(UsageError, match=f"'{variable}' is unknown: write {meant} if"):
            environment_layer({variable: "7"})


def test_variables_that_are_read_elsewhere_are_those_that_are_known() -> None:
    written = {name for path in ROOT.glob("auditor/**/*.py") for name in _VARIABLE.findall(path.read_text())}
    settings = {f"AUDITOR_{name.upper()}" for name in SETTINGS}
    assert set(NO_SETTINGS) == written - settings - {"AUDITOR_MAXRATE", "AUDITOR_BUCKET", "AUDITOR_BIN"}
    assert environment_layer(dict.fromkeys([*NO_SETTINGS, *settings], "x")).values.keys() == SETTINGS.keys()


TOPIC: Final = "arn:aws:sns:eu-west-1:123456789012:a"
GOOD: Final[tuple[tuple[str, Any, Any], ...]] = (
    ("concurrency", "auto", None),
    ("concurrency", "17", 17),
    ("max_rate", "unlimited", None),
    ("max_rate", "0.5", 0.5),
    ("fail_on", "never", None),
    ("fail_on", "new:high", FailOn(Severity.HIGH, new=True)),
    ("only", "O01, O02,", ("O01", "O02")),
    ("algorithms", "md5,sha256,md5", ("md5", "sha256")),
    ("versions", "yes", True),
    ("trusted", "a,b", frozenset({"a", "b"})),
    ("semantics", "auto", None),
    ("semantics", "ceph", Semantics.CEPH),
    ("accept_cost", "true", True),
    ("batch_over", "1TiB", 1024**4),
    ("batch_over", "1.5 KiB", 1536),
    ("batch_role", "arn:aws:iam::111122223333:role/a/b", "arn:aws:iam::111122223333:role/a/b"),
)
BAD: Final[dict[str, tuple[Any, ...]]] = {
    "batch_over": ("0", "1XB", "0.2", True, 1.5),
    "batch_role": ("my-role",),
    "engine": ("warp", ["boto3"]),
    "concurrency": ("0", "many", "1001", True, "9" * 5000),
    "streams": ("0", "9", 2.5),
    "max_rate": ("0", "nan", "inf"),
    "max_calls": ("-1", "1.5"),
    "fail_on": ("worst", "new:worst", "new:never"),
    "only": (7, [1]),
    "algorithms": ("sha256,crc32", ""),
    "versions": ("perhaps",),
    "endpoint_url": ("127.0.0.1:9000", "ftp://host"),
    "expected_owner": ("1234",),
    "region": ("",),
    "topic": ("alerts", f"{TOPIC}.fifo"),
    "event_bus": ("two words",),
    "semantics": ("minio", ["aws"]),
    "trusted": (
        *(7, "backup,vpce-*", "10.0.0.0/33", "0.0.0.0/0", "2001::/16", "a b", "arn:aws:iam:111122223333"),
        *("1111-2222-3333", "http://acs.amazonaws.com/groups/global/AllUsers", ["x" * 5000]),
    ),
}


def test_a_good_value_is_read() -> None:
    for name, text, value in GOOD:
        assert getattr(resolve([flags(**{"ledger": "sqlite:l.db", name: text})]), name) == value, (name, text)


def test_a_bad_value_is_one_sentence_that_names_its_flag() -> None:
    for name, texts in BAD.items():
        for text in texts:
            with pytest.raises(UsageError) as caught:
                resolve([flags(**{name: text})])
            said = str(caught.value)
            assert (f"--{name}" in said, len(said) < 400, "\n" in said) == (True, True, False), (name, said)


def test_settings_that_need_or_exclude_each_other() -> None:
    for given, words in (
        ({"queue": "http://127.0.0.1/q"}, "--ledger"),
        ({"hash": True}, "--ledger"),
        ({"batch_over": 9}, "--ledger"),
        ({"batch_manifest": "m"}, "--ledger"),
        ({"queue": "http://127.0.0.1/q", "hash": True, "ledger": "sqlite:x"}, "cannot be combined"),
        ({"max_age": "7d", "percent": 5}, "cannot be combined"),
        ({"topic": TOPIC, "chat_topic": TOPIC}, "are the same topic"),
    ):
        with pytest.raises(UsageError, match=words):
            resolve([flags(**given)])


def test_what_is_due_is_said_by_the_first_layer_that_says_anything_of_it() -> None:
    for given, due in (
        ({"percent": 5}, (None, 5)),
        ({"max_age": "7d"}, (7 * 86_400, None)),
        ({}, (90 * 86_400, None)),
    ):
        settings = resolve([flags(**given), environment_layer({"AUDITOR_MAX_AGE": "90d", "AUDITOR_PERCENT": ""})])
        assert (settings.max_age, settings.percent) == due
