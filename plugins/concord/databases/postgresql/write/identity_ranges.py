"""Each site's sequences hand out numbers of its own share alone, and never one twice (S2-18, F48)."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Several

from concord.databases.contract.quoting import literal, qualified, quote
from concord.databases.postgresql.facts import sequences
from concord.databases.postgresql.facts.connection import Connection, one, run
from concord.databases.postgresql.facts.privileges import missing, refuse_missing
from concord.databases.postgresql.facts.sequences import Fed, Sequence, read
from concord.databases.postgresql.write.judged import Judged
from concord.messages.grouped import listed
from concord.tables.identity import GREATEST, SLOTS, Share
from concord.tables.replication_set import ReplicatedTable, TableName

#: Below this part of its numbers left, a sequence is named.
LITTLE = 0.10

#: A gap up to this many numbers is closed by drawing them, which no concurrent caller can undo. A longer one is
#: closed by setting the sequence, which only that many callers between two statements could overtake.
DRAWN = 1000


def refusals(site: str, sequence: Sequence, share: Share) -> Iterator[str]:
    """Why a sequence cannot be held to its share, each one line."""
    where = f"{site}: sequence {sequence}"
    if sequence.increment < 0:
        yield f"{where} counts downwards; identity needs it upwards (ALTER SEQUENCE … INCREMENT BY 1)"
    limit = sequence.largest if share.step > 1 else sequence.holds
    if share.first > limit or (share.step == 1 and share.last > limit):
        last = share.first if share.step > 1 else share.last
        yield f"{where} holds {limit} at most, less than {last} of its share; choose smaller numbers or a wider type"


def statement(sequence: Sequence, share: Share, floor: int) -> str:
    """Hold the sequence to its share: idempotent, forwards only, past every number of the share that a row has.

    `floor` is the greatest number that any site's sequence handed out before numbers were shared. The first one of
    a residue class stands above it, so that no row of before has it. The first pass looks; what is not in order is
    locked by an ALTER that changes nothing, looked at again, and altered. Where a row has the last number of the
    share, the sequence is used up, as if it had handed that number out.
    """
    bounds = f" MINVALUE {share.first} MAXVALUE {share.last} START WITH {share.first}"
    limits = bounds if share.step == 1 else ""
    least = "1" if share.step == 1 else f"least(wanted, {GREATEST})::bigint"
    name, limit = literal(sequence.sql), f"{share.last}::numeric" if share.step == 1 else "seqmax"
    body = f"""
DECLARE
  following numeric; newest numeric; wanted numeric; ending numeric; settled boolean;
BEGIN
  FOR pass IN 1..2 LOOP
    SELECT seqincrement = {share.step} AND NOT seqcycle AND {_held(share)},
           {limit} - mod({limit} - {share.first}, {share.step}) INTO STRICT settled, ending
      FROM pg_catalog.pg_sequence WHERE seqrelid = {name}::regclass;
    SELECT CASE WHEN is_called THEN last_value::numeric + seqincrement ELSE last_value END INTO STRICT following
      FROM {sequence.sql}, pg_catalog.pg_sequence WHERE seqrelid = {name}::regclass;
    wanted := {_following(share, floor)};
    SELECT max(n) INTO newest FROM ({_newest(sequence.fed, share, least)}) x (n);
    wanted := greatest(wanted, coalesce(newest, 0) + 1);
    wanted := wanted + mod(mod({share.first} - wanted, {share.step}) + {share.step}, {share.step});
    wanted := least(greatest(wanted, {share.first}), ending + {share.step});
    EXIT WHEN settled AND wanted = following;
    IF pass = 1 THEN
      ALTER SEQUENCE {sequence.sql} CACHE {sequence.cache};
    ELSE
      EXECUTE {literal(f"ALTER SEQUENCE {sequence.sql} INCREMENT BY {share.step}{limits} NO CYCLE RESTART WITH ")}
              || least(wanted, ending);
      IF wanted > ending THEN
        PERFORM pg_catalog.setval({name}::regclass, ending::bigint, true);
      END IF;
    END IF;
  END LOOP;
