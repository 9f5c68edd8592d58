"""Numbers of errors in the configuration (S2-22, S4-137)."""

from collections.abc import Callable

import pytest

from concord.configuration.configuration import Configuration
from concord.messages.errors import ConfigurationInvalid

FILE = """
sites:
  london: {{connection: london, log_reader: london_log_reader}}
  capetown: {{connection: capetown, log_reader: capetown_log_reader}}
replication_sets:
  bank: {{tables: [{{table: public.account}}]}}
replications:
  r: {{replication_set: bank, publisher: london, subscriber: capetown, skip: {skip}{more}}}
"""


def test_a_number_may_stand_without_quotes(parse: Callable[[str], Configuration]) -> None:
    found = parse(FILE.format(skip="[23505, CNC06]", more=""))
    assert found.replication("r").skip == ("23505", "CNC06")


@pytest.mark.parametrize(
    ("skip", "more", "said"),
    [
        ("[53100]", "", "about the server or a table's structure"),  # a full disk
        ("[42703]", "", "about the server or a table's structure"),  # a column that was dropped
        ("[40P01]", "", "about the server or a table's structure"),  # a deadlock is tried again
        ("[CNC01]", "", "about the server or a table's structure"),  # a newer run
        ("[duplicate]", "", "not the number of an error"),
        ("[CNC06]", ", updates: queued", "replayed whole, or not at all"),
    ],
)
def test_what_would_leave_an_unnoticed_gap_is_refused(
    parse: Callable[[str], Configuration], skip: str, more: str, said: str
) -> None:
    with pytest.raises(ConfigurationInvalid, match=said):
        parse(FILE.format(skip=skip, more=more))
