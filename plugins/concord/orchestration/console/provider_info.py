"""An installed Concord's facts for Airflow: `airflow providers list`, and the section of its configuration.

There is no connection type: a site is a `postgres` connection, whose form and test belong to Airflow's own
provider. `provision --check` tests more than that test can: encryption, rights and triggers, of all three logins.
"""

from __future__ import annotations

from typing import Any


def get_provider_info() -> dict[str, Any]:
    """Called by Airflow through the entry point `apache_airflow_provider`."""
    return {
        "package-name": "concord",
        "name": "Concord",
        "description": "Keeps writable copies of relational tables in agreement.",
        "config": {
            "concord": {
                "description": "Where Concord finds what it keeps equal.",
                "options": {
                    "configuration": {
                        "description": "Concord's configuration file. CONCORD_CONFIG goes before it.",
                        "version_added": None,
                        "type": "string",
                        "example": "/opt/airflow/config/concord.yaml",
                        "default": None,
                    }
                },
            }
        },
    }
