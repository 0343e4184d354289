"""Classify AWS's error codes: too many calls, worth a retry, object gone, end of the run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from auditor.errors import BucketError, CallFailed, CredentialsError, RunError
from auditor.text import shorten, visible

THROTTLES: Final = frozenset(
    {
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "RequestThrottled",
        "RequestThrottledException",
        "RequestLimitExceeded",
        "TooManyRequestsException",
        "TooManyRequests",
        "BandwidthLimitExceeded",
        "ProvisionedThroughputExceededException",
        "429",
        "503",
        "ServiceUnavailable",
    }
)
"""Codes by which AWS asks for fewer calls. An answer to a HEAD has no body: SlowDown then shows as status 503 only."""

CLOCK_SET: Final = "ClockSet"
CREDENTIALS_RENEWED: Final = "CredentialsRenewed"
"""Two codes of our own for a request that S3 refused: for its credentials, or for its time. The engine has corrected
the fault since, so a retry may succeed."""

TRANSIENT: Final = frozenset(
    {
        CLOCK_SET,
        CREDENTIALS_RENEWED,
        "Timeout",
        "ConnectionError",
        "BrokenReply",
        "InternalError",
        "RequestTimeout",
        "RequestTimeoutException",
        "PriorRequestNotComplete",
        "OperationAborted",
    }
)
GONE: Final = frozenset({"NoSuchKey", "NoSuchVersion", "404", "405", "MethodNotAllowed"})
EXPIRED: Final = frozenset(
    {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired", "InvalidToken"}
)
BAD_CREDENTIALS: Final = frozenset(
    {"InvalidAccessKeyId", "InvalidClientTokenId", "SignatureDoesNotMatch", "NotSignedUp", "AccountProblem"}
)
ELSEWHERE: Final = frozenset(
    {"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "301"}
)


_CREDENTIALS: Final = EXPIRED | BAD_CREDENTIALS | {"UnrecognizedClientException", "InvalidSecurity"}
DENIED: Final = frozenset({"AccessDenied", "AccessDeniedException", "AuthorizationError", "AllAccessDisabled", "403"})
ABSENT: Final = frozenset(
    {
        "AWS.SimpleQueueService.NonExistentQueue",
        "InvalidAddress",
        "NoSuchBucket",
        "NonExistentQueue",
        "NotFound",
        "QueueDoesNotExist",
        "ResourceNotFoundException",
        "StateMachineDoesNotExist",
    }
)
_REGION: Final = re.compile(r"(?![0-9]+\Z)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_LONGEST_WORDS: Final = 300
_UNREACHABLE: Final = frozenset({"ConnectionError", "Timeout", "BrokenReply"})


def is_throttle(failure: CallFailed) -> bool:
    """True if AWS refused the call because there were too many calls."""
    return failure.code in THROTTLES or failure.status in (429, 503)


def is_transient(failure: CallFailed) -> bool:
    """True if a retry may succeed, by the rules of botocore's standard retry mode."""
    return is_throttle(failure) or failure.code in TRANSIENT or failure.status in (500, 502, 504)


def is_gone(failure: CallFailed) -> bool:
    """True if the object no longer exists, or the named version is a delete marker (status 404 or 405)."""
    return failure.code in GONE


def named_region(headers: Mapping[str, str]) -> str:
    """Return the region that an answer names in the header x-amz-bucket-region; "" if it has none, or if the text
    cannot be a region. Such a text must become neither a part of a host name nor advice to the user.
    """
    found = str(headers.get("x-amz-bucket-region", ""))
    return found if _REGION.fullmatch(found) else ""


def doom(failure: CallFailed, bucket: str) -> RunError | None:
    """Return the error that has to end the run, if every further call would fail the same way; None if not.

    Examples are expired credentials, a bucket that does not exist, and a wrong region.
    """
    code = failure.code
    if code in EXPIRED:
        return CredentialsError(f"the credentials have expired ({code}): renew them and run again")
    if code in BAD_CREDENTIALS:
        return CredentialsError(
            f"the credentials were refused ({code}): check the access key, the secret and --profile"
        )
    if code == "RequestTimeTooSkewed":
        return CredentialsError("S3 refused the request's time (RequestTimeTooSkewed): correct this machine's clock")
    if code == "NoSuchBucket":
        return BucketError(f"there is no bucket named {bucket!r} (NoSuchBucket): check the name and the endpoint")
    if code in ELSEWHERE:
        region = named_region(failure.headers)
        fix = f"use --region {region}" if region else "give its region with --region"
        return BucketError(f"the bucket {bucket!r} is in another region ({code}): {fix}")
    return None


def is_web_page(headers: Mapping[str, str]) -> bool:
    """True if an answer is a page for a browser, which no server of S3 sends. headers: with lower-case names."""
    return headers.get("content-type", "").lower().startswith("text/html")


def own_words(server: str, failure: CallFailed) -> str:
    """Return the server's own sentence on a refused call, as the end of a sentence of ours; "" if it says no more than
    the code. AWS's sentence names the user, the action and the kind of policy that refuses it.
    """
    said = " ".join(failure.message.replace('"', "'").split())
    if re.sub("[^a-z]", "", said.lower()) in ("", "forbidden", re.sub("[^a-z]", "", failure.code.lower())):
        return ""
    return f'; {server} says: "{shorten(visible(said), _LONGEST_WORDS)}"'


def explain(thing: str, failure: CallFailed, *, allow: str, absent: str) -> str:
    """Describe a failed call in one sentence for the user, in most cases with the fix.

    thing: the resource, such as "the queue URL". allow: the IAM actions that the call needs. absent: the fix if the
    resource does not exist.
    """
    code, action = failure.code, failure.action
    if code in ABSENT:
        return f"{thing} does not exist ({code}): {absent}"
    if code in DENIED:
        return f"{thing} refuses {action} ({code}): allow {allow}{own_words('AWS', failure)}"
    if code in _CREDENTIALS:
        return f"{thing} refuses the credentials ({code}): renew them, or check --profile"
    if code in _UNREACHABLE:
        return f"{thing} cannot be reached ({code}): check the network, the region and --endpoint-url"
    if code in ELSEWHERE:
        return f"{thing} is in another region ({code}): give it with --region"
    if is_throttle(failure):
        return f"{thing} keeps refusing {action} ({code}): raise its capacity, or run fewer at once"
    return f"{thing} fails at {action}: {code}"
