"""Generated answers: our transport reads well formed ones as aiohttp does, and a streamed one as a whole one."""

from __future__ import annotations

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from auditor.s3.http.base import Response, TransportError
from tests.s3.http.conftest import get, opener
from tests.s3.http.generated import Sent, spoilt, well_formed
from tests.s3.http.raw_server import OK, Peer, serving

Outcome = Response | TransportError
GENERATED = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


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


@GENERATED
@given(well_formed())
@example(Sent(get(), OK, closes=False, cuts=tuple(range(len(OK)))))
async def test_well_formed_answers(sent: Sent) -> None:
    (ours, connections), (reference, _) = await outcomes("thin", sent, 2), await outcomes("aiohttp", sent, 2)
    assert ours == reference
    assert [type(one) for one in ours] == [Response, Response]
    assert connections == (2 if sent.closes else 1)


@GENERATED
@given(st.one_of(well_formed(), spoilt()))
async def test_streamed_answers_are_those_that_are_held_whole(sent: Sent) -> None:
    ours, whole = await outcomes("streams", sent, 2), await outcomes("thin", sent, 2)
    assert all(alike(one, other) for one, other in zip(ours[0], whole[0], strict=True))
    assert ours[1] == whole[1] or not all(isinstance(one, Response) for one in ours[0])


@GENERATED
@given(spoilt())
async def test_spoilt_answer_that_both_take_is_the_same(sent: Sent) -> None:
    """Ours refuses more, such as bare line feeds, folded lines and blanks before a colon."""
    ((ours,), _), ((reference,), _) = await outcomes("thin", sent), await outcomes("aiohttp", sent)
    assert ours == reference or not (isinstance(ours, Response) and isinstance(reference, Response))
