"""The starts of runs, by mode: of a synchronization, or of a replication. Each has sites of its own."""

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks import logical_replication
from demo.starting_point import SYNCHRONIZATION

LOG_READER = "london_log_reader"  #: the connection

#: The parts of the page.
LINKS, REPLICATIONS = "lag", "replication-lag"
#: Of the quick modes so many that a p99 says something; of the others, which take as long each, enough for a p50.
MANY, SOME = 110, 40

_CONFIGURATION = """\
sites:
  london: {{connection: london, reader: london_reader, applier: london_applier{}}}
  capetown: {{connection: capetown, reader: capetown_reader, applier: capetown_applier}}
replication_sets:
  bookings: {{tables: [{{table: public.bookings}}]}}
"""
_SYNCHRONIZATION = (
    "synchronizations:\n  {}: {{replication_set: bookings, source: london, target: capetown, {}}}\n"
)
_REPLICATION = (
    "replications:\n  {}: {{replication_set: bookings, publisher: london, subscriber: capetown, {}}}\n"
)


@dataclass(frozen=True)
class Mode:
    """The settings of the one link. A synchronization's daily schedule has no part in the measurement."""

    settings: str
    commits: int = SOME
    connected: bool = False  #: to a Spark Connect server
    replicates: bool = False  #: users of London alone commit

    @property
    def configuration(self) -> str:
        """The whole file."""
        if self.replicates:
            return _CONFIGURATION.format(f", log_reader: {LOG_READER}") + _REPLICATION.format(
                SYNCHRONIZATION, self.settings
            )
        return _CONFIGURATION.format("") + _SYNCHRONIZATION.format(SYNCHRONIZATION, self.settings)

    @property
    def part(self) -> str:
        """Of the page."""
        return REPLICATIONS if self.replicates else LINKS

    @property
    def dags(self) -> str:
        """How the names of its DAGs begin."""
        return "replicate__" if self.replicates else "synchronize__"

    @property
    def server_settings(self) -> Mapping[str, str]:
        return logical_replication.SETTINGS if self.replicates else {}


MODES = {
    "event-driven, over Connect": Mode('schedule: "@daily", watch: {}', MANY, connected=True),
    "event-driven": Mode('schedule: "@daily", watch: {}'),
    "scheduled, every minute": Mode('schedule: "* * * * *"'),
    "polled, every second": Mode('schedule: "@daily", watch: {listen: false, poll: 1 s}'),
    "replication, watched": Mode("watch: {}", MANY, replicates=True),
    "replication, watched, idle before each commit": Mode("watch: {linger: 1 s}", replicates=True),
    "replication, continuous": Mode("continuous: {}", MANY, replicates=True),
}
