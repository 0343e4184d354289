"""Answers of every form: whole, cut at every byte, followed by other bytes, broken off and broken."""

from __future__ import annotations

import asyncio
import itertools
from typing import Final

import pytest

from auditor.s3.http.base import (
    LARGEST_BODY,
    LARGEST_HEAD,
    MOST_HEADERS,
    BrokenAnswerError,
    ConnectionLostError,
    Request,
    Response,
    TransportTimeoutError,
)
from tests.s3.http.conftest import Opening, get, head, opener, outcome
from tests.s3.http.raw_server import OK, Peer, by_name, serving

OK_LINE: Final = b"HTTP/1.1 200 OK\r\n"
CHUNKED: Final = OK_LINE + b"Transfer-Encoding: chunked\r\n\r\n"
NONE: Final = {b"content-length": b"0"}

ANSWERS: Final = {
    "length": (
        b"HTTP/1.1 200 Fine so\r\nX-A:  1 \t\r\nX-B:\r\nx-a: 2\r\nCONTENT-LENGTH: 5\r\n\r\nbody\n",
        Response(200, "Fine so", {b"x-a": b"1, 2", b"x-b": b"", b"content-length": b"5"}, b"body\n"),
    ),
    "empty": (OK_LINE + b"Content-Length: 0\r\n\r\n", Response(200, "OK", NONE, b"")),
    "chunked": (
        CHUNKED + b'4;n=v;q="x"\r\nbody\r\n01\r\n\n\r\n000\r\nETag: trailing\r\nX-End: 1\r\n\r\n',
        Response(200, "OK", {b"transfer-encoding": b"chunked"}, b"body\n"),
    ),
    "interim": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nX-A: early\r\n\r\n"
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\n!",
        Response(404, "Not Found", {b"content-length": b"1"}, b"!"),
    ),
    "204": (b"HTTP/1.1 204 No Content\r\n\r\n", Response(204, "No Content", {}, b"")),
    "304": (
        b'HTTP/1.1 304 Not Modified\r\nETag: "e"\r\nContent-Length: 7\r\n\r\n',
        Response(304, "Not Modified", {b"etag": b'"e"', b"content-length": b"7"}, b""),
    ),
    "no-reason": (b"HTTP/1.1 500\r\nContent-Length: 0\r\n\r\n", Response(500, "", NONE, b"")),
    "http-1.0": (
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
        Response(200, "OK", {b"connection": b"keep-alive", b"content-length": b"2"}, b"ok"),
    ),
    "redirect": (
        b"HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
        Response(307, "Moved", {b"location": b"http://127.0.0.1:1/", **NONE}, b""),
    ),
    "compressed": (
        OK_LINE + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nbody",
        Response(200, "OK", {b"content-encoding": b"gzip", b"content-length": b"4"}, b"body"),
    ),
    "head-length": (
        OK_LINE + b"Content-Length: 5497558138880\r\n\r\n",
        Response(200, "OK", {b"content-length": b"5497558138880"}, b""),
    ),
    "head-chunked": (
        b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n",
        Response(404, "Not Found", {b"transfer-encoding": b"chunked"}, b""),
    ),
    "head-interim": (
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK_LINE + b"Content-Length: 0\r\n\r\n",
        Response(200, "OK", NONE, b""),
    ),
}
"""Bytes and their answer, by name; those to a HEAD begin with "head". Each leaves its connection open."""
WITHOUT_LENGTH: Final = {"head-neither": (OK_LINE + b"\r\n", Response(200, "OK", {}, b""))}
"""The same, but aiohttp gives up the connection."""


def asking(name: str) -> Request:
    return head(f"/{name}") if name.startswith("head") else get(f"/{name}")


async def test_every_answer_in_any_order_on_one_connection(opening: Opening, name: str) -> None:
    cases = ANSWERS if name == "aiohttp" else {**ANSWERS, **WITHOUT_LENGTH}
    pieces = {case: (raw,) for case, (raw, _) in cases.items()}
    async with serving(by_name(pieces)) as server, opening(server, connections=1) as transport:
        order = list(itertools.chain.from_iterable(itertools.product(cases, repeat=2)))
        wrong = [case for case in order if await transport.send(asking(case)) != cases[case][1]]
        assert not wrong, wrong
        assert server.accepted == 1


