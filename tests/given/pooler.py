"""A pooler before a real server, in a few lines: it drops what a login asks of its session, and may share sessions.

It gives its clients a process and a key of its own, as PgBouncer does. A login goes to the server, which answers it
itself. Shared sessions are for statements that neither copy nor are canceled.
"""

import asyncio
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread

from concord.jobs.site import Credentials, SiteAccess

_ENCRYPTION = (80877103, 80877104)  #: requests for TLS and for GSSAPI
_STARTUP = 196608
_CHALLENGES = (3, 5, 10, 11)  #: of a login, that the client answers
_BLOCK = 1 << 16

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Pooler:
    """A port of this machine behind which the sessions of a server are."""

    host: str
    port: int
    shares: bool = False  #: a session has a server's for one transaction at a time
    entry: int = 0  #: the port
    _idle: list[Streams] = field(default_factory=list, repr=False)
    _clients: set[asyncio.StreamWriter] = field(default_factory=set, repr=False)
    _serving: set[asyncio.Task[object]] = field(default_factory=set, repr=False)
    _is_open: Event = field(default_factory=Event, repr=False)
    _close: Callable[[], object] = field(default=lambda: None, repr=False)

    def behind(self, login: Credentials) -> Credentials:
        """The same login through the pooler."""
        return login.model_copy(update={"host": "127.0.0.1", "port": self.entry})

    def before(self, access: SiteAccess) -> SiteAccess:
        """The same site through the pooler."""
        logins = {"reader": self.behind(access.reader), "applier": self.behind(access.applier)}
        if access.log_reader is not None:
            logins["log_reader"] = self.behind(access.log_reader)
        return access.model_copy(update=logins)

    async def serve(self) -> None:
        """Until it is closed; sessions end then."""
        loop, closed = asyncio.get_running_loop(), asyncio.Event()
        self._close = lambda: loop.call_soon_threadsafe(closed.set)
        async with await asyncio.start_server(self._client, "127.0.0.1", 0) as listening:
            self.entry = listening.sockets[0].getsockname()[1]
            self._is_open.set()
            await closed.wait()
        await _end(*(writer for _, writer in self._idle), *self._clients)
        await asyncio.gather(*self._serving)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving = asyncio.current_task()
        assert serving is not None
        self._serving.add(serving)
        self._clients.add(writer)
        server: Streams | None = None
        try:
            server = await self._log_in(reader, writer)
            if server is not None and self.shares:
                self._idle.append(server)
                server = None
                await self._share(reader, writer)
            elif server is not None:
                await asyncio.gather(_pass(reader, server[1]), _pass(server[0], writer))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # one of the two has gone
        finally:
            await _end(writer, *([server[1]] if server else []))
            self._clients.discard(writer)
            self._serving.discard(serving)

    async def _log_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Streams | None:
        """The server's session, once it is ready; None for a request to cancel."""
        code, said = await _request(reader)
        while code in _ENCRYPTION:
            writer.write(b"N")
            code, said = await _request(reader)
        there, forth = await asyncio.open_connection(self.host, self.port)
        if code != _STARTUP:
            await _end(forth)
            return None
        words = said.rstrip(b"\0").split(b"\0")
        asked = dict(zip(words[::2], words[1::2], strict=True))
        asked.pop(b"options", None)
        kept = b"".join(b"%s\0%s\0" % pair for pair in asked.items()) + b"\0"
        forth.write(struct.pack("!ii", len(kept) + 8, code) + kept)
        while not (frame := await _answer(there, writer)).startswith(b"Z"):
            if frame[:1] == b"R" and struct.unpack("!i", frame[5:9])[0] in _CHALLENGES:
                forth.write(await _frame(reader))
        return there, forth

    async def _share(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held: Streams | None = None
        try:
            while not (frame := await _frame(reader)).startswith(b"X"):
                held = held or self._idle.pop()
                held[1].write(frame)
                if frame[:1] in b"QS" and await _ready(held[0], writer) == b"I":
                    self._idle.append(held)
                    held = None
        finally:
            await _end(*([held[1]] if held else []))


async def _request(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    size, code = struct.unpack("!ii", await reader.readexactly(8))
    return code, await reader.readexactly(size - 8)


async def _frame(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(struct.unpack("!i", head[1:])[0] - 4)


async def _answer(server: asyncio.StreamReader, client: asyncio.StreamWriter) -> bytes:
    """Pass one answer of the server's on."""
    frame = await _frame(server)
    if frame.startswith(b"K"):
        frame = frame[:5] + os.urandom(8)
    client.write(frame)
    await client.drain()
    return frame


async def _ready(server: asyncio.StreamReader, client: asyncio.StreamWriter) -> bytes:
    """Pass the server's answers on until it is ready; its state then."""
    while not (frame := await _answer(server, client)).startswith(b"Z"):
        pass
    return frame[5:]


async def _pass(taken: asyncio.StreamReader, given: asyncio.StreamWriter) -> None:
    while block := await taken.read(_BLOCK):
        given.write(block)
        await given.drain()
    given.close()


async def _end(*writers: asyncio.StreamWriter) -> None:
    for each in writers:
        each.close()
        with suppress(OSError):
            await each.wait_closed()


@contextmanager
def pooler(host: str, port: int, *, shares: bool = False) -> Iterator[Pooler]:
    """One that is open for as long as the block."""
    made = Pooler(host, port, shares)
    serving = Thread(target=lambda: asyncio.run(made.serve()), daemon=True)
    serving.start()
    made._is_open.wait()
    try:
        yield made
    finally:
        made._close()
        serving.join()
