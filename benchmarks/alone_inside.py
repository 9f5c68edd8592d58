"""The process of `alone`: a pickled job from its parent, the pickled report to it. It imports nothing else."""

import pickle
import sys
from typing import NoReturn

from concord.jobs.comparison import CompareJob
from concord.messages.errors import ConcordError
from spark_jobs.compare import compare


def _no_spark() -> NoReturn:
    raise ConcordError("this comparison asks for Spark, and was expected not to")


def main() -> None:
    """The error in place of the report where it has failed."""
    job: CompareJob = pickle.load(sys.stdin.buffer)  # noqa: S301 - our parent wrote it
    try:
        told: object = compare(job, _no_spark)
    except ConcordError as error:
        told = error
    pickle.dump(told, sys.stdout.buffer)


if __name__ == "__main__":
    main()
