"""Our transport and aiohttp's give equal answers, or the same class of failure, or a row of DIFFERENCES."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from auditor.s3.http.base import LARGEST_HEAD, BrokenAnswerError, ConnectionLostError, Response, TransportError
from auditor.s3.http.response import MOST_INTERIM, ResponseReader
from tests.s3.http.conftest import get, head, opener
from tests.s3.http.generated import Sent, spoilt, well_formed
from tests.s3.http.raw_server import OK, Peer, serving

Outcome = Response | TransportError
GENERATED = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
ANSWERED, BROKEN, LOST = Response, BrokenAnswerError, ConnectionLostError


def has(pattern: bytes) -> Callable[[Sent], bool]:
    return lambda sent: re.search(pattern, sent.raw) is not None


def never(_: Sent) -> bool:
    """No generated answer is like this."""
    return False


@dataclass(frozen=True)
class Difference:
    """What the two make of bytes that they do not take alike, and why ours is right.

    covers: the generated answers of this row. connections: that two requests took, ours first.
    """

    why: str
    raw: bytes
    thin: type[Outcome]
    reference: tuple[type[Outcome], ...]
    covers: Callable[[Sent], bool] = never
    head_only: bool = False
    connections: tuple[int, int] | None = None


DIFFERENCES = {
    "line-ends-before": Difference(
        "aiohttp skips line ends before an answer; S3 sends none, so they are the rest of something else",
        b"\r\n" + OK,
        BROKEN,
        (ANSWERED, LOST),
        has(rb"\A[\r\n]"),
    ),
    "folded-line": Difference(
        "aiohttp joins a line that begins with a blank to the one before; RFC 9112 lets a client refuse it",
        b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n",
        BROKEN,
        (ANSWERED, LOST),
        has(rb"\n[ \t]"),
    ),
    "bare-line-end": Difference(
        "aiohttp takes a line feed alone, or a carriage return, for the end of a line; proxies may not",
        b"HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n",
        BROKEN,
        (ANSWERED, LOST),
        has(rb"(?<!\r)\n|\r(?!\n)"),
    ),
    "control-character": Difference(
        "aiohttp takes control characters in a value; RFC 9110 forbids them",
        b"HTTP/1.1 200 OK\r\nX: a\x7f\r\nContent-Length: 0\r\n\r\n",
        BROKEN,
        (ANSWERED, LOST),
        has(rb"[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]"),
    ),
    "blank-behind-a-name": Difference(
        "aiohttp takes a blank behind the names that frame a body; RFC 9112 forbids blanks before the colon",
        b"HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n",
        BROKEN,
        (ANSWERED, LOST),
        has(rb"\n(?i:Connection|Content-Length|Transfer-Encoding)[ \t]"),
    ),
    "junk-behind": Difference(
        "aiohttp drops a whole answer when what follows in the same segment is not HTTP; ours drops the connection",
        OK + b"junk",
        ANSWERED,
        (BROKEN,),
    ),
    "begun-behind": Difference(
        "aiohttp keeps a connection on which the beginning of another answer followed the last one",
        OK + b"HTTP",
        ANSWERED,
        (ANSWERED,),
        connections=(2, 1),
    ),
    "head-without-length": Difference(
        "aiohttp gives up a connection after the answer to a HEAD that has no length; it has no body either",
        b"HTTP/1.1 200 OK\r\n\r\n",
        ANSWERED,
        (ANSWERED,),
        head_only=True,
        connections=(1, 2),
    ),
    "interim-without-end": Difference(
        "aiohttp has no limit on interim answers",
        b"HTTP/1.1 100 Continue\r\n\r\n" * (MOST_INTERIM + 1) + OK,
        BROKEN,
        (ANSWERED,),
    ),
    "many-long-headers": Difference(
        "aiohttp limits each line of a head, and how many they are; ours limits their sum",
        b"HTTP/1.1 200 OK\r\n"
        + b"X: %s\r\n" % (b"x" * 999) * (LARGEST_HEAD // 1000 + 1)
        + b"Content-Length: 0\r\n\r\n",
        BROKEN,
        (ANSWERED,),
    ),
}


async def outcomes(name: str, sent: Sent, times: int = 1) -> tuple[list[Outcome], int]:
    """The transport's results for so many of these answers, and the number of its connections."""

    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(*sent.pieces)
            if sent.closes:
                return

    got: list[Outcome] = []
    async with serving(script) as server, opener(name)(server, read_timeout=1.0) as transport:
        for _ in range(times):
            try:
                got.append(await transport.send(sent.request))
            except TransportError as error:
                got.append(error)
        return got, server.accepted


def alike(ours: Outcome, reference: Outcome) -> bool:
    """The same answer, or the same class of failure."""
    return ours == reference if isinstance(ours, Response) else type(ours) is type(reference)


def explained(sent: Sent, ours: Outcome, reference: Outcome) -> bool:
    """Whether a row of the table expects these two results for these bytes."""
    return any(
        row.covers(sent) and type(ours) is row.thin and type(reference) in row.reference for row in DIFFERENCES.values()
    )


def without_what_follows(sent: Sent) -> Sent:
    """The bytes as far as our own reader needs them for its answer."""
    reader = ResponseReader()
    reader.expect(head_only=sent.request.method == "HEAD")
    for end in range(1, len(sent.raw) + 1):
        if reader.feed(sent.raw[end - 1 : end]) is not None:
            return Sent(sent.request, sent.raw[:end], closes=True)
    return sent


@GENERATED
@given(well_formed())
@example(Sent(get(), OK, closes=False, cuts=tuple(range(len(OK)))))
async def test_well_formed_answers(sent: Sent) -> None:
    (ours, connections), (reference, _) = await outcomes("thin", sent, 2), await outcomes("aiohttp", sent, 2)
    assert ours == reference
    assert [type(one) for one in ours] == [Response, Response]
    assert connections == (2 if sent.closes else 1)


@GENERATED
@given(spoilt())
@example(Sent(get(), OK + b"junk", closes=True))
@example(Sent(get(), b"HTTP/1.1 204 OK\r\nConnection ", closes=True))
async def test_spoilt_answers(sent: Sent) -> None:
    ((ours,), _), ((reference,), _) = await outcomes("thin", sent), await outcomes("aiohttp", sent)
    if isinstance(ours, Response) and isinstance(reference, BrokenAnswerError):
        ((reference,), _) = await outcomes("aiohttp", without_what_follows(sent))
    assert alike(ours, reference) or explained(sent, ours, reference)


@GENERATED
@given(st.one_of(well_formed(), spoilt()))
async def test_streamed_answers_are_those_that_are_held_whole(sent: Sent) -> None:
    ours, whole = await outcomes("streams", sent, 2), await outcomes("thin", sent, 2)
    assert all(alike(one, other) for one, other in zip(ours[0], whole[0], strict=True))
    assert ours[1] == whole[1] or not all(isinstance(one, Response) for one in ours[0])


@pytest.mark.parametrize("row", DIFFERENCES.values(), ids=DIFFERENCES)
async def test_every_difference_is_there(row: Difference) -> None:
    sent = Sent(head() if row.head_only else get(), row.raw, closes=False)
    ours, reference = await outcomes("thin", sent, 2), await outcomes("aiohttp", sent, 2)
    assert [type(one) for one in ours[0]] == [row.thin] * 2
    assert all(type(one) in row.reference for one in reference[0])
    if row.connections is None:
        assert row.thin not in row.reference
    else:
        assert (ours[1], reference[1]) == row.connections
