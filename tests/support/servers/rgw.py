"""A throw-away Ceph object gateway on loopback: one monitor, one memory-backed OSD, one RGW, three accounts.

It enforces ACLs and policies, so an unsigned GET tells who can read an object. Everything is in one temporary
directory, which is removed when the server stops. `python -m tests.support.servers.rgw` runs it in the foreground.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote, urlencode

import boto3
from botocore.config import Config

PROGRAMS: Final = ("ceph-mon", "ceph-osd", "radosgw", "ceph")
DEADLINE: Final = 60.0
"""Seconds after which a step of the start is given up; the whole start takes about two."""

CAPS: Final = {
    "mon.": ("mon", "allow *"),
    "client.admin": ("mon", "allow *", "osd", "allow *", "mgr", "allow *"),
    "client.rgw": ("mon", "allow *", "osd", "allow *"),
    "osd.0": ("mon", "allow profile osd", "osd", "allow *", "mgr", "allow profile osd"),
}

# paxos: otherwise each of the first changes of the map waits a second. tcp_nodelay: otherwise each answer waits 40 ms.
CONFIG: Final = """\
[global]
fsid = {fsid}
mon host = v2:127.0.0.1:{mon_port}
mon initial members = a
public addr = 127.0.0.1
cluster addr = 127.0.0.1
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
keyring = {home}/keyring
run dir = {home}
crash dir = {home}
mon data = {home}/mon
osd data = {home}/osd
rgw data = {home}/rgw
admin socket =
log file =
log to stderr = true
mon cluster log file =
paxos propose interval = 0.05
paxos min wait = 0.01
mon allow pool size one = true
mon data avail warn = 1
mon data avail crit = 1
osd objectstore = memstore
memstore device bytes = 536870912
osd crush chooseleaf type = 0
osd crush initial weight = 1
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd class load list = *
osd class default list = *
rgw frontends = beast endpoint=127.0.0.1:{rgw_port} tcp_nodelay=1
rgw rados pool pg num min = 1
rgw num control oids = 1
rgw lc max objs = 1
rgw gc max objs = 1
rgw override bucket index max shards = 1
"""


class RgwError(Exception):
    """The server did not start. The text ends with the tail of the log."""


@dataclass(frozen=True, slots=True)
class Account:
    """One user of the gateway. canonical_id: 64 hex digits, which is also the user's id there."""

    name: str
    access_key: str
    secret_key: str
    canonical_id: str

    @property
    def arn(self) -> str:
        """The principal of a bucket policy, in the form that RGW takes."""
        return f"arn:aws:iam:::user/{self.canonical_id}"


OWNER: Final = Account("owner", "FAKEOWNERACCESSKEY00", "o" * 40, "a1" * 32)
OTHER: Final = Account("other", "FAKEOTHERACCESSKEY00", "t" * 40, "b2" * 32)
STRANGER: Final = Account("stranger", "FAKESTRANGERACCESS00", "s" * 40, "c3" * 32)
ACCOUNTS: Final = (OWNER, OTHER, STRANGER)


