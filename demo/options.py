"""The options of the demo and the local Airflow on the command line."""

import argparse
from pathlib import Path

from demo.edits import FEWEST_FLIGHTS
from demo.flights import ALL_FLIGHTS


def parser(description: str) -> argparse.ArgumentParser:
    """The options that both have."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument(
        "--flights",
        type=_flight_count,
        default=ALL_FLIGHTS,
        metavar="N",
        help=f"load the first N flights of the year only ({FEWEST_FLIGHTS:,} to {ALL_FLIGHTS:,}; default: all)",
    )
    made.add_argument(
        "--directory",
        type=Path,
        metavar="DIR",
        help="where everything is kept while it runs (default: below .demo)",
    )
    return made


def _flight_count(text: str) -> int:
    count = int(text.replace(",", ""))
    if not FEWEST_FLIGHTS <= count <= ALL_FLIGHTS:
        raise argparse.ArgumentTypeError(f"there are {FEWEST_FLIGHTS:,} to {ALL_FLIGHTS:,} flights to load")
    return count
