"""A mail server of a test: takes what is sent to it, and keeps it."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread

import pytest

from tests.conftest import PROJECT
from tests.orchestration.file_notifier import connection


@dataclass
class Mailbox:
    """Where the server listens, and each message with the recipients of its envelope."""

    port: int = 0
    mails: list[tuple[list[str], EmailMessage]] = field(default_factory=list)


@contextmanager
def mail_server() -> Iterator[Mailbox]:
    """It knows the five words that a client without encryption and login needs."""
    box = Mailbox()

    class Session(StreamRequestHandler):
        def handle(self) -> None:
            recipients: list[str] = []
            self._say(220)
            while line := self.rfile.readline().decode().strip():
                word = line.upper()
                if word.startswith("RCPT TO:"):
                    recipients.append(line[8:].strip(" <>"))
                if word != "DATA":
                    self._say(221 if word == "QUIT" else 250)
                    continue
                self._say(354)
                text = b"".join(iter(self.rfile.readline, b".\r\n"))
                box.mails.append((recipients, message_from_bytes(text, policy=policy.default)))
                self._say(250)

        def _say(self, code: int) -> None:
            self.wfile.write(f"{code} so\r\n".encode())

    with ThreadingTCPServer(("127.0.0.1", 0), Session) as server:
        box.port = server.server_address[1]
        Thread(target=server.serve_forever, daemon=True).start()
        yield box
        server.shutdown()


@contextmanager
def mails_through(alerts: str, page: str, environment: pytest.MonkeyPatch) -> Iterator[Mailbox]:
    """The same, and the connections by which that page of docs/ has people told."""
    text = (PROJECT / "docs" / page).read_text()
    written = json.loads(re.search(r'\{"notifier": "airflow.providers.smtp.*?\}"\}', text, re.DOTALL)[0])  # type: ignore[index]
    plain = {"disable_ssl": True, "disable_tls": True, "from_email": "concord@example.org"}
    with mail_server() as box:
        server = {"conn_type": "smtp", "host": "127.0.0.1", "port": box.port, "extra": plain}
        environment.setenv("AIRFLOW_CONN_SMTP_DEFAULT", json.dumps(server))
        environment.setenv(f"AIRFLOW_CONN_{alerts.upper()}", connection(written.pop("notifier"), **written))
        yield box
