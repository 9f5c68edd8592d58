"""The code allows and asks for what the security page says of options and sessions."""

import re
from pathlib import Path

from concord.databases.postgresql.facts.connection import conninfo
from concord.jobs.site import ALLOWED_OPTIONS, Credentials
from tests.docs.rights import rewritten

PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text()


def test_the_options_of_a_connection_are_those_that_are_allowed() -> None:
    (sentence,) = re.findall(r"Only (.*?) may stand in a connection's extra", PAGE, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", sentence)) == ALLOWED_OPTIONS | {"dialect"}


def test_connections_to_other_machines_are_verified_as_the_page_says() -> None:
    rows = [
        [cell.strip() for cell in line.split("|")]
        for line in PAGE.splitlines()
        if line.startswith("| Concord |")
    ]
    said = {where: verified for _, _, where, _, verified, _ in rows}
    assert "`verify-full`" in said["a site on another machine"]
    for host, where in (
        ("db.london.example", "a site on another machine"),
        ("127.0.0.1", "a site on this machine"),
    ):
        settings = conninfo(Credentials(host=host, database="crm", user="reader"))
        assert ("sslmode=verify-full" in settings) is ("verify-full" in said[where])


def test_the_rights_of_reader_and_applier_are_those_that_a_provisioned_site_gives_them() -> None:
    assert rewritten(PAGE) == PAGE, "python -m tests.docs.rights writes them anew"
