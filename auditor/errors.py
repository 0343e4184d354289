"""All exceptions, as one tree. A failure of one object is not an exception but a value (model.object.Unread).

AuditorError              base of all; its text is one sentence for the user
+-- UsageError            a wrong flag, setting, URI or event field: exit 2
|   +-- ConfigError       a wrong line of auditor.toml
|   +-- LimitTooLow       --max-calls or --max-cost leaves too little for one object
|   +-- InventoryMissing  the bucket has no usable S3 Inventory, or it is not known
|   +-- RunComplete       the run to resume is complete already
|   +-- RunMissing        the run to resume does not exist
|   +-- RunChanged        the run to resume was begun with other settings
+-- RunError              the run cannot continue: exit 1
|   +-- RunStopped        a signal or a deadline ended the work before its last results were saved: exit 4
|   +-- CredentialsError  no credentials, or expired ones
|   +-- BucketError       no such bucket, wrong region, another owner than expected, listing denied
|   |   +-- ListingError    the server's listing of the bucket cannot be right
|   +-- OutputError       the run folder cannot be written
|   |   +-- RunTaken      another process writes this run, or has finished it
|   |   +-- RunDamaged    a file of the run is damaged or gone
|   |       +-- OldRun    a development version wrote the file: exit 2
|   +-- QueueError        the queue cannot be used
|   +-- InventoryError    an S3 Inventory report is incomplete, damaged or of no use: an older one may do
|   +-- ManifestError     a manifest has a malformed line, or two lines that contradict each other
|   +-- LedgerError       the ledger cannot be used
|       +-- LedgerReadOnlyError  the ledger can be read, but not written
|       +-- LedgerFileError      the disk refuses the ledger's file, for example because it is full
|       |   +-- LedgerGoneError    the file of the ledger was deleted while it was open
|       +-- DigestConflict       the ledger has another digest of the same object version
|       +-- LeaseLostError       another worker took over the lease
+-- CheckpointError       an object checkpoint is damaged or does not fit: the object is hashed from its start
+-- MessageError          a queue message is malformed: it goes to the dead-letter queue, no user sees it

CallFailed                one request failed: its caller sends it again, or records the missing fact as Unread
NotStored                 a rule asked for a value that the run folder does not have: its stored finding stays
"""

from __future__ import annotations


class AuditorError(Exception):
    """Base of all errors; `str(error)` is one sentence that names the thing and the fix."""

    exit_code = 1
    told = False
    """True once an alert has told it."""


class UsageError(AuditorError):
    """A flag, a setting, a URI or an event field is wrong."""

    exit_code = 2


class ConfigError(UsageError):
    """auditor.toml has an unknown key or an invalid value."""


class LimitTooLow(UsageError):  # noqa: N818 - it names the limit
    """--max-calls or --max-cost leaves too little to audit one object."""


class InventoryMissing(UsageError):  # noqa: N818 - as RunMissing
    """No configuration of the bucket names a usable S3 Inventory, or its configurations cannot be read."""


class RunComplete(UsageError):  # noqa: N818 - nothing is wrong with the run
    """The run that was to be resumed is complete already."""


class RunMissing(UsageError):  # noqa: N818 - as above
    """The run that was to be resumed does not exist."""


class RunChanged(UsageError):  # noqa: N818 - as above
    """The run that was to be resumed was begun with other rules or options, or for another target."""


class RunError(AuditorError):
    """The run cannot continue."""


class RunStopped(RunError):  # noqa: N818 - as above
    """A signal or a deadline ended the work while a server did not answer: the last results could not be saved."""

    exit_code = 4


class CredentialsError(RunError):
    """There are no credentials, or AWS refuses them."""


class BucketError(RunError):
    """The bucket does not exist, is in another region, belongs to another account, or cannot be listed."""


class ListingError(BucketError):
    """The server's listing cannot be right, so that it proves nothing: it names a key that cannot be there, or is out
    of order.
    """


class OutputError(RunError):
    """The run folder cannot be written."""


class RunTaken(OutputError):  # noqa: N818 - as above
    """Another process writes this run, or has finished it: this process must write nothing to it."""


class RunDamaged(OutputError):  # noqa: N818 - as above
    """A file of the run is damaged or gone, so that the run cannot be read or resumed."""


class OldRun(RunDamaged):
    """A file has no member `format`, because a development version of the auditor wrote it. No such file is read."""

    exit_code = 2


class QueueError(RunError):
    """The queue cannot be reached, or refuses a call."""


class InventoryError(RunError):
    """A report of S3 Inventory is incomplete or damaged, or lacks what an audit needs. An older report may do."""


class ManifestError(RunError):
    """A checksum manifest has a malformed line, or two contradicting lines. The message names the file and the line."""


class LedgerError(RunError):
    """The ledger cannot be reached, or refuses a call."""


class LedgerReadOnlyError(LedgerError):
    """The ledger can be read, but not written."""


class LedgerFileError(LedgerError):
    """The disk refuses the ledger's file, for example because it is full. No waiting ends that."""


class LedgerGoneError(LedgerFileError):
    """The file of the ledger was deleted or replaced while it was open: no waiting brings it back."""


class DigestConflict(LedgerError):  # noqa: N818 - "conflict" is the word of the field
    """The ledger has another digest of the same algorithm for the same object version."""


class LeaseLostError(LedgerError):
    """Another worker took over this worker's lease: this worker must not write any more."""


class CheckpointError(AuditorError):
    """The checkpoint of an object's hashing is damaged, or belongs to another object. The object is then hashed from
    its first byte.
    """


class MessageError(AuditorError):
    """A queue message is malformed. The dead-letter queue gets the message, with the error's text as the reason."""


class CallFailed(Exception):  # noqa: N818 - it becomes a value, not an error of the program
    """One request to AWS failed, or its answer cannot be used.

    action: the API operation, such as `GetObjectAcl`. code: S3's error code; the HTTP status as text if the answer has
    no body (HEAD); `Timeout`, `ConnectionError` or `Malformed` without a usable answer. status: the HTTP status; 0
    without an answer. headers: the answer's headers, with lower-case names.
    """

    read: int = 0
    """Number of bytes of an object's body that the failed read had already put into its caller's buffer."""

    def __init__(
        self, action: str, code: str, status: int = 0, message: str = "", headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(f"{action}: {code}")
        self.action = action
        self.code = code
        self.status = status
        self.message = message
        self.headers = headers or {}


class NotStored(Exception):  # noqa: N818 - as above
    """A rule asked for a value that the run folder does not have, while a run is judged again."""
