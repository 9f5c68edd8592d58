"""The process of `replaying`: jobs from its parent, one after the other, and to it each report. It imports nothing
else."""

import pickle
import sys
import time

from concord.databases.registry import dialect
from concord.jobs.replication import ReplicationJob
from concord.messages.errors import ConcordError
from concord.transactional.replicate import replicate


def main() -> None:
    """Until the parent has no more; the error in place of the report where a run has failed."""
    while True:
        try:
            job: ReplicationJob = pickle.load(sys.stdin.buffer)  # noqa: S301 - our parent wrote it
        except EOFError:
            return
        began = time.process_time()
        try:
            told: object = replicate(job, dialect)
        except ConcordError as error:
            told = error
        pickle.dump((told, time.process_time() - began), sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
