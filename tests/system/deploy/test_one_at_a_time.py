"""The local AWS answers the calls to DynamoDB one after the other, and those to other services at once."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING

from auditor.cli.demo.moto_dynamodb import one_at_a_time

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

CALLS = 4
UPDATE = "DynamoDB_20120810.UpdateItem"


def test_calls_to_dynamodb_never_overlap() -> None:
    inside, most = 0, 0

    def app(_environ: WSGIEnvironment, _start: StartResponse) -> Iterable[bytes]:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        time.sleep(0.001)
        inside -= 1
        return [b"done"]

    guarded = one_at_a_time(app)
    with ThreadPoolExecutor(CALLS) as threads:
        asked = [threads.submit(guarded, {"HTTP_X_AMZ_TARGET": UPDATE}, lambda *_: print) for _ in range(5 * CALLS)]
        assert [list(answer.result()) for answer in asked] == [[b"done"]] * (5 * CALLS)
    assert most == 1


def test_calls_to_other_services_may_overlap() -> None:
    together = Barrier(CALLS, timeout=30)

    def app(_environ: WSGIEnvironment, _start: StartResponse) -> Iterable[bytes]:
        together.wait()  # breaks unless all calls come
        return [b"done"]

    guarded = one_at_a_time(app)
    with ThreadPoolExecutor(CALLS) as threads:
        target = {"HTTP_X_AMZ_TARGET": "AmazonSQS.SendMessage"}
        asked = [threads.submit(guarded, target, lambda *_: print) for _ in range(CALLS)]
        assert [list(answer.result()) for answer in asked] == [[b"done"]] * CALLS
