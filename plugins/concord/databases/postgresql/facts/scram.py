"""The text that PostgreSQL stores instead of a password: no statement and no log of the server has to hold the
password.

The server computes the very same from a password in clear text (RFC 5802, RFC 7677); psql's \\password does it, too.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import b64encode

_ITERATIONS = 4096
_SALT_BYTES = 16


def verifier(password: str) -> str:
    """Stands where the password would in ALTER ROLE … PASSWORD. It is ASCII: others would be normalized first."""
    salt = secrets.token_bytes(_SALT_BYTES)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, _ITERATIONS)
    stored = hashlib.sha256(_keyed(salted, b"Client Key")).digest()
    keys = f"{_text(stored)}:{_text(_keyed(salted, b'Server Key'))}"
    return f"SCRAM-SHA-256${_ITERATIONS}:{_text(salt)}${keys}"


def _keyed(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")


def _text(value: bytes) -> str:
    return b64encode(value).decode()
