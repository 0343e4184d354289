"""What dooms a run is raised; what befalls one object is a value (models.Unread).

AuditorError              every error of ours; its text is one sentence for the user
+-- UsageError            a wrong flag, setting, URI or event field: exit 2
|   +-- ConfigError       a wrong line of auditor.toml
|   +-- RunComplete       a run that is to go on has reached its end
+-- RunError              the run cannot go on: exit 1
|   +-- CredentialsError  no credentials, or expired ones
|   +-- BucketError       no such bucket, wrong region, another owner than expected, listing denied
|   +-- OutputError       the run folder cannot be written
|   |   +-- RunTaken      another process writes this run, or has written it meanwhile
|   +-- QueueError        the queue cannot be used
|   +-- ManifestError     a manifest has a line that means nothing, or two that contradict each other
|   +-- LedgerError       the ledger cannot be used
|       +-- DigestConflict  another digest stands there for the very same object
|       +-- LeaseLostError  another worker took over
+-- CheckpointError       a checkpoint that is not one of ours
+-- MessageError          a malformed queue message: for the dead-letter queue, never for the user

CallFailed                one request failed; gather retries it or turns it into Unread, so no user sees it
"""

from __future__ import annotations


class AuditorError(Exception):
    """Every error of ours; `str(error)` is one sentence that names the thing and the fix."""

    exit_code = 1


class UsageError(AuditorError):
    """A flag, a setting, a URI or an event field is wrong."""

    exit_code = 2


class ConfigError(UsageError):
    """auditor.toml has a key or a value that means nothing."""


class RunComplete(UsageError):  # noqa: N818 - it is no fault of anybody's
    """The run that is to go on has reached its end."""


class RunError(AuditorError):
    """The run cannot go on."""


class CredentialsError(RunError):
    """There are no credentials, or S3 does not take them."""


class BucketError(RunError):
    """The bucket does not exist, lies elsewhere, belongs to another account, or cannot be listed."""


class OutputError(RunError):
    """The run folder cannot be written."""


class RunTaken(OutputError):  # noqa: N818 - as above
    """Another process writes this run, or has written it meanwhile: this one must leave it alone."""


class QueueError(RunError):
    """The queue cannot be reached or refuses us."""


class ManifestError(RunError):
    """A manifest has a line that means nothing, or two that contradict each other; names the file and the line."""


class LedgerError(RunError):
    """The ledger cannot be reached or refuses us."""


class DigestConflict(LedgerError):  # noqa: N818 - the field says "conflict", and it is one
    """The ledger already holds another digest of the same algorithm for the very same object."""


class LeaseLostError(LedgerError):
    """Another worker took over the work whose lease this one held: what it does from now on must not be written."""


class CheckpointError(AuditorError):
    """A checkpoint is not one of ours, or was changed: the object is hashed from its start."""


class MessageError(AuditorError):
    """A queue message is not one of ours; its text is the reason given on the dead-letter queue."""


class CallFailed(Exception):  # noqa: N818 - the failure of a call is a value on its way, not the program's error
    """One request to AWS failed.

    action: the API operation, such as `GetObjectAcl`. code: S3's error code, or the HTTP status as text where the
    answer has no body (HEAD), or `Timeout`, `ConnectionError`, `Malformed` for what never became an answer.
    status: HTTP status, 0 where there was no answer. headers: the answer's headers, lower-case names. read: bytes of a
    body that were put into the reader's buffer before it broke.
    """

    read: int = 0

    def __init__(
        self, action: str, code: str, status: int = 0, message: str = "", headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(f"{action}: {code}")
        self.action = action
        self.code = code
        self.status = status
        self.message = message
        self.headers = headers or {}
