"""auditor.toml: its keys and tables, and the sentence for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.config.file import load
from auditor.config.settings import resolve
from auditor.errors import ConfigError
from auditor.rules.exceptions import Acceptance, accepts_object, accepts_rule

GOOD = """
engine = "boto3"
max_rate = 100
only = ["O01", "M01"]
trusted = ["abc"]

[rules.M01]
required = ["origin"]

[[accept_undecided]]
prefix = "vault/"
code = "AccessDenied"
reason = "the vault's keys are kept from the auditor"
"""


def write(folder: Path, text: str) -> str:
    path = folder / "auditor.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    layer, tables = load(write(tmp_path, GOOD))
    settings = resolve([layer], tables)
    assert settings.engine == "boto3"
    assert settings.rules == {"M01": {"required": ["origin"]}}
    assert settings.accept_undecided[0].prefix == "vault/"


def test_no_file_is_no_settings_unless_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load(None)[1] == {}
    with pytest.raises(ConfigError, match="--config"):
        load("missing.toml")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("engin = 'boto3'", "engin"),
        ("engine = ", "not TOML"),
        ("rules = 3", "rules"),
        ("[rules.Z99]", "Z99"),
        ("[rules.M01]", "required"),
        ("[rules.M01]\nrequired = 'origin'", "required"),
        ("[rules.M01]\nrequired = []", "required"),
        ("[rules.M01]\nrequired = [3]", "required"),
        ("[rules.M01]\nrequired = ['a']\nextra = 1", "extra"),
        ("[rules.O01]\nrequired = ['a']", "required"),
        ("accept_undecided = true", "accept_undecided"),
        ("[[accept_undecided]]\nprefix = 'x'", "reason"),
        ("[[accept_undecided]]\nreason = 'x'", "prefix"),
        ("[[accept_undecided]]\nreason = 'x'\nkey = 'y'", "key"),
        ("[[accept_undecided]]\nreason = ''\nprefix = 'y'", "text"),
    ],
)
def test_a_mistake_is_one_sentence_that_names_it(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named) as caught:
        load(write(tmp_path, text))
    assert caught.value.exit_code == 2


def test_a_directory_is_no_settings_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(str(tmp_path))


def test_bytes_that_are_not_text_are_not_toml(tmp_path: Path) -> None:
    path = tmp_path / "auditor.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not TOML"):
        load(str(path))


VAULT = Acceptance(reason="r", prefix="vault/", code="AccessDenied")


@pytest.mark.parametrize(
    ("key", "unread", "accepted"),
    [
        ("vault/a", [("GetObjectAcl", "AccessDenied")], True),
        ("vault/a", [("GetObjectAcl", "SlowDown")], False),
        ("vault/a", [("GetObjectAcl", "AccessDenied"), ("HeadObject", "403")], False),
        ("other", [("GetObjectAcl", "AccessDenied")], False),
        ("vault/a", [], False),
    ],
)
def test_an_object_is_accepted_only_with_all_it_lacks(key: str, unread: list[tuple[str, str]], accepted: bool) -> None:
    assert accepts_object([VAULT], key, unread) is accepted


def test_an_accepted_prefix_says_nothing_of_rules_and_a_rule_nothing_of_objects() -> None:
    rule = Acceptance(reason="r", rule="B02")
    assert accepts_rule([rule], "B02", "GetPublicAccessBlock", "AccessDenied")
    assert not accepts_rule([rule], "B01", "GetPublicAccessBlock", "AccessDenied")
    assert not accepts_rule([VAULT], "B02", "GetPublicAccessBlock", "AccessDenied")
    assert not accepts_object([rule], "vault/a", [("GetObjectAcl", "AccessDenied")])
