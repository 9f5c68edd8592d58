"""Libpq's words about a connection become one sentence, with the address and without its tabs."""

import pytest

from concord.messages.connection_words import one_sentence

REFUSED = "failed: Connection refused\n\tIs the server running on that host and accepting TCP/IP connections?"
SAID = [
    (f'connection to server at "127.0.0.1", port 6002 {REFUSED}', "connection refused (127.0.0.1:6002)"),
    (
        f'connection to server at "localhost" (::1), port 6002 {REFUSED}',
        "connection refused (localhost:6002)",
    ),
    (f'connection to server at "::1", port 6002 {REFUSED}', "connection refused ([::1]:6002)"),
    (
        f'Multiple attempts failed:\n- connection to server at "a", port 1 {REFUSED}\n- connection to server at "b"',
        "connection refused (a:1)",
    ),
    (
        'connection is bad: connection to server on socket "/run/.s.PGSQL.1" failed: No such file or directory\n\tIs?',
        "no such file or directory (/run/.s.PGSQL.1)",
    ),
    (
        'connection to server at "a", port 1 failed: FATAL:  password authentication failed for user "Ada"',
        'password authentication failed for user "Ada" (a:1)',
    ),
    (
        'connection to server at "a", port 1 failed: SSL error: certificate verify failed',
        "SSL error: certificate verify failed (a:1)",
    ),
    (
        "server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally\n",
        "server closed the connection unexpectedly",
    ),
    (
        "failed to resolve host 'no': [Errno -2] Name or\tservice",
        "failed to resolve host 'no': [Errno -2] Name or service",
    ),
    ("", ""),
]


@pytest.mark.parametrize(("said", "sentence"), SAID)
def test_it_is_one_sentence(said: str, sentence: str) -> None:
    assert one_sentence(said) == sentence
