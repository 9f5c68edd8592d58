"""Bookings of London that Cape Town replays, in a configuration of Airflow's."""

import re
from dataclasses import replace

from concord.configuration.configuration import load
from tests.given.airflow_pair import CONFIGURATION, Pair

REPLICATIONS = """\
replications:
  bookings_to_capetown: {replication_set: bookings, publisher: london, subscriber: capetown, schedule: "*/5 * * * *",
    largest_transaction: {operations: 50}}
"""
NAME = "bookings_to_capetown"


def configured(pair: Pair, replications: str) -> Pair:
    """London publishes bookings, beside the tables that both sites share."""
    text = re.sub(r"applier: (\w+)_applier", r"\g<0>, log_reader: \1_log_reader", CONFIGURATION)
    text = text.replace(
        "synchronizations:", "  bookings: {tables: [{table: public.bookings}]}\nsynchronizations:"
    )
    pair.path.write_text(text + replications)
    return replace(pair, configuration=load(pair.path))


def both(pair: Pair) -> tuple[object, object]:
    one, other = (site.run("SELECT * FROM bookings ORDER BY 1") for site in (pair.london, pair.capetown))
    return one, other
