"""The file of an estate: what it says, and one clear sentence for each mistake."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from auditor.config.estate import read_estate
from auditor.errors import ConfigError
from auditor.model.estate import Exclusion, Restriction

TODAY = date(2026, 11, 25)
ROLE = 'role = "arn:aws:iam::111122223333:role/auditor"'
WHY = 'reason = "scratch"\nowner = "team a"\nuntil = 2027-01-31'


def read(tmp_path: Path, text: str):  # type: ignore[no-untyped-def]
    path = tmp_path / "estate.toml"
    path.write_text(text)
    return read_estate(str(path), TODAY).accounts


def test_accounts_with_what_they_leave_out(tmp_path: Path) -> None:
    first, second = read(
        tmp_path,
        f"""
        [[accounts]]
        {ROLE}
        external_id = "e-1"
        name = "production"
        include = ["prod-*"]
        regions = ["eu-central-1", "us-gov-west-1"]
        {WHY}
        [[accounts.exclude]]
        pattern = "*-logs"
        {WHY}
        [[accounts]]
        id = "222233334444"
        own_credentials = true
        [[exclude]]
        pattern = "tmp-?"
        {WHY}
        """,
    )
    why = {"reason": "scratch", "owner": "team a", "until": "2027-01-31"}
    everywhere = Exclusion(pattern="tmp-?", **why)
    assert (first.id, first.external_id, first.name) == ("111122223333", "e-1", "production")
    assert first.restriction == Restriction(include=("prod-*",), regions=("eu-central-1", "us-gov-west-1"), **why)
    assert first.exclusions == (Exclusion(pattern="*-logs", **why), everywhere)
    assert (second.id, second.role, second.restriction) == ("222233334444", None, None)
    assert second.exclusions == (everywhere,)
    assert first.words == "account 111122223333 (production)"


A = f"[[accounts]]\n{ROLE}"
EXCLUDED = f"{A}\n[[exclude]]\npattern = 'a'\n"
OWN = "[[accounts]]\nown_credentials = true\n"
MISTAKES = (
    ("", "estate.toml: the key 'accounts' is missing: write [[accounts]] with role = "),
    ("accounts = [1]", "[[accounts]] is not a table: write its keys below it"),
    (f"{A}\n[[acounts]]", "the key 'acounts' is unknown: did you mean accounts?"),
    (f"{A}\nregion = 1", "[[accounts]]: the key 'region' is unknown: did you mean regions?"),
    ("[[accounts]]\nname = 'a'", "name the role to assume, or say own_credentials"),
    (f"{A}\nown_credentials = 'no'", "own_credentials is not true or false"),
    (OWN, "the id is missing"),
    (f"{OWN}id = '1'", "write the account's 12 digits"),
    (f"{OWN}id = '111122223333'\nexternal_id = 'ab'", "external_id needs a role"),
    ("[[accounts]]\nrole = 'arn:aws:iam::111122223333:user/x'", "write it like arn:aws:iam"),
    (f"{A}\nid = '222233334444'", "the role belongs to account 111122223333"),
    (f"{A}\nexternal_id = 'a b'", "external_id has a wrong value: write 2 or more letters"),
    (f"{A}\n{A}", "account 111122223333 is named twice"),
    (f"{A}\ninclude = 'a'", "include is not a list"),
    (f"{A}\ninclude = ['a/b']\n{WHY}", "include has 'a/b'"),
    (f"{A}\nregions = ['Frankfurt']\n{WHY}", "regions has 'Frankfurt'"),
    (f"{A}\ninclude = ['a']", "[[accounts]]: the key 'reason' is missing: say why its buckets are left out"),
    (f"{A}\n{WHY}", "owner belongs to include or regions"),
    (f"{A}\n[[accounts.exclude]]\npattern = 'a'", "[[accounts.exclude]]: the key 'reason' is missing: say why"),
    (f"{A}\n[[exclude]]\n{WHY}", "estate.toml: [[exclude]]: the key 'pattern' is missing: write a bucket's name or"),
    (f"{A}\n[[exclude]]\npattern = '[a]'\n{WHY}", "pattern is '[a]'"),
    (f"{EXCLUDED}why = 'b'\n{WHY}", "the key 'why' is unknown"),
    (f"{EXCLUDED}reason = 'r'\nowner = 'o'\nuntil = '31.1.2027'", "until is '31.1.2027': write a day"),
    (f"{EXCLUDED}reason = 'r'\nowner = 'o'\nuntil = 2030-01-01", "more than 400 days ahead"),
    (f"{EXCLUDED}reason = 'r'\nowner = 'o'\nuntil = 2026-02-30", "is not TOML"),
    (f"name = 'a/b'\n{A}", "name is 'a/b': write at most 100 letters"),
    (f"{A}\nexclude = [1, 2]", "[[accounts]]: [[accounts.exclude]] 1 is not a table"),
    (f"{A}\nname = '{'a' * 2049}'", "name has more than 2,048 characters: shorten it"),
    (f"{A}\nregions = {['eu-central-1'] * 10_001}", "regions has more than 10,000 entries"),
    ("[[accounts", "is not TOML"),
)
"""Texts of estate.toml, and words of the sentence on each."""


def test_mistake_is_one_sentence(tmp_path: Path) -> None:
    for text, word in MISTAKES:
        with pytest.raises(ConfigError) as caught:
            read(tmp_path, text)
        said = str(caught.value)
        assert (word in said, "\n" in said, "estate.toml" in said) == (True, False, True), said


def test_name_of_the_file_names_the_estate(tmp_path: Path) -> None:
    for file, form in (
        ("estate.toml", "estate"),
        ("team-a.v2.toml", "team-a.v2"),
        ("our estate.toml", "our-estate-[0-9a-f]{8}"),
        ("æß.toml", "--[0-9a-f]{8}"),
        (f"{'a' * 120}.toml", f"{'a' * 80}-[0-9a-f]{{8}}"),
        ("..toml", "-[0-9a-z-]+"),
    ):
        path = tmp_path / file
        path.write_text(f"[[accounts]]\n{ROLE}")
        assert re.fullmatch(form, read_estate(str(path), TODAY).name), file
        path.write_text(f"name = 'mine'\n[[accounts]]\n{ROLE}")
        assert read_estate(str(path), TODAY).name == "mine"


def test_missing_file_and_directory(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no file"):
        read_estate(str(tmp_path / "none.toml"))
    with pytest.raises(ConfigError, match="cannot be read"):
        read_estate(str(tmp_path))
    with pytest.raises(ConfigError, match="is not TOML"):
        read_estate("a\0b")
