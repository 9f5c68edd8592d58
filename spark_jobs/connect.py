"""A session on a Spark Connect server, for a driver that is somebody else's process: an Airflow task, a terminal.

`python -m spark_jobs.connect` asks the server that CONCORD_SPARK_CONNECT names to run one Python task: status 0
when it did. The token, if any, is in SPARK_CONNECT_AUTHENTICATE_TOKEN.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Thread
from typing import TYPE_CHECKING, cast

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.session import SparkSession as RemoteSession

from concord.messages.errors import ConcordError, ConnectionRefused, SparkUnavailable
from concord.transmission.errors import worded
from spark_jobs import interruption
from spark_jobs.code_state import in_this_code, require_unchanged
from spark_jobs.settings import CONNECT_MODE, SETTINGS

if TYPE_CHECKING:
    import pyarrow as pa

#: The errors that are retried, for about five seconds in all: by default it is more than eight minutes.
_RETRIES = DefaultPolicy(max_retries=6, initial_backoff=100, backoff_multiplier=2.0, max_backoff=2000)
warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")  # our own error says more
#: Seconds until a server that was asked to end a session's work must have answered.
_PATIENCE = 2.0
#: Sessions of this process. pyspark's functions ask the environment which Spark is meant, for all of its threads.
_CONNECTED: set[Connected] = set()
_MODE = Lock()


class Channel(DefaultChannelBuilder):
    """pyspark's, but that it sends a token to other hosts than `localhost` without TLS as well.

    The open Connect server has no TLS of its own; where a proxy adds it, the connection says `use_ssl`.
    """

    @property
    def secure(self) -> bool:
        """Whether TLS is spoken."""
        return self.use_ssl

    def metadata(self) -> Iterable[tuple[str, str]]:
        """The headers that go with every request."""
        token = [] if self.use_ssl or self.token is None else [("authorization", f"Bearer {self.token}")]
        return [*super().metadata(), *token]


class Connected:
    """One session, begun when it is first asked for, and ended with this."""

    def __init__(self, url: str, tag: str = "concord") -> None:
        self._url, self._tag = url, tag
        self._lock = Lock()
        self._session: RemoteSession | None = None

    def __call__(self) -> SparkSession:
        """The session, whichever thread asks. Raises SparkUnavailable or ConnectionRefused."""
        with self._lock:
            if self._session is None:
                self._session = _begun(self._url, self._tag)
                _speak_connect(self)
                interruption.begin(self.interrupt)
            return cast("SparkSession", self._session)  # it has all that both kinds share

    def interrupt(self) -> None:
        """End what the server does for the session. From a thread of its own: the caller may be a signal's
        handler."""
        if (session := self._session) is not None:
            asking = Thread(target=_interrupt, args=(session,), daemon=True)
            asking.start()
            asking.join(_PATIENCE)

    def close(self) -> None:
        """End the session."""
        interruption.ended(self.interrupt)
        session, self._session = self._session, None
        if session is not None:
            _fall_silent(self)
            with _quiet():
                session.stop()


@contextmanager
def connected(url: str, tag: str = "concord") -> Iterator[Connected]:
    """The block's own session; an error in the block ends what the server still does for it."""
    session = Connected(url, tag)
    try:
        yield session
    except BaseException:
        session.interrupt()
        raise
    finally:
        session.close()


def _begun(url: str, tag: str) -> RemoteSession:
    """Raises SparkUnavailable, ConnectionRefused where the token is not the server's, or OtherCode."""
    require_unchanged()
    channel = _channel(url)
    session = RemoteSession(connection=channel)
    session.client.set_retry_policies([_RETRIES])
    try:
        with _quiet():
            session.conf._set_all(
                dict(SETTINGS), silent=False
            )  # one round trip; as the builder of sessions does
    except PySparkException as error:
        session.client.close()
        raise _refused(str(error), channel.endpoint) from error
    session.addTag(tag)
    return session


def _speak_connect(connected: Connected) -> None:
    with _MODE:
        _CONNECTED.add(connected)
        os.environ[CONNECT_MODE] = "1"


def _fall_silent(connected: Connected) -> None:
    """The last one to leave lets the process start a Spark of its own."""
    with _MODE:
        _CONNECTED.discard(connected)
        if not _CONNECTED:
            os.environ.pop(CONNECT_MODE, None)


def _channel(url: str) -> Channel:
    """The provider's hook leaves a token's `/` as it is, which pyspark takes for a path. Raises ConnectionRefused."""
    where, found, parameters = url.partition("/;")
    try:
        return Channel(where + found + parameters.replace("/", "%2F"))
    except PySparkException:  # its message has the token
        raise ConnectionRefused(
            "the connection's host, port and extra make no address of a Spark Connect server (sc://host:port)"
        ) from None


def _refused(said: str, endpoint: str) -> ConcordError:
    if "UNAUTHENTICATED" in said:
        return ConnectionRefused(
            f"the Spark Connect server at {endpoint} refuses the token: the Airflow connection's password must be the"
            " server's SPARK_CONNECT_AUTHENTICATE_TOKEN"
        )
    return SparkUnavailable(
        f"no Spark Connect server answers at {endpoint}: start it (`python -m spark_jobs.connect_server`), or mend the"
        " Airflow connection; nothing was written"
    )


def _interrupt(session: RemoteSession) -> None:
    with suppress(Exception), _quiet():
        session.interruptAll()


@contextmanager
def _quiet() -> Iterator[None]:
    """pyspark warns of each request that meets a server or a session that has ended; we say so ourselves."""
    said = logging.getLogger("pyspark.sql.connect.logging")
    before = said.level
    said.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        said.setLevel(before)


def check(url: str) -> None:
    """Run one Python task on the server. Raises SparkUnavailable, ConnectionRefused or OtherCode."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    with connected(url) as session, worded("the Spark Connect server"):
        session().range(1).mapInArrow(in_this_code(task), "id bigint").collect()


def main() -> int:
    """Whether the server is ready, as a status; why not, on standard error."""
    try:
        check(os.environ.get("CONCORD_SPARK_CONNECT", "sc://127.0.0.1:15002"))
    except ConcordError as error:
        sys.stderr.write(f"{error.message}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
