"""Make the SDK's sessions and clients, with their endpoints, profiles, timeouts and retries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache, partial
from threading import Lock, get_ident
from typing import Any, Final, cast

import boto3
import botocore.session
from botocore import exceptions as sdk
from botocore import xform_name
from botocore.config import Config
from botocore.loaders import create_loader
from botocore.utils import parse_timestamp

from auditor.aws.answer_limits import SERVICE, AnswerLimits, bounded
from auditor.aws.connection import Connection, CredentialProvider, SharedCredentials
from auditor.aws.plain import custom_endpoint
from auditor.aws.profiles import file_errors
from auditor.aws.sdk_errors import sdk_errors
from auditor.aws.sigv4 import with_warning
from auditor.errors import CredentialsError, UsageError
from auditor.model.dates import any_date

SERVICES: Final = ("dynamodb", "events", "kms", "s3", "s3control", "sns", "sqs", "stepfunctions", "sts")
"""All AWS services that the functions call. The deployed package contains no other data files of the SDK."""

FIRST_CALL_SECONDS: Final = 5.0
"""Limit in seconds for the wait of other threads. Connecting takes no longer, and the certificates are loaded next."""

FIRST_CALL_ATTEMPTS: Final = 3
"""Attempts of a client's first call if no connection is made: the SDK's pauses before them sum to at most 3 s."""

_GIVE_UP: Final = "auditor-first-call"


class FirstCallGate:
    """Makes other threads wait until a client's first call has ended: this avoids a crash in OpenSSL.

    For each new connection urllib3 loads the trusted certificates into the client's only TLS context. If two threads
    load them for the first time at the same moment, they damage OpenSSL's list of certificate stores, and the process
    crashes when the context is freed. The crash is rare, but more frequent on a small Lambda function, where a thread
    can lose its CPU at any point. Later loads are safe: they add nothing to that list. The reason is that OpenSSL's
    X509_STORE_add_lookup (crypto/x509/x509_lu.c, 3.0) takes no lock.

    A first call that gets no connection, or no answer, is given up soon, because the address is probably wrong.

    Its methods are handlers of botocore's events before-send, response-received and needs-retry. botocore calls them in
    the thread of the call.
    """

    def __init__(self, longest: float = FIRST_CALL_SECONDS) -> None:
        self._longest = longest
        self._lock = Lock()
        self._caller: int | None = None
        self._answered = False
        self._open = False

    def before(self, **_: Any) -> None:
        """Before a call: wait while another thread makes the client's first call.

        Once a call was answered, or was waited for in vain, no call waits: botocore has no event for a call whose
        answer it cannot parse.
        """
        if self._answered or self._open:
            return
        self._open = not self._lock.acquire(timeout=self._longest)
        if not self._open:
            self._caller = get_ident()
            if self._is_answered():  # another call ended while this thread waited
                self._caller = None
                self._lock.release()

    def _is_answered(self) -> bool:
        return self._answered

    def after(self, exception: Exception | None = None, **_: Any) -> None:
        """After a call: let the waiting threads continue.

        exception: set if the call got no answer. Then one of the waiting calls is treated as the first.
        """
        if self._caller == get_ident():
            self._caller = None
            self._answered = exception is None
            self._lock.release()

    def give_up(self, attempts: int, caught_exception: Exception | None = None, **_: Any) -> None:
        """End the retries of a client's first call by raising its exception, if it gets no connection or no answer.

        This comes after FIRST_CALL_ATTEMPTS attempts, or after one that timed out.
        """
        most = (
            1 if isinstance(caught_exception, (sdk.ConnectTimeoutError, sdk.ReadTimeoutError)) else FIRST_CALL_ATTEMPTS
        )
        if (
            not self._answered
            and attempts >= most
            and isinstance(caught_exception, (sdk.ConnectionError, sdk.ReadTimeoutError))
        ):
            raise caught_exception


def full_patience(client: Any) -> None:
    """Let the client's later calls use all their attempts. Call this once a call was answered that the client's
    FirstCallGate did not see.
    """
    client.meta.events.unregister("needs-retry", unique_id=_GIVE_UP)


def first_call_alone(client: Any) -> Any:
    """Register a FirstCallGate with a boto3 client, and return the client."""
    first = FirstCallGate()
    client.meta.events.register("before-send", first.before)
    client.meta.events.register("response-received", first.after)
    client.meta.events.register("needs-retry", first.give_up, unique_id=_GIVE_UP)
    return client


def client_options(connection: Connection, *, attempts: int = 1) -> dict[str, Any]:
    """Return the arguments of botocore's Config for a connection, for boto3 and aioboto3.

    attempts: how often the SDK tries each call; 1 if auditor.s3.calls does the retries.
    """
    options: dict[str, Any] = {
        "connect_timeout": connection.connect_timeout,
        "read_timeout": connection.read_timeout,
        "max_pool_connections": max(1, connection.concurrency),
        "retries": {"total_max_attempts": attempts, "mode": "standard"},
        "request_checksum_calculation": "when_required",
        "response_checksum_validation": "when_required",
        "user_agent_extra": "s3-auditor",
    }
    if custom_endpoint("s3", connection.endpoint_url, connection.profile):
        options["s3"] = {"addressing_style": "path"}
    return options


def make_session(profile: str | None, region: str | None, role: SharedCredentials | None = None) -> boto3.Session:
    """Make a boto3 session. role: its credentials in place of the profile's; None for those.

    Raises UsageError for a missing profile or unusable AWS files, CredentialsError for a role that cannot be assumed.
    """
    core = core_session(profile)
    if role is not None:
        core.register_component("credential_provider", _OneProvider(role))
    with file_errors():
        return boto3.Session(botocore_session=core, region_name=region)


def core_session(profile: str | None) -> Any:
    """Make a botocore session, for callers that need no client.

    Raises UsageError for a missing profile or unusable AWS files.
    """
    with file_errors():
        core = with_shared_models(botocore.session.Session(profile=profile))
        core.get_scoped_config()  # raises for a missing profile now, instead of at the first use
        return core


def chain_credentials(profile: str | None) -> CredentialProvider:
    """Return the first source of botocore's chain that has credentials. Blocks. Raises the SDK's exceptions."""
    if (found := core_session(profile).get_credentials()) is None:
        raise sdk.NoCredentialsError
    provider: CredentialProvider = found
    return provider


class _OneProvider:
    """The only source of a session's credentials: an assumed role. botocore's own chain is never searched."""

    def __init__(self, role: SharedCredentials) -> None:
        self._role = role

    def load_credentials(self) -> Any:
        return self._role.current()


def with_shared_models(core: Any) -> Any:
    """Let all botocore sessions of the process share the descriptions of AWS's services. Return the session.

    Making a client then takes a fifth of the time. The session also gets a faster parser of dates.
    """
    loader = _loader(core.get_config_variable("data_path"))
    loader.search_paths[:] = dict.fromkeys(loader.search_paths)  # boto3 appends its path for each session
    core.register_component("data_loader", loader)
    core.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=parse_date)
    return core


def parse_date(value: Any) -> datetime:
    """Parse a date in an answer. This is faster than botocore's parser, which takes up to 7 % of a call's CPU and is
    only the fallback.
    """
    try:
        return any_date(value)
    except (TypeError, ValueError):
        return cast(datetime, parse_timestamp(value))


@cache
def _loader(data_path: str | None) -> Any:
    return create_loader(data_path)


def make_client(
    service: str,
    connection: Connection,
    *,
    endpoint_url: str | None = None,
    attempts: int = 1,
    limits: AnswerLimits = SERVICE,
) -> Any:
    """Make a boto3 client with a session of its own. The client is thread-safe.

    Blocks, because it reads files. attempts: how often the SDK tries each call. limits: of an answer that is no page of
    a listing.
    """
    session = make_session(connection.profile, connection.region, connection.role)
    region = connection.region or session.region_name or "us-east-1"
    config = Config(**client_options(connection, attempts=attempts))
    client = client_of(session, service, limits, region_name=region, endpoint_url=endpoint_url, config=config)
    client.meta.events.register("before-parse", _refuse_cut_body)
    return without_redirects(client)


@contextmanager
def open_calls(
    service: str, connection: Connection, *, endpoint_url: str | None, attempts: int
) -> Iterator[Callable[..., dict[str, Any]]]:
    """Make a client for the `with` block, and yield a function that makes one call, which blocks: of its operation by
    the name in the API, with the API's parameters. The calls raise CallFailed, CredentialsError or UsageError.
    """
    client = make_client(service, connection, endpoint_url=endpoint_url, attempts=attempts)
    try:
        yield partial(_call, client)
    finally:
        client.close()


def _call(client: Any, operation: str, **arguments: Any) -> dict[str, Any]:
    with sdk_errors(operation):
        reply: dict[str, Any] = getattr(client, xform_name(operation))(**arguments)
        return reply


class ServiceClient:
    """A client of one AWS service, whose calls block. session: the boto3 session that it is of."""

    def __init__(self, client: Any, session: boto3.Session) -> None:
        self._client = client
        self._session = session
        self.region: str = client.meta.region_name
        self.endpoint: str = client.meta.endpoint_url

    def call(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """Make one call. The parameters and errors are those of open_calls()."""
        return _call(self._client, operation, **arguments)

    def be_patient(self) -> None:
        """Let later calls use all their attempts: a call of the service was answered that this client did not make."""
        full_patience(self._client)

    def load_credentials(self) -> Any:
        """Return the source of the client's credentials. Raises CredentialsError if there is none."""
        if (found := self._session.get_credentials()) is None:
            raise CredentialsError("there are no AWS credentials")
        return found

    def close(self) -> None:
        self._client.close()


