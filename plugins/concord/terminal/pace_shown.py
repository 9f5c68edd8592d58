"""How far a long work is, at a terminal: a bar with rows, rate and time left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from concord.messages.pace import Pace, Tell, silent


@contextmanager
def shown(console: Console | None = None) -> Iterator[Tell]:
    """The function to call with each pace: it shows it on standard error if that is a terminal. A pipe has the
    result alone."""
    screen = console or Console(stderr=True)
    if not screen.is_terminal:
        yield silent
        return
    with _bars(screen) as bars:
        yield bars


@contextmanager
def _bars(screen: Console) -> Iterator[Tell]:
    progress = Progress(
        TextColumn("{task.description}"), BarColumn(None), console=screen, transient=True, expand=True
    )
    last: list[tuple[tuple[str, str], TaskID]] = []  # the work under way

    def tell(pace: Pace) -> None:
        progress.start()  # not before the first one, so that a short work leaves no trace
        work = (pace.work, pace.what)
        if not last or last[-1][0] != work:
            for _, task in last:
                progress.remove_task(task)
            last[:] = [(work, progress.add_task(""))]
        known = pace.of if pace.rate > 0 else None
        progress.update(last[-1][1], description=str(pace), completed=pace.done, total=known)

    try:
        yield tell
    finally:
        progress.stop()
