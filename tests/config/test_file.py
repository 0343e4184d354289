"""auditor.toml: its keys and tables, and the sentence for each mistake."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any, Final

import pytest

from auditor.config.file import load, read
from auditor.config.layers import resolve
from auditor.config.settings import Settings
from auditor.errors import ConfigError
from auditor.model.exception import ExceptionEntry, accepts_object


def write(folder: Path, text: str) -> str:
    path = folder / "auditor.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_no_file_is_no_settings_unless_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    layer, tables = load(None)
    assert resolve([layer], tables) == Settings()
    Path("latin.toml").write_bytes(b"\xff\xfe")
    for name, words in (("missing.toml", "--config"), (".", "cannot be read"), ("latin.toml", "not TOML")):
        with pytest.raises(ConfigError, match=words):
            load(name)


def test_a_mistake_is_one_sentence_that_names_it(tmp_path: Path) -> None:
    for text, named in (
        ("engine = ", "not TOML"),
        ("rules = 3", "rules"),
        ("[rules.Z99]", "Z99"),
        ("[rules.M01]", "required"),
        ("[rules.M01]\nrequired = 'origin'", "required"),
        ("[rules.M01]\nrequired = []", "required"),
        ("[rules.M01]\nrequired = ['a']\nextra = 1", "extra"),
        ("[rules.O01]\nrequired = ['a']", "required"),
        ("exceptions = true", "exceptions"),
        ("[[exceptions]]\nprefix = 'x'\ncode = '403'", "reason"),
        ("[[exceptions]]\nreason = 'x'\nkey = 'y'", "key"),
    ):
        with pytest.raises(ConfigError, match=named) as caught:
            load(write(tmp_path, text))
        assert caught.value.exit_code == 2


EXCEPTION = {"rule": "O02", "owner": "web team", "reason": "a public website", "until": "2026-12-31"}


def excepting(**changes: Any) -> dict[str, Any]:
    """Return a whole entry of [[exceptions]] with some values changed; None leaves a key out."""
    return {key: value for key, value in {**EXCEPTION, **changes}.items() if value is not None}


def read_one(**changes: Any) -> ExceptionEntry:
    _, tables = read({"exceptions": [excepting(**changes)]}, "auditor.toml", today=date(2026, 3, 1))
    found: tuple[ExceptionEntry] = tables["exceptions"]
    return found[0]


WRONG: Final[tuple[tuple[dict[str, Any], str], ...]] = (
    ({"owner": None}, "the key 'owner' is missing: name the person or team responsible for it"),
    ({"reason": None}, "the key 'reason' is missing: say why it is accepted"),
    (
        {"until": None},
        "the key 'until' is missing: give the last day on which it holds, such as until = 2027-01-31",
    ),
    ({"until": "2027-04-06"}, "until is 2027-04-06, more than 400 days ahead: write 2027-04-05 or earlier"),
    ({"until": "31.12.2026"}, "until is '31.12.2026': write a day, such as until = 2027-01-31"),
    ({"prefix": ""}, 'prefix is not a text that is not empty: write prefix = ".."'),
    ({"reason": "r" * 2049}, "reason has more than 2,048 characters: shorten it"),
    ({"rule": None}, "name either a rule or a verdict, or the action or code of a hole"),
    ({"rule": None, "verdict": "unknown"}, "verdict is 'unknown': use exposed, shared, masked"),
    ({"rule": None, "verdict": "exposed", "grantee": "x"}, "grantee needs a rule: name the audience"),
    ({"rule": None, "verdict": "exposed", "code": "x"}, "verdict conflicts with action or code"),
    ({"code": "AccessDenied", "audience": "anyone"}, "audience conflicts with action or code"),
    ({"prefix": "a", "pattern": "a*"}, "prefix and pattern cannot be combined"),
    ({"audience": "everyone"}, "audience is 'everyone': write it as the report has it"),
    (
        {"id": "a b"},
        "id has a wrong value: write at most 64 letters, digits, '.', '_' and '-', a letter or digit first",
    ),
    ({"bucket": "s3://site"}, "bucket has a wrong value: write its name, without s3:// and prefix"),
    (
        {"severity": "high"},
        "the key 'severity' is unknown: use action, audience, bucket, code, grantee, id, owner,",
    ),
    ({"ownr": "o"}, "the key 'ownr' is unknown: did you mean owner?"),
    ({"rule": "O2"}, "there is no rule 'O2': did you mean O02 (acl-everyone-read)? `auditor rules` lists them"),
    ({"rule": "B04", "prefix": "site/"}, "rule B04 is on the bucket itself: remove the prefix"),
)
"""Changes of a sound entry, and the sentence on each."""


def test_a_wrong_exception_is_one_sentence() -> None:
    for changes, sentence in WRONG:
        with pytest.raises(ConfigError) as caught:
            read_one(**changes)
        said = str(caught.value)
        assert said.startswith(f"auditor.toml: [[exceptions]]: {sentence}"), said
        assert "\n" not in said
    with pytest.raises(ConfigError, match=r"2 has the id '[0-9a-f]{12}' of number 1"):
        read({"exceptions": [excepting(), excepting(reason="again")]}, "auditor.toml", today=date(2026, 3, 1))


VAULT = ExceptionEntry("r", "o", "2999-12-31", prefix="vault/", code="AccessDenied")


def test_an_object_is_accepted_only_with_all_it_lacks() -> None:
    acl, slow, head = ("GetObjectAcl", "AccessDenied"), ("GetObjectAcl", "SlowDown"), ("HeadObject", "403")
    for key, unread, accepted in (
        ("vault/a", [acl], True),
        ("vault/a", [slow], False),
        ("vault/a", [acl, head], False),
        ("other", [acl], False),
        ("vault/a", [], False),
    ):
        assert accepts_object([VAULT], key, unread) is accepted, (key, unread)


def test_a_key_without_a_value_in_a_stored_configuration_is_refused() -> None:
    """run.json is JSON: null would stand for a key that is left out, and the exception for more objects."""
    entry = {"rule": "O02", "owner": "me", "reason": "a site", "until": "2999-12-31", "prefix": None}
    with pytest.raises(ConfigError, match="has null, which TOML does not have: leave the key out"):
        read({"exceptions": [entry]}, "run.json")
