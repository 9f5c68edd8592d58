"""The process of a node of `logger`: every way to it, run after run, until somebody kills it."""

import pickle
import sys
import time
from threading import Thread

from concord.databases.registry import dialect
from concord.jobs.replication import ReplicationJob
from concord.messages.errors import ConcordError
from concord.transactional.replicate import replicate


def main() -> None:
    """Each way in a thread of its own."""
    threads = [Thread(target=_carry, args=(job,)) for job in pickle.load(sys.stdin.buffer)]  # noqa: S301 - our parent's
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def _carry(job: ReplicationJob) -> None:
    while True:
        try:
            replicate(job.model_copy(update={"epoch": time.time_ns() // 1_000_000}), dialect)
        except ConcordError as error:
            sys.stderr.write(f"{error.message}\n")
            sys.stderr.flush()
            time.sleep(0.5)


if __name__ == "__main__":
    main()
