"""Answers made by hypothesis: well formed ones, and the same with something wrong."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from hypothesis import strategies as st

from auditor.s3.http.base import Request
from tests.s3.http.conftest import get, head

NAMES = ["x-amz-request-id", "ETag", "X-Amz-Meta-A", "x-amz-meta-a", "Date", "Content-Type", "X!#$%&'*+-.^_`|~1"]
VALUES = st.text(alphabet="aZ09 \t\"'(),/:;<=>?@[]{}\x80\xe9\xff", max_size=12).map(str.strip)
SPACE = st.sampled_from(["", " ", "  ", "\t", " \t "])
REASONS = st.text(alphabet="abc XYZ-\t\x80\xe9\xff", max_size=10)
NASTY = [
    *(bytes([byte]) for byte in b"\r\n\0\x7f\x80 \t:,;-+0f"),
    *(b"\r\n", b"\r\n\r\n", b"0\r\n\r\n", b"Upgrade: h2c\r\n", b"Transfer-Encoding: identity\r\n"),
    *(b"HTTP/1.1 200 OK\r\n", b"Content-Length: 1\r\n", b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n"),
    b"HTTP/1.1 100 Continue\r\n\r\n",
]


@dataclass(frozen=True)
class Sent:
    """An answer's bytes, the request they answer, and whether the server ends the connection after them."""

    request: Request
    raw: bytes
    closes: bool
    cuts: tuple[int, ...] = ()

    @property
    def pieces(self) -> list[bytes]:
        """The bytes, cut."""
        edges = [0, *sorted({cut % len(self.raw) for cut in self.cuts} - {0}), len(self.raw)]
        return [self.raw[start:stop] for start, stop in itertools.pairwise(edges)]


@st.composite
def header_lines(draw: st.DrawFn) -> str:
    names = draw(st.lists(st.sampled_from(NAMES), max_size=5))
    return "".join(f"{name}:{draw(SPACE)}{draw(VALUES)}{draw(SPACE)}\r\n" for name in names)


@st.composite
def chunks(draw: st.DrawFn, body: bytes) -> bytes:
    """The body in chunks, with extensions and trailers."""
    written, rest = b"", body
    while rest:
        size = draw(st.integers(1, len(rest)))
        number = f"{size:x}" if draw(st.booleans()) else f"00{size:X}"
        written += number.encode() + draw(st.sampled_from([b"", b";a", b";a=b", b';a="b c";d'])) + b"\r\n"
        written, rest = written + rest[:size] + b"\r\n", rest[size:]
    trailer = draw(st.sampled_from([b"", b"X-End: 1\r\n", b"ETag: late\r\nX-End:\r\n"]))
    return written + b"0\r\n" + trailer + b"\r\n"


@st.composite
def well_formed(draw: st.DrawFn) -> Sent:
    """An answer as a server may send it."""
    request = draw(st.sampled_from([get(), head()]))
    status = draw(st.sampled_from([200, 200, 206, 204, 304, 307, 403, 404, 412, 500, 503, 599]))
    version = draw(st.sampled_from(["1.1", "1.1", "1.1", "1.0"]))
    framing = draw(st.sampled_from(["length", "length", "chunked", "close"]))
    said = draw(st.sampled_from(["", "", "Connection: close\r\n", "connection: Keep-Alive\r\n"]))
    body = b"" if status in (204, 304) else draw(st.binary(max_size=40))
    lines = f"HTTP/{version} {status} {draw(REASONS)}\r\n" + draw(header_lines()) + said
    if version == "1.0" and framing == "chunked":
        framing = "length"
    if framing == "length":
        lines += f"Content-Length: {len(body)}\r\n"
    elif framing == "chunked":
        lines, body = lines + "Transfer-Encoding: chunked\r\n", draw(chunks(body))
    lines += draw(header_lines()) + "\r\n"
    bodiless = request.method == "HEAD" or status in (204, 304)
    interim = draw(
        st.lists(st.sampled_from(["100 Continue\r\n\r\n", "103 Early\r\nX-Amz-Meta-A: early\r\n\r\n"]), max_size=2)
    )
    raw = "".join(f"HTTP/1.1 {one}" for one in interim).encode() + lines.encode("latin-1") + (b"" if bodiless else body)
    until_close = framing == "close" and not bodiless
    # An HTTP/1.0 server that says to keep a connection has to say where its answer ends, in the answer to a HEAD too.
    endless = framing == "close" and status not in (204, 304)
    kept = "Keep" in said and not endless if version == "1.0" else "close" not in said
    cuts = draw(st.lists(st.integers(0, 4000), max_size=4))
    return Sent(request, raw, until_close or not kept, tuple(cuts))


@st.composite
def spoilt(draw: st.DrawFn) -> Sent:
    """The same with something deleted, inserted, doubled or cut off."""
    sent = draw(well_formed())
    raw = sent.raw
    for _ in range(draw(st.integers(1, 2))):
        start = draw(st.integers(0, len(raw)))
        stop = min(len(raw), start + draw(st.integers(1, 6)))
        nasty = draw(st.sampled_from(NASTY))
        before, cut, behind = raw[:start], raw[stop:], raw[start:]
        raw = draw(
            st.sampled_from([before + cut, before + nasty + behind, before + nasty + cut, raw[:stop] + behind, before])
        )
    return Sent(sent.request, raw or b"H", closes=True)
