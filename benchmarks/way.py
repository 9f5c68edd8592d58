"""A way to a database that takes its time, as between two cities: bytes arrive in order, each so much later."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread

from concord.jobs.site import Credentials, SiteAccess

BLOCK = 1 << 18


@dataclass
class Way:
    """A port of this machine behind which the database is `delay` s away, each way; what went over it.

    Each connection carries `rate` bytes a second, each way, as one whose window is full; None: as many as there are.

    A turn is a round trip: the server speaks after the client has. Nobody answers a goodbye, which is none.
    """

    host: str
    port: int
    delay: float
    rate: float | None = None
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep  #: for as long as a block takes at that rate
    logins: int = 0
    turns: int = 0
    entry: int = 0  #: the port
    _is_open: Event = field(default_factory=Event, repr=False)
    _close: Callable[[], object] = field(default=lambda: None, repr=False)

    def to(self, access: SiteAccess) -> SiteAccess:
        """The same site, at the end of this way."""
        return access.model_copy(
            update={"reader": self._moved(access.reader), "applier": self._moved(access.applier)}
        )

    def _moved(self, login: Credentials) -> Credentials:
        return login.model_copy(update={"host": "127.0.0.1", "port": self.entry})

    def forget(self) -> None:
        """Count anew."""
        self.logins = self.turns = 0

    async def serve(self) -> None:
        """Until somebody closes it; whoever is on the way then stays there."""
        loop, closed = asyncio.get_running_loop(), asyncio.Event()
        self._close = lambda: loop.call_soon_threadsafe(closed.set)
        async with await asyncio.start_server(self._carry, "127.0.0.1", 0) as server:
            self.entry = server.sockets[0].getsockname()[1]
            self._is_open.set()
            await closed.wait()

    async def _carry(self, here: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        self.logins += 1
        await asyncio.sleep(2 * self.delay)  # the network's own handshake
        there, forth = await asyncio.open_connection(self.host, self.port)
        client_spoke = False

        def hear(client: bool) -> None:
            nonlocal client_spoke
            self.turns += client_spoke and not client
            client_spoke = client

        try:
            await asyncio.gather(
                self._pass(here, forth, lambda: hear(client=True)),
                self._pass(there, back, lambda: hear(client=False)),
            )
        except ConnectionError:
            pass  # one of the two has gone without a word, and the other one will notice
        finally:
            for each in (forth, back):
                each.close()
            with suppress(ConnectionError):
                await asyncio.gather(forth.wait_closed(), back.wait_closed())

    async def _pass(
        self, taken: asyncio.StreamReader, given: asyncio.StreamWriter, heard: Callable[[], None]
    ) -> None:
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        delivering = asyncio.create_task(_deliver(under_way, given))
        now = asyncio.get_running_loop().time
        while block := await taken.read(BLOCK):
            heard()
            if self.rate is not None:
                await self.sleep(len(block) / self.rate)
            under_way.put_nowait((now() + self.delay, block))
        under_way.put_nowait((now() + self.delay, b""))
        await delivering


async def _deliver(under_way: "asyncio.Queue[tuple[float, bytes]]", given: asyncio.StreamWriter) -> None:
    """Each block at its time; nothing: whoever sent has ended."""
    now = asyncio.get_running_loop().time
    with suppress(ConnectionError):
        while True:
            due, block = await under_way.get()
            await asyncio.sleep(max(0.0, due - now()))
            if not block:
                break
            given.write(block)
            await given.drain()
    given.close()


@contextmanager
def way(
    host: str,
    port: int,
    delay: float = 0.0,
    rate: float | None = None,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> Iterator[Way]:
    """One that is open for as long as the block."""
    made = Way(host, port, delay, rate, sleep)
    serving = Thread(target=lambda: asyncio.run(made.serve()), daemon=True)
    serving.start()
    made._is_open.wait()
    try:
        yield made
    finally:
        made._close()
        serving.join()
