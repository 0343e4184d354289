"""Sequencers of any length and case sort by S3's rule."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from auditor.s3.sequencer import SEQUENCER, newer, sort_key

sequencers = st.text("0123456789abcdefABCDEF", min_size=1, max_size=64)


@given(sequencers, sequencers)
def test_order_is_that_of_the_padded_numbers(one: str, other: str) -> None:
    length = max(len(one), len(other))
    first, second = (int(sequencer + "0" * (length - len(sequencer)), 16) for sequencer in (one, other))
    assert newer(one, other) is (first > second)
    assert (sort_key(one) == sort_key(other)) is (first == second)


def test_hexadecimal_is_a_sequencer_and_anything_else_is_none() -> None:
    for text in ("0", "0055AED6DCD90281E5", "617f08299329d189", "f" * 64):
        assert re.fullmatch(SEQUENCER, text), text
    for text in ("", "g", "0x1", "f" * 65, "1\n", " 1", "1_0", "-1", "\uff11", "\u0661"):
        assert not re.fullmatch(SEQUENCER, text), text
