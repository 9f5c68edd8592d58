"""The suite itself: which tests `make test` runs, in which order, and the record of the last run of all of them."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
