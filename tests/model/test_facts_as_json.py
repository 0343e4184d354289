"""Every fact of the bucket comes back from JSON as it was, whether it was read or not."""

from __future__ import annotations

import json
from enum import EnumType
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from auditor.model.bucket import BucketFacts, PublicAccessBlock
from auditor.model.json_codec import JsonError, fact_from_json, fact_to_json
from auditor.model.object import Ask, Skipped, Unread
from tests.support.samples.bucket import facts

TEXT: Final = st.text(st.characters(exclude_categories=()), max_size=8)
MISSING: Final = {
    Unread: st.builds(Unread, TEXT, TEXT),
    Skipped: st.builds(Skipped, TEXT),
}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of this type, built by the types of its fields."""
    if kind in MISSING:
        return MISSING[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return st.one_of(*map(values, arguments))
    if origin is tuple:
        return st.lists(values(arguments[0]), max_size=2).map(tuple)
    if origin is not None:
        return st.dictionaries(TEXT | st.sampled_from(["unread", "skipped"]), values(arguments[1]), max_size=2)
    if kind in (str, bool, int):
        return TEXT if kind is str else st.from_type(kind)
    if kind is type(None):
        return st.none()
    if isinstance(kind, EnumType):
        return st.sampled_from(list(kind))
    hints = get_type_hints(kind)
    return st.builds(kind, **{name: values(hints[name]) for name in kind.__struct_fields__})


def there_and_back(kind: Any, value: Any) -> Any:
    return fact_from_json(kind, json.loads(json.dumps(fact_to_json(value))))


@given(values(BucketFacts))
@example(facts(key_policies={"skipped": "{}", "unread": Unread("GetKeyPolicy", "AccessDenied")}))
def test_any_facts(found: BucketFacts) -> None:
    assert there_and_back(BucketFacts, found) == found


@given(values(Ask))
def test_any_question(ask: Ask) -> None:
    assert there_and_back(Ask, ask) == ask


REFUSED: Final[list[dict[str, Any]]] = [
    {"policy": None},
    {"policy": 7},
    {"policy": {"unread": {"action": "GetBucketPolicy"}}},
    {"policy": {"unread": {"action": "A", "code": "C"}, "skipped": "both"}},
    {"policy": {"skipped": 7}},
    {"semantics": "minio"},
    {"public_access_block": {"block_public_acls": "yes"}},
    {"public_access_block": {"blocks": True}},
    {"acl": {"owner": "a"}},
    {"key_policies": {"a": "b"}},
    {"key_policies": [["a"]]},
    {"access_points": {}},
    {"access_grants": {}},
    {"access_grants": {"account": "1", "grants": [{"id": "g-1"}]}},
    {"another": "fact"},
]


def test_other_values_are_refused() -> None:
    told = fact_to_json(facts())
    for change in REFUSED:
        with pytest.raises(JsonError):
            fact_from_json(BucketFacts, {**told, **change})
    for kind, value in ((BucketFacts, {"owner": "a"}), (PublicAccessBlock, [])):
        with pytest.raises(JsonError):
            fact_from_json(kind, value)
