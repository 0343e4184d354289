"""The number of streams, in simulated time, with several kinds of networks and hashers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from auditor.hashing.digest.streams import (
    LEAST,
    MEMORY,
    MOST_USED,
    PER_CONNECTION,
    WITH_CONNECTIONS,
    connections,
    core_share,
    layout,
    make_tuner,
)
from auditor.hashing.limits import BUFFER, LARGE, MIB

HASHER = 1000 * MIB


def play(rate: Callable[[int, float], float], seconds: float, hasher: float = HASHER) -> list[tuple[float, int]]:
    """The tuner's streams over time. rate: bytes a second by streams and time, before hashing limits it."""
    now = count = busy = 0.0
    tuner = make_tuner(None, LARGE, now)
    wanted = [(now, 1)]
    while now < seconds:
        step = 0.05
        fed = min(rate(tuner.streams, now), hasher) * step
        now, count, busy = now + step, count + fed, busy + fed / hasher
        streams = tuner.note(now, int(count), busy)
        if streams != wanted[-1][1]:
            wanted.append((round(now, 2), streams))
    return wanted


def test_streams_are_doubled_while_each_brings_its_share() -> None:
    for name, rate, expected in (
        ("each brings its share", lambda streams: 25 * streams, [1, 2, 4, 8]),
        ("one fills the link", lambda streams: 80, [1, 2, 1]),
        ("three fill it", lambda streams: min(3, streams) * 25, [1, 2, 4, 8, 4]),
        ("growth of less than a fifth", lambda streams: 25 * (1 + 0.15 * (streams - 1)), [1, 2, 1]),
        ("faster than a connection of S3", lambda streams: 120 * streams, [1]),
        ("nearly as fast", lambda streams: min(80 * streams, 500), [1, 2, 4, 8]),
    ):
        played = play(lambda streams, _, rate=rate: rate(streams) * MIB, 20)  # type: ignore[misc]
        assert [streams for _, streams in played] == expected, name
        assert expected[-1] < 8 or played[-1][0] < 3
    busy = play(lambda streams, _: 90 * MIB * streams, 20, hasher=100 * MIB)
    assert [streams for _, streams in busy] == [1], "a busy core gets no further streams"


def test_more_streams_that_gained_nothing_are_tried_again_ever_more_seldom() -> None:
    tries = [at for at, streams in play(lambda streams, _: 80 * MIB, 2200) if streams == 2]
    pauses = [later - sooner for sooner, later in pairwise(tries)]
    assert 30 < pauses[0] < 35
    assert [round(pause / 30) for pause in pauses] == [1, 2, 4, 8, 16, 20, 20]


def test_refused_streams_are_taken_back() -> None:
    tuner = make_tuner(None, LARGE, 0.0)
    for step in range(1, 20):
        tuner.note(step * 0.1, step * MIB, 0.0)
        if tuner.streams == 2:
            tuner.refused(step * 0.1)
    assert tuner.streams == 1


def test_refusals_halve_the_streams_down_to_one() -> None:
    tuner, fixed = make_tuner(None, LARGE, 0.0), make_tuner(8, LARGE, 0.0)
    tuner.streams = 8
    found = []
    for now in (1.0, 2.0, 3.0, 4.0):
        tuner.refused(now)
        fixed.refused(now)
        found.append((tuner.streams, fixed.streams, fixed.note(now, 0, 0.0)))
    assert found == [(4, 4, 4), (2, 2, 2), (1, 1, 1), (1, 1, 1)]


def test_connections_suffice_for_each_object_and_the_streams_of_one() -> None:
    assert [connections(4, streams) for streams in (None, 1, 3)] == [12, 5, 7]


@pytest.mark.parametrize("streams", [2, 3, 4, 5, 8, 16, 27, MOST_USED])
@pytest.mark.parametrize("left", [LEAST, 10**8, 5 * 10**12])
def test_blocks_of_one_object_fit_the_memory(streams: int, left: int) -> None:
    made = layout(streams, left)
    assert made.memory <= MEMORY
    assert made.memory + streams * PER_CONNECTION <= WITH_CONNECTIONS
    assert made.block % 64 == made.buffer % 64 == 0, "a hash can be paused after each"
    assert made.block % made.buffer == 0, "no buffer is filled in part"
    assert made.buffer <= BUFFER
    assert made.memory >= streams * made.block, "every stream has its block"


def test_layouts_that_were_measured() -> None:
    for streams, left, block, buffers, memory in (
        (2, LEAST, 4 * MIB, 4, 8 * MIB),
        (4, LEAST, 2 * MIB, 2, 8 * MIB),
        (3, 10**7, 3_325_952, 4, 10_002_432),
        (8, 10**8, 4_177_920, 4, 36 * MIB),
        (3, 5 * 10**8, 9_289_728, 9, 27 * MIB),
        (5, 5 * 10**8 + 1, 7_168_000, 7, 37_744_640),
        (MOST_USED, 5 * 10**12, MIB, 1, 32 * MIB),
    ):
        made = layout(streams, left)
        assert (made.block, made.block // made.buffer, made.memory) == (block, buffers, memory)


def test_small_objects_and_single_streams_are_never_divided() -> None:
    for streams, left, expected in (
        *((None, LARGE - 1, 1), (4, LEAST - 1, 1), (4, LEAST, 4)),
        *((1, 10**12, 1), (64, 10**12, MOST_USED)),
    ):
        tuner = make_tuner(streams, left, 0.0)
        assert (tuner.streams, tuner.note(100.0, 10**12, 0.0), tuner.note(200.0, 10**13, 0.0)) == (expected,) * 3


def test_a_function_has_its_share_of_a_core() -> None:
    for memory, share in (("128", 128 / 1769), ("1769", 1.0), ("10240", 1.0), ("", 1.0), ("0", 1.0)):
        assert core_share({"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": memory}) == share
