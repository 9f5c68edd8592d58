"""`python -I -S hand_over.py PYTHON OPTIONS APPLICATION ARGUMENTS`: begins `handover`, which is compiled already."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120

from spark_jobs.handover import main

main(sys.argv[1], sys.argv[2:])