async def test_answers_cut_at_every_byte_are_the_same(own: Opening) -> None:
    cases = {**ANSWERS, **WITHOUT_LENGTH}
    cut = {
        f"{name} at {at}".replace(" ", "/"): (raw[:at], raw[at:])
        for name, (raw, _) in cases.items()
        for at in range(1, len(raw))
    }
    drops = {f"{name}/drops": tuple(raw[at : at + 1] for at in range(len(raw))) for name, (raw, _) in cases.items()}
    names = list(cut | drops)

    async def wrong(part: int) -> list[str]:
        async with own(server, connections=1) as transport:
            answers = {name: await transport.send(asking(name)) for name in names[part::5]}
        return [name for name, answer in answers.items() if answer != cases[name.partition("/")[0]][1]]

    async with serving(by_name(cut | drops)) as server:
        assert await asyncio.gather(*map(wrong, range(5))) == [[]] * 5
        assert server.accepted == 5


async def test_bytes_behind_an_answer_end_its_connection_and_belong_to_no_other(own: Opening) -> None:
    behind = [b"H", OK_LINE, b"\0", b"0\r\n\r\n", b"more", OK, b"HTTP/1.1 500 No\r\nX-Other: 1\r\n\r\n"]
    cases = {**ANSWERS, **WITHOUT_LENGTH}
    pieces = {
        f"{name}/{number}/{at}": (*filter(None, (raw[:at], raw[at:] + excess)),)
        for name, (raw, _) in cases.items()
        for number, excess in enumerate(behind)
        for at in {0, len(raw) // 2, raw.rindex(b"\r\n\r\n") + 4, len(raw) - 1} - {len(raw)}
    }
    async with serving(by_name(pieces)) as server, own(server, connections=1) as transport:
        wrong = []
        for number, name in enumerate(pieces, 1):
            answer = await outcome(transport.send(asking(name)))
            if answer != cases[name.partition("/")[0]][1] or server.accepted != number:
                wrong.append(name)
        assert not wrong, wrong


CLOSING: Final = {
    "close": OK_LINE + b"Connection: Close\r\nContent-Length: 2\r\n\r\nok",
    "among-others": OK_LINE + b"Connection: x, close\r\nContent-Length: 2\r\n\r\nok",
    "http-1.0": b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "another-answer": OK + OK_LINE + b"Content-Length: 3\r\n\r\nbad",
    "head-close": OK_LINE + b"Connection: close\r\nContent-Length: 9\r\n\r\n",
    "head-close-alone": OK_LINE + b"Connection: x,close , y\r\n\r\n",
    "head-http-1.0": b"HTTP/1.0 200 OK\r\n\r\n",
}


async def test_connection_is_not_used_again(opening: Opening) -> None:
    script = by_name({name: (raw,) for name, raw in CLOSING.items()})
    async with serving(script) as server, opening(server) as transport:
        wrong = []
        for number, name in enumerate((name for name in CLOSING for _ in range(2)), 1):
            answer = await transport.send(asking(name))
            if answer.body != (b"" if name.startswith("head") else b"ok") or server.accepted != number:
                wrong.append(name)
        assert not wrong, wrong


async def test_body_without_length_ends_with_the_connection(opening: Opening) -> None:
    pieces = {"x": (b"HTTP/1.1 200 OK\r\n\r\n", b"to ", b"the end")}
    async with serving(by_name(pieces, closes=True)) as server, opening(server) as transport:
        for number in (1, 2):
            assert (await transport.send(get("/x"))).body == b"to the end"
            assert server.accepted == number


BROKEN_OFF: Final = {
    "nothing": b"",
    "status-line": b"HTTP/1.1 2",
    "headers": b"HTTP/1.1 200 OK\r\nContent-",
    "interim": b"HTTP/1.1 100 Continue\r\n\r\n",
    "before-body": OK_LINE + b"Content-Length: 2\r\n\r\n",
    "body": OK_LINE + b"Content-Length: 2\r\n\r\no",
    "chunks": CHUNKED + b"2\r\nok\r\n",
    "last-chunk": CHUNKED + b"2\r\nok\r\n0\r\n",
}


@pytest.mark.parametrize(
    ("ending", "error"),
    [("close", ConnectionLostError), ("reset", ConnectionLostError), ("silence", TransportTimeoutError)],
)
async def test_answer_that_does_not_come_whole(opening: Opening, ending: str, error: type[Exception]) -> None:
    async def script(peer: Peer) -> None:
        await peer.send(*filter(None, [BROKEN_OFF[await peer.name()]]))
        if ending == "reset":
            await peer.reset()
        elif ending == "silence":
            await peer.gone()

    seconds = 0.1 if ending == "silence" else 10.0
    async with serving(script) as server, opening(server, read_timeout=seconds, head_timeout=seconds) as transport:
        found = {name: await outcome(transport.send(get(f"/{name}"))) for name in BROKEN_OFF}
        assert found == dict.fromkeys(BROKEN_OFF, error)
        assert server.accepted == len(server.requests) == len(BROKEN_OFF)
        await server.until(lambda it: it.open == 0)


BROKEN: Final = {
    "tls": b"\x16\x03\x01\x00\x05hello, this is TLS\r\n\r\n",
    "ssh": b"SSH-2.0-OpenSSH\r\n\r\n",
    "version-2": b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    "version-0.9": b"HTTP/0.9 200 OK\r\nContent-Length: 0\r\n\r\n",
    "version-3": b"HTTP/3.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    "status-of-two-digits": b"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n",
    "status-of-four-digits": b"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n",
    "negative-status": b"HTTP/1.1 -20 OK\r\nContent-Length: 0\r\n\r\n",
    "status-0": b"HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n",
    "status-999": b"HTTP/1.1 999 OK\r\nContent-Length: 0\r\n\r\n",
    "101": b"HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
    "101-to-nothing": b"HTTP/1.1 101 S\r\n\r\n",
    "negative-length": OK_LINE + b"Content-Length: -1\r\n\r\n",
    "length-with-plus": OK_LINE + b"Content-Length: +1\r\n\r\nx",
    "list-of-lengths": OK_LINE + b"Content-Length: 1, 1\r\n\r\nx",
    "length-past-64-bits": OK_LINE + b"Content-Length: 99999999999999999999\r\n\r\n",
    "two-lengths": OK_LINE + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    "same-length-twice": OK_LINE + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\nx",
    "chunk-size": CHUNKED + b"xyz\r\n",
    "chunk-overrun": CHUNKED + b"1\r\nabc\r\n0\r\n\r\n",
    "gzip-alone": OK_LINE + b"Transfer-Encoding: gzip\r\n\r\nxyz",
    "gzip-chunked": OK_LINE + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "header-without-colon": OK_LINE + b"no colon\r\n\r\n",
    "header-without-name": OK_LINE + b": x\r\n\r\n",
    "nul-in-header": OK_LINE + b"X: a\0b\r\nContent-Length: 0\r\n\r\n",
    "too-many-headers": OK_LINE + b"X: 1\r\n" * (MOST_HEADERS + 1) + b"\r\n",
    "header-too-large": OK_LINE + b"X: " + b"x" * LARGEST_HEAD + b"\r\n\r\n",
    "header-without-end": OK_LINE + b"X: " + b"x" * 2 * LARGEST_HEAD,
}
BROKEN_FOR_OURS: Final = {
    "rtsp": b"RTSP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    "version-2-after-interim": b"HTTP/1.1 100 C\r\n\r\nHTTP/2.0 200 OK\r\nX: y\r\n\r\n",
    "blank-line-first": b"\r\n" + OK,
    "line-feeds": b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
    "carriage-return-in-reason": b"HTTP/1.1 200 O\rK\r\nContent-Length: 0\r\n\r\n",
    "folded-line": OK_LINE + b"X: a\r\n b\r\nContent-Length: 0\r\n\r\n",
    "blank-before-colon": OK_LINE + b"X : a\r\nContent-Length: 0\r\n\r\n",
    "both-lengths": OK_LINE + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
    "both-lengths-again": OK_LINE + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
    "chunked-gzip": OK_LINE + b"Transfer-Encoding: chunked, gzip\r\n\r\n",
    "negative-chunk": CHUNKED + b"-1\r\n",
    "chunk-size-past-64-bits": CHUNKED + b"f" * 17 + b"\r\n",
    "status-099": b"HTTP/1.1 099 Low\r\n\r\n",
    "status-600": b"HTTP/1.1 600 High\r\n\r\n",
    "interim-without-end": b"HTTP/1.1 100 Continue\r\n\r\n" * 17 + OK,
    "reason-without-end": b"HTTP/1.1 200 " + b"O" * (LARGEST_HEAD + 1),
    "reason-too-large": b"HTTP/1.1 200 " + b"O" * LARGEST_HEAD + b"\r\nContent-Length: 0\r\n\r\n",
    "name-without-end": OK_LINE + b"X" * LARGEST_HEAD,
    "one-header-again-and-again": OK_LINE + b"X: 1\r\n" * 100_000,
    "headers-of-many-names": OK_LINE + b"".join(b"X%d: 1\r\n" % n for n in range(MOST_HEADERS + 1)) + b"\r\n",
    "chunk-extension": CHUNKED + b"1;" + b"x" * LARGEST_HEAD,
    "trailer": CHUNKED + b"0\r\nX: " + b"x" * LARGEST_HEAD,
}


async def test_answer_is_broken(opening: Opening, name: str) -> None:
    """aiohttp takes some of those that our own parser refuses; RFC 9112 lets a client refuse them."""
    cases = BROKEN if name == "aiohttp" else BROKEN | BROKEN_FOR_OURS

    async def script(peer: Peer) -> None:
        await peer.send(cases[await peer.name()])
        await peer.gone()

    found = {}
    async with serving(script) as server:
        for case in cases:
            async with opening(server, read_timeout=5, idle_seconds=0.1) as transport:
                found[case] = await outcome(transport.send(get(f"/{case}")))
                await server.until(lambda it: it.open == 0)
    assert found == dict.fromkeys(cases, BrokenAnswerError)


@pytest.mark.parametrize(("kind", "limit"), [("thin", 4 * LARGEST_HEAD), ("aiohttp", LARGEST_BODY)])
async def test_limits_of_size(kind: str, limit: int) -> None:
    """A body as large as may be comes in one piece with its head, which makes its head no larger."""
    lines = b"".join(b"X%d: 1\r\n" % number for number in range(MOST_HEADERS - 1))
    fitting = {
        "headers": (OK_LINE + lines + b"Content-Length: 0\r\n\r\n",),
        "body": (OK_LINE + b"Content-Length: %d\r\n\r\n" % limit + bytes(limit),),
    }
    chunk = b"%x\r\n" % (limit // 4) + bytes(limit // 4) + b"\r\n"
    large = {
        "said": (OK_LINE + b"Content-Length: %d\r\n\r\n" % (limit + 1),),
        "all-at-once": (CHUNKED + b"%x\r\n" % (limit + 1) + bytes(limit + 1),),
        "grown": (CHUNKED, *[chunk] * 5),
    }
    given = {"read_timeout": 5} | ({"largest_body": limit} if kind == "thin" else {})
    async with serving(by_name(fitting | large)) as server, opener(kind)(server, **given) as transport:
        assert len((await transport.send(get("/body"))).body) == limit
        assert len((await transport.send(get("/headers"))).headers) == MOST_HEADERS
        found = {case: await outcome(transport.send(get(f"/{case}"))) for case in large}
        assert found == dict.fromkeys(large, BrokenAnswerError)
