"""One line per step on the terminal, with its seconds; a long step shows that it is alive."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

#: How often a step says that it goes on where there is no terminal to animate.
_SECONDS_BETWEEN_SIGNS = 10.0
#: As wide as what stands before a step's title.
_MARGIN = " " * len("✓   0.0 s  ")


class Step:
    """A step under way. `result` is added to its line; `activity` tells what it is busy with."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.result = ""
        self.activity: Callable[[], str] = lambda: ""
        self._began = time.monotonic()
        self._ended: float | None = None

    @property
    def seconds(self) -> float:
        """How long it took, or has taken so far."""
        return (self._ended or time.monotonic()) - self._began

    def end(self) -> None:
        """From now on `seconds` stands still."""
        self._ended = time.monotonic()

    def __str__(self) -> str:
        return f"{self.title} … {self.activity()}".rstrip()


class Progress:
    """The steps of a demo, in order, and how long each took."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the first step could begin."""
        return time.monotonic() - self._began

    @contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """Show `title` while the block runs, then one line with its seconds."""
        step = Step(title)
        try:
            with self._alive(step):
                yield step
            step.end()
        except BaseException:
            self._print_line("[red]✗[/]", step)
            raise
        self._print_line("[green]✓[/]", step)

    @contextmanager
    def _alive(self, step: Step) -> Iterator[None]:
        over = threading.Event()
        show = self._animate if self._console.is_terminal else self._give_signs
        thread = threading.Thread(target=show, args=(step, over), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _animate(self, step: Step, over: threading.Event) -> None:
        with self._console.status("") as status:
            while not over.wait(0.1):
                status.update(f"{step.seconds:5.1f} s  {step}")

    def _give_signs(self, step: Step, over: threading.Event) -> None:
        while not over.wait(_SECONDS_BETWEEN_SIGNS):
            self._console.print(f"  {step.seconds:5.0f} s  {step}", style="dim", highlight=False)

    def _print_line(self, mark: str, step: Step) -> None:
        line = f"{mark} {step.seconds:5.1f} s  {step.title}"
        fits = len(_MARGIN) + len(step.title) + 2 + len(step.result) <= self._console.width
        apart = "  " if fits else f"\n{_MARGIN}"
        self._console.print(line + (f"{apart}[dim]{step.result}[/]" if step.result else ""), highlight=False)
