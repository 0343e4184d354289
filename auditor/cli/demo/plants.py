"""The problems that the demo plants, each with the findings and the verdict that the audit must give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from auditor.model.access import Verdict
from auditor.model.object import ALL_USERS, ANONYMOUS_OWNER, AUTHENTICATED_USERS, LOG_DELIVERY

STRANGER: Final = "b1" * 32
"""Canonical ID of another account."""

METADATA: Final = "origin"
"""The metadata that the demo's configuration requires (M01)."""

KMS_KEY: Final = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
PUBLIC_PREFIX: Final = "public/"
"""The prefix of the objects that the demo's bucket policy lets everyone read."""


class Planted(Struct, frozen=True):
    """A planted problem: an object, or a setting of the bucket (then key is None).

    rules: IDs of all rules that must flag it. description: words for the user. verdict: the verdict that it must have.
    put: more arguments of PutObject. labelled: True if it has the required metadata. old: True if it is uploaded before
    the bucket's encryption is turned on.
    """

    key: str | None
    rules: tuple[str, ...]
    description: str
    verdict: Verdict | None = None
    put: Mapping[str, Any] = field(default_factory=dict)
    labelled: bool = True
    old: bool = False


def _object(
    key: str, rules: str, words: str, verdict: Verdict = Verdict.PRIVATE, *, label: bool = True, **put: Any
) -> Planted:
    return Planted(key, tuple(rules.split()), words, verdict, put, label, old="E01" in rules)


_EXPOSED, _SHARED, _MASKED = Verdict.EXPOSED, Verdict.SHARED, Verdict.MASKED
_EVERYONE, _SIGNED, _LOGS = (f'uri="{group}"' for group in (ALL_USERS, AUTHENTICATED_USERS, LOG_DELIVERY))
_OTHER, _NOBODY = f'id="{STRANGER}"', f'id="{ANONYMOUS_OWNER}"'
_PASSWORD: Final = {METADATA: "demo", "db-password": "hunter2"}
_PUBLIC: Final[dict[str, Any]] = {"ACL": "public-read"}
_KMS: Final[dict[str, Any]] = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": KMS_KEY}

PLANTED: Final = (
    _object("finance/salaries.csv", "O02", "anyone can read it", _EXPOSED, **_PUBLIC),
    _object(
        "backups/customers.sql", "O01 K02", "anyone can read and re-share it", _EXPOSED, GrantFullControl=_EVERYONE
    ),
    _object("deploy/settings.yml", "O01", "anyone can change its ACL", _EXPOSED, GrantWriteACP=_EVERYONE),
    _object("plans/roadmap.md", "O04", "any AWS account can read it", _EXPOSED, ACL="authenticated-read"),
    _object("plans/budget.xlsx", "O03", "any account can change its ACL", _EXPOSED, GrantWriteACP=_SIGNED),
    _object("plans/staff.json", "O05", "anyone can read its ACL", _EXPOSED, GrantReadACP=_EVERYONE),
    _object("legacy/dump.sql", "O02 E01 M01 K02", "public, unencrypted, unlabelled", _EXPOSED, label=False, **_PUBLIC),
    _object("media/photo.txt", "O02 O15", "a password in public metadata", _EXPOSED, **_PUBLIC, Metadata=_PASSWORD),
    _object("media/notes.txt", "O16", "anyone, by the anonymous ID", _EXPOSED, GrantRead=_NOBODY),
    _object(f"{PUBLIC_PREFIX}index.html", "M04", "opened by the bucket policy", _EXPOSED, ContentType="text/html"),
    _object("partners/contract.pdf", "O07", "another account controls it", _SHARED, GrantFullControl=_OTHER),
    _object("partners/prices.csv", "O08", "another account can read it", _SHARED, GrantRead=_OTHER),
    _object("partners/index.txt", "O08", "another account sees its ACL", _SHARED, GrantReadACP=_OTHER),
    _object("reports/log.txt", "O06", "the log delivery sees its ACL", _SHARED, GrantReadACP=_LOGS),
    _object("intranet/news.txt", "", "for a broad network", _SHARED),
    _object("board/minutes.txt", "O02", "public, but its KMS key is not", _MASKED, **_PUBLIC, **_KMS),
    _object("legacy/orders.csv", "E01", "older than the encryption"),
    _object("uploads/untitled.bin", "M01", "required metadata is missing", label=False),
    _object("/etc/passwd", "K01", "a key like an absolute path"),
    _object("../../.ssh/id_rsa", "K01", "a key that leaves its folder"),
    _object("logs/\x1b[2Jtoday.log", "K01", "a key that clears the screen"),
    _object("notes\there.txt", "K01", "a key with a tab in it"),
    _object("invoice-\u202efdp.exe", "K01", "a program that looks like a PDF"),
    _object("=cmd()", "K01", "a key that a spreadsheet runs"),
    _object("-rf *", "K01", "a key like an option of rm"),
    Planted(None, ("B01",), "ACLs count in this bucket"),
    Planted(None, ("B02",), "nothing blocks public access"),
    Planted(None, ("B03",), "anyone can list the keys"),
    Planted(None, ("B04",), "the bucket policy is public"),
    Planted(None, ("B05",), "another account controls it"),
    Planted(None, ("B21",), "a broad network is trusted"),
)

NOT_PLANTED: Final = (
    *("O09", "O10", "O11", "O12", "O13", "E02", "E03", "E04", "E06", "E07", "M02", "M07", "I03", "L01", "L02"),
    *("R01", "R02", "V01", "B07", "B08", "B20"),
)
"""IDs of the rules for which the demo plants no problem. The demo's AWS (moto) has one owner, whose account it does not
tell, no S3 Inventory, no stored checksums, no WRITE on objects, no replication, blocks no kind of encryption, and
answers a HEAD without the customer's key. The demo lists no versions, has one default encryption, no service in its
policy, and configures no other rule than M01.
"""

DECOYS: Final = (
    _object("decoys/wait...what..txt", "", "dots within a name"),
    _object("decoys/double//slash", "", "a double slash"),
    _object("decoys/100%+%41 ?#&.txt", "", "characters that URLs quote"),
    _object("decoys/<script>alert(1)</script>.html", "", "markup"),
    _object("decoys/cafe\u0301 \u6587\u66f8 \U0001f4e6", "", "letters of other scripts"),
    _object("decoys/not=cmd()", "", "a formula that is not at the start"),
    _object("decoys/folder/", "", "a folder's marker"),
    _object("decoys/owner.txt", "", "a grant to the owner", ACL="bucket-owner-full-control"),
    _object("decoys/key.txt", "", "a KMS key of its own", ServerSideEncryption="aws:kms"),
)
"""Objects that look wrong and are not: a finding on one is a false alarm."""