def available() -> str | None:
    """None when the programs are there, else what to install."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if not missing:
        return None
    return f"{', '.join(missing)} not found: install the Debian packages radosgw ceph-mon ceph-osd ceph-common"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RgwServer:
    """`with RgwServer() as rgw:`; rgw.url is the endpoint, rgw.owner, rgw.other and rgw.stranger the accounts.

    The owner has the buckets, the other gets grants, and the stranger stands for any other account.
    """

    owner = OWNER
    other = OTHER
    stranger = STRANGER

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._home = Path()
        self._log = Path()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if reason := available():
            raise RgwError(reason)
        with ExitStack() as stack:
            self._home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rgw-")))
            self._log = self._home / "log"
            self._stack = stack
            self._start()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def client(self, account: Account, service: str = "s3", **config: Any) -> Any:
        """A boto3 client, path-style, of that account and of nothing in the environment; close it."""
        settings = {"s3": {"addressing_style": "path"}, "retries": {"total_max_attempts": 1}, **config}
        session = boto3.session.Session(
            aws_access_key_id=account.access_key, aws_secret_access_key=account.secret_key, region_name="us-east-1"
        )
        return session.client(service, endpoint_url=self.url, config=Config(**settings))

    def anonymous(
        self, method: str, bucket: str, key: str | None = None, body: bytes | None = None, **query: str | None
    ) -> int:
        """HTTP status of an unsigned request; the path goes out as it is, `//` and `..` too."""
        path = f"/{bucket}" if key is None else f"/{bucket}/{quote(key, safe='/-._~')}"
        given = {name: value for name, value in query.items() if value is not None}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, f"{path}?{urlencode(given)}" if given else path, body=body)
            response = connection.getresponse()
            response.read()
            return response.status
        finally:
            connection.close()

    def anonymous_get(self, bucket: str, key: str, version_id: str | None = None) -> int:
        """HTTP status of an unsigned GET of the object's bytes."""
        return self.anonymous("GET", bucket, key, versionId=version_id)

    def anonymous_get_acl(self, bucket: str, key: str, version_id: str | None = None) -> int:
        """HTTP status of an unsigned GET of the object's ACL."""
        return self.anonymous("GET", bucket, key, acl="", versionId=version_id)

    def _start(self) -> None:
        mon_port = free_port()
        fsid = str(uuid.uuid4())
        text = CONFIG.format(home=self._home, fsid=fsid, mon_port=mon_port, rgw_port=self.port)
        (self._home / "ceph.conf").write_text(text)
        for name in ("mon", "osd", "rgw"):
            (self._home / name).mkdir()
        self._make_keyring()
        monmap = str(self._home / "monmap")
        self._run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", f"v2:127.0.0.1:{mon_port}", monmap)
        self._run("ceph-mon", "-i", "a", "--mkfs", "--monmap", monmap)
        self._spawn("ceph-mon", "-i", "a", "-f")
        osd_id = str(uuid.uuid4())
        self._run("ceph", "osd", "new", osd_id, "0")
        self._run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", osd_id)
        self._spawn("ceph-osd", "-i", "0", "-f")
        for account in ACCOUNTS:
            self._make_user(account)
        self._wait(self._spawn("radosgw", "-n", "client.rgw", "-f"))

    def _make_keyring(self) -> None:
        keyring = str(self._home / "keyring")
        for name, caps in CAPS.items():
            pairs = zip(caps[::2], caps[1::2], strict=True)
            words = [word for service, cap in pairs for word in ("--cap", service, cap)]
            create = [] if Path(keyring).exists() else ["--create-keyring"]
            self._run("ceph-authtool", *create, keyring, "-n", name, "--gen-key", *words)

    def _make_user(self, account: Account) -> None:
        made = self._run(
            "radosgw-admin", "user", "create",
            "--uid", account.canonical_id, "--display-name", account.name,
            "--access-key", account.access_key, "--secret-key", account.secret_key,
        )  # fmt: skip
        if json.loads(made)["user_id"] != account.canonical_id:
            raise RgwError(f"the gateway made another user than {account.canonical_id}: {made}")

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CEPH_")}
        return {**kept, "CEPH_CONF": str(self._home / "ceph.conf")}

    def _run(self, *command: str) -> str:
        """Run one program to its end, its complaints into the log; returns what it printed."""
        try:
            with self._log.open("ab") as log:
                done = subprocess.run(
                    command, env=self._environment(), stdout=subprocess.PIPE, stderr=log, timeout=DEADLINE, check=True
                )
        except (subprocess.SubprocessError, OSError) as error:
            raise RgwError(f"{' '.join(command[:2])} failed: {error}\n{self._tail()}") from error
        return done.stdout.decode()

    def _spawn(self, *command: str) -> subprocess.Popen[bytes]:
        """Start a daemon, to be stopped when the server is; setpriv stops it also when the tests are killed."""
        guard = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [*guard, *command],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._stack.callback(_stop, process)
        return process

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + DEADLINE
        while not self._answers():
            if process.poll() is not None:
                raise RgwError(f"the gateway ended with {process.returncode}\n{self._tail()}")
            if time.monotonic() > deadline:
                raise RgwError(f"the gateway does not answer after {DEADLINE:.0f} s\n{self._tail()}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            return self.anonymous("GET", "") == 200
        except OSError:
            return False

    def _tail(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join([line for line in lines if line and "rocksdb" not in line][-30:])


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main() -> None:
    """Run until Ctrl-C or SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with RgwServer() as rgw:
            print(f"endpoint  {rgw.url}", flush=True)
            for account in ACCOUNTS:
                print(f"{account.name:<9} {account.access_key} {account.secret_key} {account.canonical_id}", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
