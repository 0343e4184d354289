"""The first call of a client is alone, whatever its result; all others run together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import ConnectTimeoutError, EndpointConnectionError, ReadTimeoutError

from auditor.aws.connection import Connection
from auditor.aws.session import FIRST_CALL_ATTEMPTS, client_of, full_patience, make_client, make_session

THREADS = 4
HERE = "http://127.0.0.1:9"


def s3_client() -> Any:
    return make_client("s3", Connection(bucket="bucket", endpoint_url=HERE), endpoint_url=HERE)


def sqs_client() -> Any:
    once = Config(retries={"total_max_attempts": 1})
    return client_of(make_session(None, "us-east-1"), "sqs", endpoint_url=HERE, config=once)


class _Empty:
    def stream(self) -> Iterator[bytes]:
        return iter(())


@pytest.mark.parametrize("made", [s3_client, sqs_client])
def test_calls_go_one_by_one_until_the_first_answer_and_then_together(made: Callable[[], Any]) -> None:
    ends, together = [threading.Event(), threading.Event()], threading.Barrier(THREADS - 2, timeout=20)
    under_way, sent = threading.Semaphore(0), list[int]()

    def answer(request: Any, **_: Any) -> AWSResponse:
        sent.append(number := len(sent))
        under_way.release()
        if number < len(ends):
            ends[number].wait(20)
        else:
            together.wait()
        if number == 0:
            raise ReadTimeoutError(endpoint_url=request.url)  # no answer: the next call is a first one too
        return AWSResponse(request.url, 200, {}, _Empty())

    client = made()
    client.meta.events.register_last("before-send", answer)
    call = client.head_bucket if client.meta.service_model.service_name == "s3" else client.purge_queue
    arguments = {"Bucket": "bucket"} if call.__name__ == "head_bucket" else {"QueueUrl": "http://127.0.0.1:9/1/q"}
    with ThreadPoolExecutor(THREADS) as pool:
        ended = [pool.submit(call, **arguments) for _ in range(THREADS)]
        for end in ends:
            assert under_way.acquire(timeout=20)
            assert not under_way.acquire(timeout=0.2)
            end.set()
        failed = [type(one.exception(20)) for one in ended]
    client.close()
    assert sorted(failed, key=str) == sorted([ReadTimeoutError, *[type(None)] * 3], key=str)
    assert len(sent) == THREADS


def refused_client(answered: int, error: Callable[..., Exception] = EndpointConnectionError) -> tuple[Any, list[str]]:
    """A client with six attempts, whose connections fail after this many answers."""
    sent: list[str] = []

    def answer(request: Any, **_: Any) -> AWSResponse:
        sent.append(request.url)
        if len(sent) > answered:
            raise error(endpoint_url=request.url)
        return AWSResponse(request.url, 200, {}, _Empty())

    connection = Connection(bucket="bucket", endpoint_url=HERE)
    client = make_client("s3", connection, endpoint_url=HERE, attempts=6)
    client.meta.events.register_last("before-send", answer)
    return client, sent


@pytest.fixture
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda seconds: None)


@pytest.mark.usefixtures("_no_pauses")
@pytest.mark.parametrize(
    ("error", "attempts"),
    [(EndpointConnectionError, FIRST_CALL_ATTEMPTS), (ConnectTimeoutError, 1), (ReadTimeoutError, 1)],
)
def test_first_call_without_a_connection_or_an_answer_is_given_up_soon(error: type[Exception], attempts: int) -> None:
    client, sent = refused_client(answered=0, error=error)
    with pytest.raises(error):
        client.head_bucket(Bucket="bucket")
    assert len(sent) == attempts


@pytest.mark.usefixtures("_no_pauses")
@pytest.mark.parametrize("error", [EndpointConnectionError, ReadTimeoutError])
def test_later_call_without_a_connection_or_an_answer_has_all_attempts(error: type[Exception]) -> None:
    client, sent = refused_client(answered=1, error=error)
    client.head_bucket(Bucket="bucket")
    with pytest.raises(error):
        client.head_bucket(Bucket="bucket")
    assert len(sent) == 1 + 6


@pytest.mark.usefixtures("_no_pauses")
def test_call_that_passed_by_the_gate_gives_all_attempts() -> None:
    client, sent = refused_client(answered=0)
    full_patience(client)
    with pytest.raises(EndpointConnectionError):
        client.head_bucket(Bucket="bucket")
    assert len(sent) == 6
