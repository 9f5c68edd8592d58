"""Two sites give one value of a further unique rule to different rows: the publisher's rows stand (S2-04)."""

import pytest

from concord.jobs.link import Direction
from concord.messages.errors import EntryRefused
from tests.given.queued_preferences import are_alike, settle
from tests.given.replicated_accounts import Make
from tests.given.replicated_sites import Replicated
from tests.given.site import Site

#: A code is unique by a constraint, and a place by an exclusion.
SEAT = (
    "CREATE TABLE seat (id int PRIMARY KEY, code text UNIQUE, place int, note text, EXCLUDE (place WITH =))",
)
LOG = (
    "SELECT key ->> 0, type, resolver, winner_site, winner_row ->> 'id', loser_row FROM concord.conflict"
    " ORDER BY 1, decided_at"
)
ACCEPTED = """SELECT id FROM concord."public.seat" WHERE origin LIKE 'capetown#%'"""
POLICIES = [
    ("publisher_wins", "transaction"),
    ("publisher_wins", "row"),
    ("subscriber_wins", "transaction"),
    ("publisher_wins_and_reinitialize", "row"),
]


def seats(replicated: Make, **conflict: object) -> Replicated:
    """Nine of them at both sites, initialized."""
    made = replicated(SEAT, "public.seat", updates="queued", conflict=conflict)
    made.london.run("INSERT INTO seat SELECT n, 'code ' || n, n FROM generate_series(1, 9) n")
    made.initialize_both_ways()
    return made


def codes(site: Site) -> dict[int, str]:
    return dict(site.rows("SELECT id, code FROM seat"))


@pytest.mark.parametrize(("policy", "scope"), POLICIES)
def test_the_publishers_rows_stand_and_the_others_transaction_is_rejected_as_a_whole(
    replicated: Make, policy: str, scope: str
) -> None:
    """S2-04, S3-18: neither direction stops. The log has each row that fell, and the row whose value it was to have.

    A row that falls with its transaction has lost to itself.
    """
    sites = seats(replicated, policy=policy, scope=scope)
    sites.london.run(
        "INSERT INTO seat VALUES (20, 'inserted', 20)",
        "UPDATE seat SET code = 'updated' WHERE id = 1",
        "UPDATE seat SET place = 30 WHERE id = 2",
    )
    sites.capetown.run(
        "BEGIN; INSERT INTO seat VALUES (21, 'inserted', 21); UPDATE seat SET note = 'with it' WHERE id = 9; COMMIT",
        "UPDATE seat SET code = 'updated' WHERE id = 3",
        "UPDATE seat SET place = 30 WHERE id = 4",
        "UPDATE seat SET note = 'kept' WHERE id = 5",
    )
    sites.london.run("UPDATE seat SET note = 'later' WHERE id = 20")
    before = sites.rows("seat")[0]
    settle(sites)
    changed = [row for row in sites.rows("seat")[0] if row not in before]
    assert changed == [(5, "code 5", 5, "kept")]
    assert are_alike(sites, "id")
    found = sites.london.rows(LOG)
    assert [row[:5] for row in found] == [
        (key, *("uniqueness",) * 2, "london", won)
        for key, won in (("21", "20"), ("3", "1"), ("4", "2"), ("9", "9"))
    ]
    assert [row[5]["code"] for row in found] == ["inserted", "updated", "code 4", "code 9"]
    assert sites.london.rows(ACCEPTED) == [(5,)]
    assert sites.capetown.rows("SELECT FROM concord.compensation") == []


def test_values_that_go_around_between_rows_come_to_rest(replicated: Make) -> None:
    """A compensation meets what the next one takes back: a row may be away for a run."""
    sites = seats(replicated)
    sites.capetown.run(
        "BEGIN; UPDATE seat SET code = 'x' WHERE id = 1; UPDATE seat SET code = 'code 1' WHERE id = 2;"
        " UPDATE seat SET code = 'code 2' WHERE id = 1; COMMIT",
        "UPDATE seat SET code = 'y' WHERE id = 3",
    )
    sites.london.run(
        "UPDATE seat SET code = 'x' WHERE id = 8",
        "BEGIN; UPDATE seat SET code = 'z' WHERE id = 3; UPDATE seat SET code = 'code 3' WHERE id = 7; COMMIT",
        "UPDATE seat SET note = 'mine' WHERE id = 1",
    )
    settle(sites)
    expected = {n: f"code {n}" for n in range(1, 10)} | {8: "x", 3: "z", 7: "code 3"}
    assert (codes(sites.london), codes(sites.capetown)) == (expected, expected)
    assert are_alike(sites, "id")


def test_a_value_that_the_publisher_has_given_up_meanwhile_is_the_subscribers(replicated: Make) -> None:
    """Nobody loses: the subscriber leaves the publisher's row out until it asks for it."""
    sites = seats(replicated)
    sites.london.run("UPDATE seat SET code = 'free' WHERE id = 1")
    sites.capetown.run("INSERT INTO seat VALUES (21, 'free', 21)")
    assert sites.run().tables[0].superseded == 1
    assert codes(sites.capetown)[1] == "code 1"
    sites.london.run("UPDATE seat SET code = 'other' WHERE id = 1")
    settle(sites)
    assert (codes(sites.london)[1], codes(sites.london)[21]) == ("other", "free")
    assert are_alike(sites, "id")
    assert sites.london.rows(LOG) == []


def test_a_rule_that_the_publisher_has_not_stops_the_replication(replicated: Make) -> None:
    """Its row would be asked for for ever."""
    sites = seats(replicated)
    sites.capetown.run("ALTER TABLE seat ADD UNIQUE (note)")
    sites.london.run("UPDATE seat SET note = 'same' WHERE id < 3")
    with pytest.raises(EntryRefused, match="seat_note_key"):
        sites.run()
    sites.capetown.run("ALTER TABLE seat DROP CONSTRAINT seat_note_key")
    settle(sites)
    assert are_alike(sites, "id")


def test_what_a_trigger_of_users_breaks_is_refused(replicated: Make) -> None:
    """Another table's rule is nobody's to decide."""
    sites = seats(replicated)
    sites.london.run(
        "CREATE TABLE witness (id int PRIMARY KEY)",
        "GRANT INSERT ON witness TO PUBLIC",
        "CREATE FUNCTION witness() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN INSERT INTO public.witness VALUES (1); RETURN NULL; END $$",
        "CREATE TRIGGER witness AFTER UPDATE ON seat FOR EACH ROW EXECUTE FUNCTION witness()",
        "ALTER TABLE seat ENABLE ALWAYS TRIGGER witness",
        "INSERT INTO witness VALUES (1)",
    )
    sites.capetown.run("UPDATE seat SET note = 'a' WHERE id = 1")
    sites.run()
    with pytest.raises(EntryRefused, match="witness_pkey"):
        sites.run(direction=Direction.REVERSE)
