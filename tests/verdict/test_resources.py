"""The statements that cover a key: wildcards, other services' ARNs, NotResource and policy variables."""

from __future__ import annotations

import pytest

from auditor.verdict.resources import FolderPattern, FolderValues, KeyClass, KeyCoverage

YES, NO, MAYBE = (1, 0), (0, 0), (0, 1)


def coverage(*resources: str, negated: bool = False, variables: bool = True) -> KeyCoverage:
    return KeyCoverage([(negated, resources)], "bucket/", variables=variables)


@pytest.mark.parametrize(
    ("situation", "resource", "key", "expected"),
    [
        ("every object of the bucket", "arn:aws:s3:::bucket/*", "a/b.txt", YES),
        ("everything", "*", "a", YES),
        ("every bucket", "arn:aws:s3:::*", "a", YES),
        ("a star across the slash after the bucket", "arn:aws:s3:::buck*", "a", YES),
        ("a star for the bucket crosses slashes", "arn:aws:s3:::*/secret", "a/b/secret", YES),
        ("China", "arn:aws-cn:s3:::bucket/*", "a", YES),
        ("any partition", "arn:*:s3:::bucket/*", "a", YES),
        ("any region and account", "arn:aws:s3:*:*:bucket/*", "a", YES),
        ("a prefix", "arn:aws:s3:::bucket/public/*", "public/a/b", YES),
        ("outside the prefix", "arn:aws:s3:::bucket/public/*", "private/a", NO),
        ("the key in another case", "arn:aws:s3:::bucket/Public/*", "public/a", NO),
        ("a suffix, and a newline after it", "arn:aws:s3:::bucket/*.jpg", "x.jpg\n", NO),
        ("a question mark", "arn:aws:s3:::bucket/a?c", "a/c", YES),
        ("the bucket alone", "arn:aws:s3:::bucket", "a", NO),
        ("another bucket", "arn:aws:s3:::other/*", "a", NO),
        ("a bucket whose name begins with ours", "arn:aws:s3:::bucket2/*", "a", NO),
        ("another service", "arn:aws:sqs:::bucket/*", "a", NO),
        ("an access point", "arn:aws:s3:eu-central-1:111122223333:accesspoint/x/object/*", "a", NO),
        ("a key with colons", "arn:aws:s3:::bucket/a:b:*", "a:b:c:d", YES),
        ("a key with a star in it, meant", "arn:aws:s3:::bucket/${*}", "*", YES),
        ("a starred pattern without its star", "arn:aws:s3:::bucket/${*}", "a", NO),
        ("letters composed another way", "arn:aws:s3:::bucket/\u00e9*", "e\u0301", NO),
        ("a variable that may be this", "arn:aws:s3:::bucket/home/${aws:username}/*", "home/ada/x", MAYBE),
        ("a variable that cannot be this", "arn:aws:s3:::bucket/home/${aws:username}/*", "public/x", NO),
        ("an account's number", "arn:aws:s3:::bucket/${aws:PrincipalAccount}/*", "111122223333/x", MAYBE),
        ("no account's number", "arn:aws:s3:::bucket/${aws:PrincipalAccount}/*", "dir/x", NO),
        ("a region", "arn:aws:s3:eu-central-1::bucket/*", "a", MAYBE),
        ("a tenant", "arn:aws:s3::tenant:bucket/*", "a", MAYBE),
        ("too few parts", "arn:aws:s3:*", "a", MAYBE),
        ("an empty text", "", "a", MAYBE),
    ],
)
def test_a_resource_covers_a_key(situation: str, resource: str, key: str, expected: tuple[int, int]) -> None:
    assert coverage(resource).class_of(key)[:2] == expected, situation
    opposite = {YES: NO, NO: YES, MAYBE: MAYBE}[expected]
    assert coverage(resource, negated=True).class_of(key)[:2] == opposite, f"{situation}, NotResource"


def test_policies_of_2008_know_no_variables() -> None:
    plain = coverage("arn:aws:s3:::bucket/${aws:username}", variables=False)
    assert plain.class_of("ada") == KeyClass(0, 0)
    assert plain.class_of("${aws:username}") == KeyClass(1, 0)


def test_an_empty_list_of_resources_covers_nothing() -> None:
    assert coverage().class_of("a") == KeyClass(0, 0)
    assert coverage(negated=True).class_of("a") == KeyClass(1, 0)


def test_keys_that_the_same_statements_cover_are_of_one_class() -> None:
    both = KeyCoverage(
        [(False, ["arn:aws:s3:::bucket/public/*"]), (False, ["*"])],
        "bucket/",
        variables=True,
    )
    assert both.class_of("public/a") == both.class_of("public/b") == KeyClass(0b11, 0)
    assert both.class_of("a") == KeyClass(0b10, 0)


def test_a_variable_has_the_values_that_reach_the_key() -> None:
    home = coverage("arn:aws:s3:::bucket/home/${aws:username}/*")
    assert home.class_of("home/ada/b/c").values == (FolderValues(0, "aws:username", ("ada", "ada/b"), False),)
    assert home.class_of("home/ada").values == ()


@pytest.mark.parametrize(("key", "default"), [("home/ada/x", True), ("home/bob/x", False), ("home/ada", False)])
def test_a_default_reaches_a_key_without_a_value(key: str, default: bool) -> None:
    home = coverage("arn:aws:s3:::bucket/home/${aws:username, 'ada'}/*")
    assert any(one.default for one in home.class_of(key).values) is default


def test_values_that_no_policy_tells_apart_make_one_class() -> None:
    home = coverage("arn:aws:s3:::bucket/home/${aws:username}/*")
    home.representatives = lambda key, groups: [{f"somebody {number}"} for number, _ in enumerate(groups)]
    assert home.class_of("home/ada/x") == home.class_of("home/bob/y")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("bucket/*", "no variable"),
        ("bucket/${a:b}/${c:d}", "two variables"),
        ("bucket/*/${a:b}", "a wildcard before it"),
        ("bucket/${*}/x", "an escape"),
    ],
)
def test_a_pattern_that_is_no_folder_of_one_variable(pattern: str, reason: str) -> None:
    assert FolderPattern.of(pattern) is None, reason


def test_a_variable_before_a_wildcard_has_a_value_for_each_beginning() -> None:
    pattern = FolderPattern.of("bucket/${aws:username}*")
    assert pattern is not None
    assert len(pattern.values("bucket/" + "a" * 1024)) == 1024
    assert pattern.values("other/a") == ()


def test_a_wildcard_that_invites_backtracking_is_answered() -> None:
    assert coverage("arn:aws:s3:::bucket/" + "*a" * 400 + "*b").class_of("a" * 1024) == KeyClass(0, 0)