END"""
    return f"DO LANGUAGE plpgsql {literal(body)}"


def _held(share: Share) -> str:
    """Condition on a sequence: its limits are those of the share."""
    return f"seqmin = {share.first} AND seqmax = {share.last}" if share.step == 1 else "true"


def _following(share: Share, floor: int) -> str:
    """The number that the sequence is to hand out next, before any row is looked at."""
    if share.step == 1:
        return (
            f"CASE WHEN following BETWEEN {share.first} AND {share.last}::numeric + 1 THEN following"
            f" ELSE {share.first} END"
        )
    return f"greatest(following, CASE WHEN settled THEN 0 ELSE {floor}::numeric + 1 END)"


def _newest(fed: Several[Fed], share: Share, least: str) -> str:
    """The greatest number of the share, not below `least`, that a row has, of each column.

    It is found from the top of its index. In a residue class that reads the numbers of the others, too, down to
    `least`, a bigint so that the index serves. Below the number that the sequence gives next, no number matters.
    """
    queries = [
        f"(SELECT {column}::numeric FROM {qualified(each.table.schema_name, each.table.name)} t"
        f" WHERE {_owned(column, share)} AND {column} >= {least} ORDER BY {column} DESC LIMIT 1)"
        for each in fed
        if each.is_integer
        # By its table: the bare name would be the numeric that is selected, which no index gives in order.
        for column in [f"t.{quote(each.column)}"]
    ]
    return " UNION ALL ".join(queries) or "SELECT NULL::numeric"


def _owned(column: str, share: Share) -> str:
    between = f"{column} BETWEEN {share.first} AND {share.last}"
    return between if share.step == 1 else f"{between} AND ({column} - {share.first}) % {share.step} = 0"


def deviations(connection: Connection, site: str, sequence: Sequence, share: Share) -> Iterator[str]:
    """The faults by which a site hands out numbers that are not its own, or are used; `provision` mends them."""
    where = f"{site}: sequence {sequence}"
    if sequence.increment != share.step or sequence.next not in share.and_one_more:
        stands = f"next {sequence.next} in steps of {sequence.increment}"
        yield f"{where} does not keep to {share.described}: {stands}; run `provision`"
        return
    if sequence.maximum < sequence.next:
        return
    newest = one(
        connection, f"SELECT max(n) FROM ({_newest(sequence.fed, share, str(sequence.next))}) x (n)"
    )[0]
    if newest is not None:
        yield f"{where} comes to {newest}, which a row has, next {sequence.next}; run `provision`"


def notices(site: str, sequence: Sequence, share: Share | None) -> Iterator[str]:
    """Notices about one sequence: little left, starting over, numbers drawn in advance."""
    where = f"{site}: sequence {sequence}"
    first, last = (sequence.minimum, sequence.largest)
    if share is not None:
        first, last = max(first, share.first), min(last, share.last)
    left = max(0, last - sequence.next + 1) / max(1, last - first + 1)
    if sequence.increment > 0 and left < LITTLE:
        yield f"{where} has {left:.1%} of its numbers left: next {sequence.next}, last {last}"
    if sequence.cycles:
        yield f"{where} starts over at {last} and will hand out numbers that rows have; ALTER SEQUENCE … NO CYCLE"
    if share is not None and sequence.cache > 1:
        yield f"{where} caches {sequence.cache} numbers: sessions from before a change of its share use theirs up"


def overlaps(column: str, fed_by: Several[tuple[str, Sequence]]) -> Iterator[str]:
    """A notice where the sequences of two sites will hand out one number: both may use it for a new row."""
    if not any(
        mine.rest.first_common(theirs.rest) is not None
        for index, (_, mine) in enumerate(fed_by)
        for _, theirs in fed_by[index + 1 :]
    ):
        return
    following = ", ".join(f"{site} {sequence.next}" for site, sequence in fed_by)
    yield clash([column], [site for site, _ in fed_by], f" (next: {following})")


def clash(columns: Several[str], sites: Several[str], following: str = "") -> str:
    """The notice for columns whose sequences at these sites hand out one number twice."""
    slot = ", ".join(f"{site}: {place}" for place, site in enumerate(sites, start=1))
    identity = f"identity: {{slots: {max(SLOTS, len(sites))}, slot: {{{slot}}}}}"
    where = "the table" if len(columns) == 1 else "the tables, or for their replication set"
    return (
        f"{listed(columns)}: the sequences of {', '.join(sites[:-1])} and {sites[-1]} will hand out the same numbers"
        f"{following}. An insert fails where a row with its number has arrived (duplicate key). If both sites use a"
        f" number before either row has arrived, that is a conflict. Set `{identity}` for {where}, and run `provision`"
    )


def advance(connection: Connection, judged: Judged, wanted: ReplicatedTable, site: str) -> None:
    """A key of this site's own share that comes in from elsewhere must not be handed out again. After a restore or
    a new load, its sequence has not counted it. Sequences stand outside of transactions, and go forwards only."""
    if wanted.identity is None:
        return
    share = wanted.identity.share(site)
    travelling = {column.name for column in judged.staged.shape.columns}
    for sequence in read(connection, [judged.staged.shape.table.name]):
        for each in sequence.fed:
            if each.is_integer and each.column in travelling and sequence.increment == share.step:
                _pass(connection, judged, sequence, each, share)


def pass_rows(connection: Connection, site: str, tables: Several[TableName]) -> None:
    """Every sequence of these tables, filled from elsewhere, goes on after the numbers that their rows have.

    Only numbers that the sequence is going to hand out count. The very last one that the columns hold does not:
    a special row may have it, and must not use the sequence up. A sequence never goes back.

    Raises PrivilegeMissing.
    """
    _check_rights(connection, site, tables)
    for sequence in read(connection, tables):
        _move(connection, sequence, _furthest(connection, sequence))


def _check_rights(connection: Connection, site: str, tables: Several[TableName]) -> None:
    (login,) = one(connection, "SELECT current_user::text")
    needed = list(sequences.rights_to_move(sequences.names(connection, tables), login))
    refuse_missing(site, missing(connection, needed).values())


def _furthest(connection: Connection, sequence: Sequence) -> int | None:
    """The furthest number on the sequence's way that a row has, in any of its columns, but not the last number."""
    upwards = sequence.increment > 0
    if upwards:
        aggregate, between = "max", (sequence.next, sequence.largest - sequence.increment)
    else:
        aggregate, between = "min", (sequence.smallest - sequence.increment, sequence.next)
    found: list[int] = []
    for each in sequence.fed:
        if not each.is_number or between[0] > between[1]:
            continue
        column, relation = f"t.{quote(each.column)}", qualified(each.table.schema_name, each.table.name)
        own = f"{column} BETWEEN {between[0]} AND {between[1]}"
        if abs(sequence.increment) > 1 or not each.is_integer:
            own += f" AND ({column}::numeric - {sequence.next}) % {sequence.increment} = 0"
        (newest,) = one(connection, f"SELECT {aggregate}({column}) FROM {relation} t WHERE {own}")
        found += [] if newest is None else [int(newest)]
    return (max if upwards else min)(found, default=None)


def _pass(connection: Connection, judged: Judged, sequence: Sequence, fed: Fed, share: Share) -> None:
    column = f"s.{quote(fed.column)}"
    # A number beyond the sequence's end, as in a column made wider than its sequence, is never handed out.
    own = f"NOT s.concord_deleted AND {_owned(column, share)} AND {column} <= {sequence.maximum}"
    newest = one(connection, f"SELECT max({column}) FROM {judged.staged.typed} s WHERE {own}")[0]
    _move(connection, sequence, newest)


def _move(connection: Connection, sequence: Sequence, newest: int | None) -> None:
    """The sequence goes on after a number that it was going to hand out."""
    if newest is None or (gap := (newest - sequence.next) // sequence.increment + 1) <= 0:
        return
    name = literal(sequence.sql)
    if gap <= DRAWN:
        run(connection, f"SELECT pg_catalog.nextval({name}::regclass) FROM generate_series(1, {gap})")
    else:
        run(connection, f"SELECT pg_catalog.setval({name}::regclass, {newest}, true)")
