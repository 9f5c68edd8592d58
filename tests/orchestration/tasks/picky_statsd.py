"""A StatsD client that takes what Airflow says, and fails at what Concord says."""

from statsd import StatsClient


class PickyClient(StatsClient):  # type: ignore[misc]
    """`[metrics] statsd_custom_client_path` of a test."""

    def _send(self, data: str) -> None:
        if "concord" in data:
            raise ConnectionError("no")
        super()._send(data)
