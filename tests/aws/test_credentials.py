"""Credentials are held and renewed ahead of time: with sources that are slow, fail, hang, or give useless keys."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.credentials import Credentials as SdkCredentials
from botocore.credentials import RefreshableCredentials
from botocore.exceptions import CredentialRetrievalError

from auditor.aws.credentials import CredentialSource
from auditor.aws.sigv4 import Credentials
from auditor.errors import CredentialsError
from tests.support.loop_blocking import free_loop as free_loop

HOUR = 3600.0
START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Clock:
    """Seconds since START, moved by hand; the same for us and for the SDK's own credentials."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)


class Renewing:
    """Sources of the SDK's own kind, numbered. Each gives keys that last an hour; `held` makes it wait.

    fail: an error to raise instead. loads, renewals: numbers of calls.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.held: threading.Event | None = None
        self.fail: Exception | None = None
        self.loads = 0
        self.renewals = 0
        self.lasts = HOUR
        self.token = "token"

    def load(self) -> RefreshableCredentials:
        self.loads += 1
        made = self.renew(first=True)
        return RefreshableCredentials(
            made["access_key"],
            made["secret_key"],
            made["token"],
            self.clock.now() + timedelta(seconds=self.lasts),
            self.renew,
            "a fake",
            time_fetcher=self.clock.now,
        )

    def renew(self, *, first: bool = False) -> dict[str, str]:
        held, number = self.held, f"{self.loads}.{self.renewals if first else self.renewals + 1}"
        if not first:
            self.renewals += 1
        if held is not None:
            assert held.wait(30)
        if self.fail is not None:
            raise self.fail
        expiry = self.clock.now() + timedelta(seconds=self.lasts)
        return {"access_key": number, "secret_key": "s", "token": self.token, "expiry_time": expiry.isoformat()}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sources(clock: Clock) -> Iterator[Renewing]:
    made = Renewing(clock)
    yield made
    if made.held is not None:
        made.held.set()


@pytest.fixture
def source(clock: Clock, sources: Renewing) -> CredentialSource:
    return CredentialSource(load=sources.load, clock=clock)


async def until(happened: Callable[[], Any]) -> None:
    async with asyncio.timeout(30):
        while not happened():  # noqa: ASYNC110 - threads and the code under test set no event of ours
            await asyncio.sleep(0.001)


async def threads_done() -> None:
    await until(lambda: not any(thread.name == "auditor-credentials" for thread in threading.enumerate()))
    await asyncio.sleep(0)


async def key(source: CredentialSource) -> str:
    return (await source.current()).access_key


def at_once(source: CredentialSource) -> Credentials:
    """The result of current() without any waiting."""
    with pytest.raises(StopIteration) as answer:
        source.current().send(None)
    assert isinstance(answer.value.value, Credentials)
    return answer.value.value


async def test_cancelled_while_waiting_for_the_first(source: CredentialSource, sources: Renewing) -> None:
    sources.held = threading.Event()
    waiters = [asyncio.create_task(key(source)) for _ in range(3)]
    await until(lambda: sources.loads)
    waiters[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiters[0]
    sources.held.set()
    assert await asyncio.gather(*waiters[1:]) == ["1.0", "1.0"]
    assert sources.loads == 1


async def test_renewed_ahead_while_the_old_ones_sign(clock: Clock, source: CredentialSource, sources: Renewing) -> None:
    await source.current()
    clock.seconds = HOUR - 14 * 60
    sources.held = threading.Event()
    assert [at_once(source).access_key for _ in range(3)] == ["1.0"] * 3
    await until(lambda: sources.renewals)
    assert at_once(source).access_key == "1.0"
    sources.held.set()
    await threads_done()
    assert at_once(source).access_key == "1.1"
    assert (sources.loads, sources.renewals) == (1, 1)


async def test_keys_that_never_expire_are_read_once(clock: Clock) -> None:
    loads: list[int] = []

    def load() -> SdkCredentials:
        loads.append(1)
        return SdkCredentials("key", "secret")

    source = CredentialSource(load=load, clock=clock)
    assert await source.current() == Credentials("key", "secret", None)
    clock.seconds = 100 * HOUR
    assert at_once(source) == Credentials("key", "secret", None)
    await threads_done()
    assert loads == [1]


async def test_one_failure_while_the_old_ones_are_valid(
    clock: Clock, source: CredentialSource, sources: Renewing, caplog: pytest.LogCaptureFixture
) -> None:
    await source.current()
    clock.seconds = HOUR - 300
    sources.fail = CredentialRetrievalError(provider="a fake", error_msg="hush")
    for _ in range(3):
        assert at_once(source).access_key == "1.0"
        await threads_done()
        clock.seconds += 5
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("auditor")]
    assert len(ours) == 1
    assert "until they expire" in ours[0]
    assert "hush" not in ours[0]
    sources.fail = None
    at_once(source)
    await threads_done()
    assert at_once(source).access_key.startswith("1.")
    assert at_once(source).access_key != "1.0"


async def test_failures_until_the_old_ones_have_expired(
    clock: Clock, source: CredentialSource, sources: Renewing
) -> None:
    await source.current()
    sources.fail = OSError("hush")
    clock.seconds = HOUR - 11
    assert at_once(source).access_key == "1.0"
    await threads_done()
    clock.seconds = HOUR - 6
    with pytest.raises(CredentialsError, match=r"OSError") as caught:
        await source.current()
    assert caught.value.__cause__ is sources.fail
    assert "hush" not in str(caught.value)
    sources.fail = None
    assert await key(source) != "1.0"


async def test_a_renewal_that_hangs(clock: Clock, sources: Renewing) -> None:
    source = CredentialSource(load=sources.load, clock=clock, patience=60)
    await source.current()
    clock.seconds = HOUR - 300
    hanging = sources.held = threading.Event()
    assert at_once(source).access_key == "1.0"
    await until(lambda: sources.renewals)
    for _ in range(59):
        clock.seconds += 1
        assert at_once(source).access_key == "1.0"
    assert (sources.loads, sources.renewals) == (1, 1)
    sources.held = None
    clock.seconds += 1
    assert at_once(source).access_key == "1.0"  # the one that hangs is given up here, and another source is asked
    await until(lambda: at_once(source).access_key == "2.1")
    hanging.set()
    await threads_done()
    assert at_once(source).access_key == "2.1"
    assert sources.loads == 2


async def test_a_hanging_first_time(clock: Clock, sources: Renewing) -> None:
    source = CredentialSource(load=sources.load, clock=clock, patience=0.5)
    hanging = sources.held = threading.Event()
    answers = await asyncio.gather(*(source.current() for _ in range(3)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [CredentialsError] * 3
    sources.held = None
    assert await key(source) == "2.0"
    hanging.set()
    await threads_done()
    assert await key(source) == "2.0"


async def test_after_expiry_by_s3s_word_the_chain_is_asked_anew(source: CredentialSource, sources: Renewing) -> None:
    await source.current()
    assert await source.renewed() is True
    assert at_once(source).access_key == "2.0"
    assert (sources.loads, sources.renewals) == (2, 0)


async def test_many_calls_that_expire_together_ask_once(source: CredentialSource, sources: Renewing) -> None:
    await source.current()
    assert await asyncio.gather(*(source.renewed() for _ in range(50))) == [True] * 50
    assert await source.renewed() is True  # a call that was under way all the time
    assert sources.loads == 2


async def test_renewed_long_ago_is_not_renewed_now(clock: Clock, source: CredentialSource, sources: Renewing) -> None:
    await source.current()
    await source.renewed()
    clock.seconds += 61
    assert await source.renewed() is True
    assert (at_once(source).access_key, sources.loads) == ("3.0", 3)


async def test_a_token_that_no_header_can_hold(source: CredentialSource, sources: Renewing) -> None:
    sources.token = "token\nx-amz-acl: public-read"
    with pytest.raises(CredentialsError, match="cannot be used: the header x-amz-security-token") as caught:
        await source.current()
    assert "public-read" not in str(caught.value)


# From here on, the SDK's own chain.


def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)


def write_config(text: str) -> None:
    Path(os.environ["AWS_CONFIG_FILE"]).write_text(text)


async def test_settings_without_usable_credentials_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CredentialsError, match="there is no AWS profile 'nobody'"):
        await CredentialSource("nobody").current()
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(CredentialsError, match=r"no usable AWS credentials \(PartialCredentialsError\)"):
        await CredentialSource().current()
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(CredentialsError, match=r"no usable AWS credentials \(NoCredentialsError\)"):
        await CredentialSource().current()
    write_config("[default\n")
    with pytest.raises(CredentialsError, match="configuration files"):
        await CredentialSource().current()


async def test_a_credential_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no_keys(monkeypatch)
    program = tmp_path / "program.py"
    write_config(f"[profile mine]\ncredential_process = {sys.executable} {program}\n")
    program.write_text("import sys\nsys.exit('hush: the words of a program')\n")
    with pytest.raises(CredentialsError, match="no usable AWS credentials") as caught:
        await CredentialSource("mine").current()
    assert "hush" not in str(caught.value)
    program.write_text("print('" + json.dumps({"Version": 1, "AccessKeyId": "made", "SecretAccessKey": "s"}) + "')\n")
    assert await CredentialSource("mine").current() == Credentials("made", "s", None)
