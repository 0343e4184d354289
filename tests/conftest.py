"""The ground of every test: fake credentials, no configuration of the user's, and the servers' fixtures."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import threading
from pathlib import Path

import hypothesis
import pytest

import auditor.aws  # noqa: F401 - before a test imports botocore: it must not sign with awscrt

hypothesis.settings.register_profile("auditor", deadline=None, max_examples=50)  # no test asks the clock
hypothesis.settings.load_profile("auditor")

pytest_plugins = ["tests.support.servers.fixtures"]
pytest.register_assert_rewrite("tests.conformance")

FAKE = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    # Of one certificate: each client would else load the machine's hundred and more, which takes 30 ms.
    "AWS_CA_BUNDLE": str(Path(__file__).parent / "support" / "certificate.pem"),
    "NO_PROXY": "127.0.0.1,localhost",
    "LANGUAGE": "C",  # argparse looks for translations of each word on the disk otherwise, for each parser of a command
}
NUMBERS = itertools.count()


def pytest_configure() -> None:
    """Heed Ctrl-C, in the programs that tests start too: a shell has what it starts in the background ignore it."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection() -> None:
    gc.disable()  # thousands of tests are collected, and no garbage


def pytest_collection_finish() -> None:
    gc.enable()
    gc.set_threshold(20_000)  # a test leaves little garbage, and each module's end looks for it


@pytest.fixture(scope="module", autouse=True)
def quick_collections() -> None:
    """Look for garbage among the objects of a module's tests, not among imported modules and thousands of tests."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Collect the frozen objects: DuckDB complains of those that the end of the process finds alive."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # pytest itself looks for garbage thrice


@pytest.fixture(autouse=True)
def fake_aws(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test can reach a real account, whatever the environment it is started from."""
    # A file that is not there yet, in a folder that is: a folder for each test takes longer than most tests.
    files = tmp_path_factory.getbasetemp() / f"aws-{next(NUMBERS)}"
    for name in list(os.environ):
        if name.startswith(("AWS_ENDPOINT_URL", "AWS_PROFILE", "AWS_SESSION_TOKEN")):
            monkeypatch.delenv(name)
    for name, value in FAKE.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_CONFIG_FILE", f"{files}-config")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", f"{files}-credentials")
