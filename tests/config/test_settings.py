"""Settings: which layer wins, and the sentence for each bad value."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest

from auditor.config.layers import NO_SETTINGS, Layer, environment_layer, resolve
from auditor.config.settings import SETTINGS, Settings
from auditor.errors import UsageError
from auditor.model.bucket import Semantics
from auditor.model.finding import FailOn, Severity
from tests.support.paths import ROOT

_VARIABLE: Final = re.compile(r"\bAUDITOR_[A-Z][A-Z_]*[A-Z]\b")


def flags(**values: Any) -> Layer:
    return Layer(values, lambda name: f"--{name}")


def test_nothing_given_is_the_defaults() -> None:
    assert resolve([]) == Settings()


def test_the_flag_wins_over_the_variable_and_the_variable_over_the_file() -> None:
    file = Layer({"engine": "boto3", "max_rate": 5, "versions": True}, str)
    environment = environment_layer({"AUDITOR_ENGINE": "aioboto3", "AUDITOR_MAX_RATE": "7"})
    settings = resolve([flags(engine="boto3"), environment, file])
    assert (settings.engine, settings.max_rate, settings.versions) == ("boto3", 7.0, True)


def test_an_empty_variable_is_no_variable() -> None:
    assert environment_layer({"AUDITOR_ENGINE": ""}).values == {}


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("AUDITOR_MAXRATE", "AUDITOR_MAX_RATE"),
        ("AUDITOR_CONCURENCY", "AUDITOR_CONCURRENCY"),
        ("AUDITOR_ALGORITHM", "AUDITOR_ALGORITHMS"),
        ("AUDITOR_BUCKET", "AUDITOR_BUCKETS"),
        ("AUDITOR_LOGLEVEL", "AUDITOR_LOG_LEVEL"),
    ],
)
def test_a_variable_that_is_mistyped_is_told_with_the_name_that_was_meant(variable: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f"'{variable}' is unknown: write {meant} if"):
        environment_layer({variable: "7"})


def test_a_variable_of_somebody_else_is_ignored_and_so_is_a_mistyped_one_that_is_empty() -> None:
    assert (
        environment_layer(
            {"AUDITOR_BIN": "/opt/bin", "AUDITOR_VERSION": "1.2", "AUDITOR_MAXRATE": "", "AUDIT": "1"}
        ).values
        == {}
    )


def test_variables_that_are_read_elsewhere_are_those_that_are_known() -> None:
    written = {name for path in ROOT.glob("auditor/**/*.py") for name in _VARIABLE.findall(path.read_text())}
    settings = {f"AUDITOR_{name.upper()}" for name in SETTINGS}
    assert set(NO_SETTINGS) == written - settings - {"AUDITOR_MAXRATE", "AUDITOR_BUCKET", "AUDITOR_BIN"}
    assert environment_layer(dict.fromkeys([*NO_SETTINGS, *settings], "x")).values.keys() == SETTINGS.keys()


def test_every_setting_has_a_parser_or_is_a_table_or_is_set_by_an_estate() -> None:
    assert set(Settings.__struct_fields__) == SETTINGS.keys() | {
        "rules",
        "accounts",
        "exceptions",
        "prices",
        "role",
        "live_without_inventory",
    }


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("concurrency", "auto", None),
        ("concurrency", "17", 17),
        ("streams", "auto", None),
        ("streams", "4", 4),
        ("max_rate", "unlimited", None),
        ("max_rate", "0.5", 0.5),
        ("fail_on", "never", None),
        ("fail_on", "low", Severity.LOW),
        ("fail_on", "new:high", FailOn(Severity.HIGH, new=True)),
        ("only", "O01, O02,", ("O01", "O02")),
        ("only", ["O01"], ("O01",)),
        ("algorithms", "md5,sha256,md5", ("md5", "sha256")),
        ("versions", "yes", True),
        ("trusted", "a,b", frozenset({"a", "b"})),
        ("expected_owner", "123456789012", "123456789012"),
        ("semantics", "auto", None),
        ("semantics", "ceph", Semantics.CEPH),
        ("accept_cost", "true", True),
        ("batch_over", "1TiB", 1024**4),
        ("batch_over", "500gb", 500 * 1000**3),
        ("batch_over", "1.5 KiB", 1536),
        ("batch_over", 7, 7),
        ("batch_role", "arn:aws:iam::111122223333:role/a/b", "arn:aws:iam::111122223333:role/a/b"),
    ],
)
def test_a_good_value_is_read(name: str, text: Any, value: Any) -> None:
    assert getattr(resolve([flags(**{"ledger": "sqlite:l.db", name: text})]), name) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("batch_over", "0"),
        ("batch_over", "1XB"),
        ("batch_over", "0.2"),
        ("batch_over", True),
        ("batch_over", 1.5),
        ("batch_role", "my-role"),
        ("engine", "warp"),
        ("engine", ["boto3"]),
        ("concurrency", "0"),
        ("concurrency", "many"),
        ("streams", "0"),
        ("streams", "9"),
        ("streams", 2.5),
        ("concurrency", "1001"),
        ("concurrency", True),
        ("concurrency", "9" * 5000),
        ("max_rate", "0"),
        ("max_rate", "nan"),
        ("max_rate", "inf"),
        ("max_calls", "-1"),
        ("max_calls", "1.5"),
        ("fail_on", "worst"),
        ("fail_on", "new:worst"),
        ("fail_on", "new:never"),
        ("only", 7),
        ("only", [1]),
        ("algorithms", "sha256,crc32"),
        ("algorithms", ""),
        ("versions", "perhaps"),
        ("endpoint_url", "127.0.0.1:9000"),
        ("endpoint_url", "ftp://host"),
        ("expected_owner", "1234"),
        ("region", ""),
        ("semantics", "minio"),
        ("semantics", ["aws"]),
        ("trusted", 7),
        ("trusted", "backup,vpce-*"),
        ("trusted", "10.0.0.0/33"),
        ("trusted", "0.0.0.0/0"),
        ("trusted", "2001::/16"),
        ("trusted", "a b"),
        ("trusted", "arn:aws:iam:111122223333"),
        ("trusted", "1111-2222-3333"),
        ("trusted", "http://acs.amazonaws.com/groups/global/AllUsers"),
        ("trusted", ["x" * 5000]),
    ],
)
def test_a_bad_value_is_one_sentence_that_names_its_flag(name: str, text: Any) -> None:
    with pytest.raises(UsageError) as caught:
        resolve([flags(**{name: text})])
    assert f"--{name}" in str(caught.value)
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "given", [{"queue": "http://127.0.0.1/q"}, {"hash": True}, {"batch_over": 9}, {"batch_manifest": "m"}]
)
def test_hashing_without_a_ledger_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="--ledger"):
        resolve([flags(**given)])


def test_queue_and_hash_together_are_refused() -> None:
    with pytest.raises(UsageError, match="cannot be combined"):
        resolve([flags(queue="http://127.0.0.1/q", hash=True, ledger="sqlite:x")])


@pytest.mark.parametrize(
    ("given", "due"),
    [
        ({"percent": 5}, (None, 5)),
        ({"max_age": "7d"}, (7 * 86_400, None)),
        ({}, (90 * 86_400, None)),
    ],
)
def test_what_is_due_is_said_by_the_first_layer_that_says_anything_of_it(given: dict[str, Any], due: object) -> None:
    settings = resolve([flags(**given), environment_layer({"AUDITOR_MAX_AGE": "90d", "AUDITOR_PERCENT": ""})])
    assert (settings.max_age, settings.percent) == due


def test_an_age_and_a_share_in_one_layer_are_refused() -> None:
    with pytest.raises(UsageError, match="cannot be combined"):
        resolve([flags(max_age="7d", percent=5)])
