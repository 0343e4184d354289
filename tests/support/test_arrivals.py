"""The requests of a second are counted by when they arrived, and a server that was held up makes none of it certain."""

from __future__ import annotations

import urllib.request

import pytest

from tests.support.servers.arrivals import Arrival, StampingStub, most_in_a_second


@pytest.mark.parametrize(
    ("arrivals", "most"),
    [
        ([], 0),
        ([(0.0, 0.0)], 1),
        ([(number / 8, number / 8) for number in range(100)], 8),
        ([(0.0, 0.0), (0.999, 0.999), (1.0, 1.0)], 2),
        ([(5.0, 5.0)] * 7 + [(6.5, 6.5)], 7),
        ([(0.0, 1.5)] * 9, 0),  # held up: they may all be of different seconds
        ([(0.0, 0.5)] * 3 + [(0.5, 0.9), (0.5, 1.2)], 4),
    ],
)
def test_requests_of_one_second(arrivals: list[Arrival], most: int) -> None:
    assert most_in_a_second(arrivals) == most


def test_each_request_is_stamped() -> None:
    server = StampingStub()
    with server:
        server.world.add("many")
        for number in range(5):
            server.put("many", f"{number}")
            urllib.request.urlopen(f"{server.url}/many/{number}?acl").close()
    assert len(server.arrivals) == 5
    assert all(earliest <= latest for earliest, latest in server.arrivals)
    assert most_in_a_second(server.arrivals) <= 5
