"""A certificate authority, made when the server starts, and its certificate for this machine."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path
from typing import Final

_AUTHORITY: Final = ("basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign")
_NAMES: Final = """\
subjectAltName=DNS:localhost,IP:127.0.0.1
basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature,keyEncipherment
extendedKeyUsage=serverAuth
subjectKeyIdentifier=hash
authorityKeyIdentifier=keyid
"""


def _openssl(folder: Path, *arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"openssl {arguments[0]} failed: {done.stderr.strip()}")


def make_certificates(folder: Path) -> Path:
    """Write ca.pem, cert.pem and key.pem (RSA 2048, as S3's own are); returns the path of ca.pem."""
    (folder / "names").write_text(_NAMES)
    extensions = [word for extension in _AUTHORITY for word in ("-addext", extension)]
    new = ("req", "-newkey", "rsa:2048", "-nodes")
    _openssl(
        folder, *new, "-x509", "-days", "2", "-subj", "/CN=stub CA", *extensions, "-keyout", "ca.key", "-out", "ca.pem"
    )
    _openssl(folder, *new, "-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "request")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names")
    _openssl(folder, "x509", "-req", "-in", "request", *signed, "-out", "cert.pem")
    return folder / "ca.pem"


def server_context(folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context
