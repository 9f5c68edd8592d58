"""The rows that links have not sent yet: they have arrived at their source since their position."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import psycopg

from concord.databases.contract.memory import session_of
from concord.databases.contract.quoting import literal, qualified
from concord.databases.contract.status import Pending
from concord.databases.postgresql.facts.connection import connect, in_our_words, rows
from concord.databases.postgresql.rows import acquire
from concord.jobs.site import SiteAccess
from concord.values.moment import moment

_SENT = """
SELECT l.link, l.peer, l.history -> 0, t.name, t.shadow
  FROM concord.link_state l JOIN concord.replicated_table t ON l.initialized ? t.name
 WHERE l.role = 'source' AND l.history <> '[]' ORDER BY 1, 4"""


def pending(site: SiteAccess, links: Mapping[str, Mapping[str, str | None]]) -> dict[str, Pending]:
    """Of each of the links that have begun at this site; all tables are counted in one round trip.

    `links` are those that lead away from it, each with the fingerprints of its tables' row filters. A row that an
    application has marked counts from the next run on, which registers it. Raises a ConcordError.
    """
    try:
        with connect(site.reader, "concord status") as connection:
            sent = rows(connection, _SENT)
            found = {link: Pending() for link, *_ in sent if link in links}
            counts = list(_counts(sent, links))
            for link, count, oldest in acquire.together(connection, counts):
                found[link] += Pending(count, None if oldest is None else moment(oldest))
    except psycopg.Error as error:
        raise in_our_words(error, site.name) from error
    return found


def _counts(sent: list[tuple[object, ...]], links: Mapping[str, Mapping[str, str | None]]) -> Iterator[str]:
    for link, peer, session, table, shadow in sent:
        filters = links.get(str(link), {})
        if table in filters:
            since = session_of(session).position.of(str(table))
            unsent = acquire.unsent(since, str(peer), filters[str(table)])
            relation = qualified("concord", str(shadow))
            yield f"SELECT {literal(str(link))}, count(*), min(p.changed_at) FROM {relation} p WHERE {unsent}"
