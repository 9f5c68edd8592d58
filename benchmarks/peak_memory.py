"""How much memory a program and all its children hold at most, looked at ten times a second."""

import threading
from types import TracebackType

import psutil

_SECONDS_BETWEEN_LOOKS = 0.1


class PeakMemory:
    """Watches a process tree while the block runs; then `bytes` is the greatest sum of resident sets seen.

    Pages that processes share are counted in each of them, so the truth is a little lower. The proportional
    set size would be exact, but asking for it stops a Java process for milliseconds.
    """

    def __init__(self, process: int) -> None:
        self.bytes = 0
        self._root = process
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "PeakMemory":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            self.bytes = max(self.bytes, _resident(self._root))
            if self._over.wait(_SECONDS_BETWEEN_LOOKS):
                return


def _resident(root: int) -> int:
    """Resident bytes of a process and its descendants; those that end meanwhile count for nothing."""
    try:
        process = psutil.Process(root)
        family = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    return sum(_resident_of_one(each) for each in family)


def _resident_of_one(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0
