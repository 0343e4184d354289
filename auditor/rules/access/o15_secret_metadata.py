"""O15: an exposed object has metadata that looks like a secret."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from auditor.model.access import ObjectAccess
from auditor.model.object import Head
from auditor.rules.base import Hit, Severity, rule

NAMES: Final = re.compile(
    r"passw(?:or)?d|passphrase|secret|api-?_?key|private-?_?key|access-?_?token|credential|bearer"
)
"""Names of metadata that promise a secret."""

VALUES: Final = (
    ("an access key ID", re.compile(r"(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])")),
    ("a private key", re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY")),
    ("a signed token", re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{4,}\.")),
    (
        "a token of a code or chat service",
        re.compile(r"(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{36}|xox[abprs]-[0-9])"),
    ),
    ("a password in a URL", re.compile(r"[a-z][a-z0-9+.-]{0,20}://[^\s/:@]{1,100}:[^\s/:@]{1,100}@")),
)
"""The forms of secrets: for each, its name in words, and a pattern. No pattern has two endless repetitions in a row, so
a hostile value costs little.
"""
ENCRYPTED: Final = re.compile(r"x-amz-(?:key|iv|wrap-alg|cek-alg|matdesc|tag-len)")
"""Names that encryption by the client writes; their values are sealed."""


@rule("O15", "metadata-secret-exposed", Severity.HIGH, reads=("head", "access"), values=True, head=("content",))
def check(head: Head, access: ObjectAccess) -> Iterator[Hit]:
    """
    Why: anyone who can read an object also gets its metadata in the response headers, and logs keep headers.
    Flagged: user metadata of an exposed object with a name like password, secret, api-key or credential, or with a
        value that has the form of an access key ID, a private key, a token, or a URL with a password.
    Not flagged: objects that are not exposed; empty values; the wrapped keys of client-side encryption.
    Blind to: secrets in another form; metadata that S3 cannot send in a header; tags; object annotations.
    Fix: rotate the secret, because it must be considered leaked; copy the object over itself without it.
    """
    found = [words for words, form in VALUES if any(form.search(value) for value in head.metadata.values())]
    if any(value and _promises(name.lower()) for name, value in head.metadata.items()):
        found.append("a secret by its name")
    if found:
        yield Hit(f"its metadata holds {', '.join(found)}, and {access.strangers} can read it")


def _promises(name: str) -> bool:
    return NAMES.search(name) is not None and ENCRYPTED.match(name) is None
