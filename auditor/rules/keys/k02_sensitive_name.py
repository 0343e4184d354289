"""K02: an exposed object has the name of a secret."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from auditor.model.access import ObjectAccess
from auditor.model.object import ObjectRef
from auditor.rules.base import Hit, Severity, rule

FOLDERS: Final = re.compile(r"(?:^|/)\.(?:git|svn|hg|ssh|aws|gnupg|kube|docker)/")
NAMES: Final = re.compile(
    r"(?:^|[/\\])(?:"
    r"\.env(?:\.(?!example|sample|template|dist)[a-z0-9_-]{1,40})?"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)"
    r"|\.(?:htpasswd|pgpass|netrc|npmrc|pypirc|git-credentials|dockercfg|my\.cnf|s3cfg|boto)"
    r"|credentials(?:\.(?:csv|json|xml|ini|ya?ml|txt))?"
    r"|(?:secrets?|passwords?)\.(?:json|ya?ml|txt|csv|xml|ini|toml|kdbx|xlsx?)"
    r"|wp-config\.php|web\.config|local_settings\.py|master\.key|shadow"
    r")$"
)
ENDINGS: Final = re.compile(
    r"\.(?:"
    r"pem|ppk|p12|pfx|jks|keystore|kdbx|key|ovpn|tfstate(?:\.backup)?"
    r"|(?:sql|dump|bak|mdb|sqlite3?)(?:\.(?:gz|bz2|xz|zst|zip|7z))?"
    r")$"
)
PUBLIC: Final = re.compile(
    r"(?:^|[/._-])(?:pub|public|ca|cert|certs|certificate|chain|fullchain|bundle)[a-z0-9._-]{0,60}\.pem$"
)
"""Files of certificates and public keys, which are no secrets."""


@rule("K02", "key-sensitive-exposed", Severity.CRITICAL, reads=("ref", "access"))
def check(ref: ObjectRef, access: ObjectAccess) -> Iterator[Hit]:
    """
    Why: these are the names that scanners of public buckets try first; one such file often opens all the rest.
    Flagged: an exposed object with the name of a secret, whatever its case: `.env`, `id_rsa`, keys and key stores,
        database dumps, backups, credentials, Terraform state, a file below `.git/` or `.ssh/`.
    Not flagged: objects that are not exposed; `.env.example` and other templates; public keys and certificates by their
        name.
    Blind to: the content of the object; secrets under an unusual name.
    Fix: close the object first, then replace every secret in it: consider them leaked.
    """
    key = ref.key.lower()
    if FOLDERS.search(key) or NAMES.search(key) or (ENDINGS.search(key) and not PUBLIC.search(key)):
        yield Hit(f"it has the name of a secret, and {access.strangers} can open it")
