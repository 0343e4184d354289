"""Declare every setting once: its default, the reader of its text, its flag and help, and the events that may set it.

A value comes from the first of these sources that has it: a flag or an event, a variable (AUDITOR_ and the name),
auditor.toml, the default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from msgspec import Struct, field

from auditor.aws.connection import SharedCredentials
from auditor.config import values
from auditor.config.entries import NamedAccount
from auditor.model.bucket import Semantics
from auditor.model.digest import FAIL_ON, FINDINGS, VerifyOutcome
from auditor.model.exception import ExceptionEntry
from auditor.model.finding import FailOn, Severity
from auditor.model.reuse import ReusePolicy
from auditor.s3.engines import DEFAULT_ENGINE

T = TypeVar("T")
D = TypeVar("D")

CHANNELS: Final = ("topic", "chat_topic", "event_bus")
"""The settings that name the channels for alerts and events."""

_AUDIT: Final = ("audit",)
_VERIFY: Final = ("verify",)
_BOTH: Final = ("audit", "verify")
_MORE: Final = [outcome.value for outcome in FINDINGS if outcome not in FAIL_ON]


class Setting(Struct, frozen=True):
    """The declaration of one setting. read: turns a raw value (text, TOML or JSON) into the setting's value.

    flag: the flag with a word for its value (`--max-rate CALLS/S`), or without one for a switch (`--hash`); "" for
    none. events: the Lambda functions ("audit", "verify") whose event may set it.
    """

    read: values.Parse
    help: str
    flag: str = ""
    events: tuple[str, ...] = ()

    @property
    def option(self) -> str:
        """The flag alone, without a word for its value: `--max-rate`."""
        return self.flag.partition(" ")[0]


def _setting(
    read: Callable[[Any, str], T], default: D, text: str, flag: str = "", events: tuple[str, ...] = ()
) -> T | D:
    """Declare the next field of Settings, and return it. text: the help."""
    _DECLARED.append(Setting(read, text, flag, events))
    declared: D = field(default=default)
    return declared


_DECLARED: Final[list[Setting]] = []
"""The declarations in the order of the fields of Settings, which begin with them."""


class Settings(Struct, frozen=True, kw_only=True):
    """The values of all settings, for one command or Lambda function. Durations are in seconds, sizes in bytes.

    rules: the options of each rule, by its ID. exceptions, accept_undecided: the findings, objects and holes that the
    bucket's owner accepts. accounts: names of parties. prices: those that replace list prices. These five come from
    auditor.toml only.
    """

    engine: str = _setting(
        values.engine,
        DEFAULT_ENGINE,
        "client that sends the calls: direct (the default), aioboto3 or boto3",
        "--engine NAME",
        _BOTH,
    )
    concurrency: int | None = _setting(
        values.concurrency,
        None,
        "read at most this many objects at once, or auto (the default)",
        "--concurrency N",
        _BOTH,
    )
    max_rate: float | None = _setting(
        values.rate, 2000.0, "send at most this many calls a second (2000), or unlimited", "--max-rate CALLS/S", _BOTH
    )
    max_calls: int | None = _setting(
        values.whole, None, "send at most this many calls, then stop", "--max-calls N", _BOTH
    )
    max_cost: float | None = _setting(
        values.dollars, None, "stop before the S3 calls cost more than this", "--max-cost DOLLARS"
    )
    keep: ReusePolicy | None = _setting(
        values.keep,
        None,
        "reuse the last run's facts about unchanged objects, up to these ages: acl=3d,head=8d",
        "--keep FACT=AGE,..",
        _AUDIT,
    )
    versions: bool = _setting(values.flag, False, "every version, not only the current one", "--versions", _BOTH)
    allow_empty: bool = _setting(
        values.flag, False, "do not count a prefix without objects as a hole", "--allow-empty", _BOTH
    )
    level: str | None = _setting(
        values.level, None, "exposure: send no HEAD; metadata, fixity: every call that the rules need", "--level NAME"
    )
    only: tuple[str, ...] = _setting(values.words, (), "only these rules: IDs or names", "--only RULE,..", _AUDIT)
    ignore: tuple[str, ...] = _setting(
        values.words, (), "all rules except these: IDs or names", "--ignore RULE,..", _AUDIT
    )
    fail_on: Severity | FailOn | None = _setting(
        values.fail_on,
        Severity.HIGH,
        "exit 3 for findings of at least this severity (high), or never; new:high: only if the last run lacked them",
        "--fail-on SEVERITY",
        _AUDIT,
    )
    fail_on_outcomes: tuple[VerifyOutcome, ...] = _setting(
        values.outcomes,
        FAIL_ON,
        f"exit 3 if one of these outcomes occurs ({','.join(FAIL_ON)}); also possible: {', '.join(_MORE)}, or never",
        "--fail-on OUTCOME,..",
        _VERIFY,
    )
    out: str = _setting(
        values.text,
        "./auditor-runs",
        "where run folders go (./auditor-runs): a directory or s3://BUCKET/PREFIX",
        "--out PLACE",
    )
    topic: str | None = _setting(
        values.topic,
        None,
        "SNS topic for alerts about new or worse results, holes and failures",
        "--topic ARN",
    )
    chat_topic: str | None = _setting(
        values.topic,
        None,
        "another SNS topic for these alerts, in the format that Amazon Q Developer in chat applications shows",
        "--chat-topic ARN",
    )
    event_bus: str | None = _setting(
        values.event_bus,
        None,
        "EventBridge event bus (name or ARN) that gets an event for each finished run",
        "--event-bus NAME",
    )
    ledger: str | None = _setting(
        values.text, None, "where digests are kept: sqlite:PATH or dynamodb:TABLE", "--ledger URI"
    )
    algorithms: tuple[str, ...] = _setting(
        values.algorithms,
        ("sha256",),
        "digests to record: sha256 (the default), sha512, sha1, md5, crc64nvme",
        "--algorithm NAME,..",
        _AUDIT,
    )
    streams: int | None = _setting(
        values.streams, None, "read this many ranges of one large object at once, or auto (the default)", "--streams N"
    )
    queue: str | None = _setting(values.text, None, "send objects without a digest to this queue", "--queue SQS-URL")
    hash: bool = _setting(values.flag, False, "hash objects without a digest, in this process", "--hash")
    dead_letter_queue: str | None = _setting(
        values.text,
        None,
        "URL of the queue for messages that the worker gives up on (the dead-letter queue of `queue`)",
    )
    accept_cost: bool = _setting(
        values.flag,
        False,
        "also hash objects of storage classes that charge for reading (IA, Glacier IR, Intelligent-Tiering)",
        "--accept-cost",
    )
    batch_over: int | None = _setting(
        values.size,
        None,
        "leave objects above this size, such as 500GB or 1TiB, to S3 Batch Operations",
        "--batch-over SIZE",
    )
    batch_manifest: str | None = _setting(
        values.text,
        None,
        "where S3 Batch Operations manifests and jobs go (the run folder)",
        "--batch-manifest PLACE",
    )
    batch_role: str | None = _setting(
        values.role, None, "the role that S3 Batch Operations jobs run as", "--batch-role ARN"
    )
    max_age: float | None = _setting(
        values.long_span,
        None,
        "read only objects last read at least this long ago, such as 90d; each run reads its share of them",
        "--max-age TIME",
        _VERIFY,
    )
    percent: float | None = _setting(
        values.percent,
        None,
        "read this percentage of the objects; each run reads different ones",
        "--percent P",
        _VERIFY,
    )
    every: float = _setting(
        values.long_span,
        86_400.0,
        "time between runs (1d), over which --keep, --max-age and --percent spread their reads",
        "--every TIME",
        _BOTH,
    )
    grace: float = _setting(
        values.span, 900.0, "the ledger may still lack objects younger than this (15m)", "--grace TIME", _VERIFY
    )
    record: bool = _setting(
        values.flag, False, "also read new and changed objects, and record their digests", "--record"
    )
    source: str = _setting(
        values.source,
        "live",
        "live: read every fact with a call (the default); mixed: take facts of unchanged objects from S3 Inventory",
        "--source NAME",
        _AUDIT,
    )
    inventory: str | None = _setting(
        values.text,
        None,
        "where the bucket's S3 Inventory reports are, s3://BUCKET/PREFIX (by default the bucket's own configuration)",
        "--inventory PLACE",
    )
    endpoint_url: str | None = _setting(
        values.endpoint,
        None,
        "URL of an S3 server other than AWS; used for STS and DynamoDB too, unless they have their own",
        "--endpoint-url URL",
    )
    profile: str | None = _setting(values.text, None, "AWS profile", "--profile NAME")
    region: str | None = _setting(
        values.text, None, "the bucket's region (by default the auditor asks S3 for it)", "--region NAME"
    )
    expected_owner: str | None = _setting(
        values.account, None, "fail unless this account (12 digits) owns the bucket", "--expected-owner ACCOUNT"
    )
    requester_pays: bool = _setting(
        values.flag, False, "pay for the requests (Requester Pays buckets)", "--requester-pays"
    )
    key_policies: bool = _setting(
        values.flag,
        False,
        "read the policy of each KMS key that encrypts an object (kms:GetKeyPolicy), once per key",
        "--key-policies",
        _AUDIT,
    )
    semantics: Semantics | None = _setting(
        values.semantics,
        None,
        "the server whose access rules apply: aws, ceph, other, or auto (the default)",
        "--semantics NAME",
        _AUDIT,
    )
    trusted: frozenset[str] = _setting(
        values.trusted,
        frozenset(),
        "accounts, principals, canonical IDs, organizations, VPCs, VPC endpoints, networks, services, distributions and"
        " other sources, directory users and groups, whose access is not reported as shared",
    )
    keep_metadata: bool = _setting(values.flag, False, "store the values of user metadata, not only their names")
    buckets: tuple[str, ...] = _setting(
        values.words, (), "names or s3://BUCKET/PREFIX: the targets that a function's schedule audits"
    )
    retry_attempts: int = _setting(values.whole, 15, "attempts for one call, at most (15)")
    retry_seconds: float = _setting(
        values.seconds, 60.0, "seconds for which one call is retried (60; at most 5 where no server has ever answered)"
    )
    first_answer: float = _setting(
        values.seconds, 10.0, "seconds to wait for the very first answer from S3 or STS (10)"
    )
    rules: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    accounts: tuple[NamedAccount, ...] = ()
    exceptions: tuple[ExceptionEntry, ...] = ()
    prices: Mapping[str, Any] = field(default_factory=dict)
    role: SharedCredentials | None = None
    """The assumed role that reads the audited bucket, of an account of an estate; None for the own credentials. The run
    folders, the ledger, the queue and the channels are always the own account's."""

    live_without_inventory: bool = False
    """True to audit a bucket by calls if no usable S3 Inventory is found: of many buckets, some have none."""

    @property
    def connection(self) -> dict[str, Any]:
        """The endpoint, profile and region, as open_store(), open_run() and Run take them."""
        return {"endpoint_url": self.endpoint_url, "profile": self.profile, "region": self.region}


SETTINGS: Final[Mapping[str, Setting]] = dict(zip(Settings.__struct_fields__, _DECLARED, strict=False))
"""The declarations of all settings by name, except the tables of auditor.toml (`rules`, `exceptions` and so on)."""


def event_settings(function: str) -> frozenset[str]:
    """Return the names of the settings that an event of this Lambda function ("audit" or "verify") may have."""
    return frozenset(name for name, setting in SETTINGS.items() if function in setting.events)