def open_service(
    service: str,
    options: dict[str, Any],
    region: str | None,
    endpoint_url: str | None,
    profile: str | None,
    role: SharedCredentials | None,
) -> ServiceClient:
    """Make the client of a service. options: the arguments of botocore's Config. Blocks, because it reads files."""
    session = make_session(profile, region, role)
    if session.region_name is None and custom_endpoint(service, endpoint_url, profile):
        session = make_session(profile, "us-east-1", role)  # requests must be signed for some region
    return ServiceClient(client_of(session, service, endpoint_url=endpoint_url, config=Config(**options)), session)


def _refuse_cut_body(operation_model: Any, response_dict: dict[str, Any], **_: Any) -> None:
    """Raise IncompleteReadError for a body that was cut off, which a newer botocore takes for a whole one."""
    body, length = response_dict["body"], str(response_dict["headers"].get("content-length", ""))
    if operation_model.http["method"] == "HEAD" or not isinstance(body, bytes) or not length.isdecimal():
        return
    if len(body) < int(length):
        raise sdk.IncompleteReadError(actual_bytes=len(body), expected_bytes=int(length))


def client_of(session: boto3.Session, service: str, limits: AnswerLimits = SERVICE, **options: Any) -> Any:
    """Make a client of the session, guarded by a FirstCallGate, with bounded answers. Raises UsageError for settings
    that the SDK refuses.
    """
    try:
        return with_warning(first_call_alone(bounded(session.client(service, **options), limits)))
    except sdk.NoRegionError as error:
        raise UsageError(f"no region is known for {service}: give --region, or set AWS_REGION") from error
    except (sdk.BotoCoreError, ValueError) as error:
        raise UsageError(f"the AWS SDK refuses the settings: {error}") from error


def without_redirects(client: Any) -> Any:
    """Keep the client from sending a call again to another region when S3 refuses it, and return the client.

    After every HEAD with status 400, botocore would ask for the bucket's region and repeat the call. S3 answers so for
    each object with SSE-C.
    """
    client.meta.events.register("before-call.s3", _redirected)
    return client


def _redirected(params: dict[str, Any], **_: Any) -> None:
    params["context"].setdefault("s3_redirect", {})["redirected"] = True
