"""A large entry netted per key: the operations that meet on one key form a chain, and its last one is what stays.

Chains alone are kept apart, in a narrow table: most entries have none. The subscriber's row matters to the first
operation of a key only, so that its kind decides what is counted.
"""

from __future__ import annotations

from concord.databases.postgresql.entries.staging import ReplicatedTable

#: SQLSTATE of ours: sets cannot tell what operation after operation does.
NOT_BY_SET = "CNC03"
#: An operation expects a row at its key, or none. A key that changes is left (`M`), and another one is taken (`A`).
ROW, NONE = "('U', 'V', 'D', 'M')", "('I', 'A')"
KINDS = "IUVDMA"
WITHIN = "s.seq > e.seq AND s.seq <= e.last"


class Chains:
    """One table's statements. `e` is the entry, `s` a staged operation."""

    def __init__(self, table: ReplicatedTable) -> None:
        self.place, self.staged = table.place, table.staged
        self.kept = f"pg_temp.concord_chain_{table.place}"
        places = {column.name: at for at, column in enumerate(table.columns)}
        self.before = [table.old("s", name) for name in table.key]
        self.image = "".join(f", s.o{at}" for at in range(len(table.before))) if table.compared else ""
        self.after = [table.after("s", places[name]) for name in table.key]
        self.refused = table.refused
        sent = {column.name for column in table.columns}
        self.has_own_columns = any(column.name not in sent for column in table.table.sent)

    @property
    def create(self) -> str:
        """Emptied with every transaction."""
        return (
            f"CREATE TEMPORARY TABLE IF NOT EXISTS concord_chain_{self.place}"
            ' (seq bigint, operation "char", first "char", before "char", is_last boolean) ON COMMIT DELETE ROWS'
        )

    @property
    def declared(self) -> str:
        """Operations, by kind; the first ones of their keys, and the found ones among these."""
        names = ["n", "nT", "brief", *(f"{what}{kind}" for what in "nfg" for kind in KINDS)]
        return " ".join(f"{name}_{self.place} bigint := 0;" for name in names)

    @property
    def is_moved(self) -> str:
        """The operation changes its row's key."""
        return f"(s.operation IN ('U', 'V') AND ({', '.join(self.before)}) IS DISTINCT FROM ({', '.join(self.after)}))"

    @property
    def kind(self) -> str:
        return f"""CASE WHEN {self.is_moved} THEN 'A' ELSE s.operation END"""

    def found(self) -> str:
        """Count the operations; find the chains, and refuse those that sets cannot tell."""
        p = self.place
        counts = ", ".join(f"count(*) FILTER (WHERE {self.kind} = '{kind}')" for kind in "IUVDA")
        into = ", ".join(f"n{kind}_{p}" for kind in "IUVDA")
        return f"""
  SELECT count(*), {counts}, count(*) FILTER (WHERE s.operation = 'T'),
         coalesce(min(s.seq) < min(s.seq) FILTER (WHERE s.operation = 'T'), false)
    INTO n_{p}, {into}, nT_{p}, emptied_later FROM {self.staged} s WHERE {WITHIN};
  IF n_{p} > 0 THEN
    IF EXISTS (SELECT FROM {self.staged} s WHERE {WITHIN} AND {self.refused}) THEN
      {by_loop("a row that does not fit its mapping")}
    END IF;
    IF nT_{p} > 1 OR emptied_later THEN {by_loop("a table that is emptied in the midst")} END IF;
    nM_{p} := nA_{p};
    ANALYZE {self.staged};
    {self._kept()};
    {self._refused()}
    {self._counted()}
    ANALYZE {self.kept};
  END IF;"""

    def _kept(self) -> str:
        keys = ", ".join(f"k{at}" for at in range(len(self.before)))
        each = list(enumerate(zip(self.before, self.after, strict=True)))
        at = ", ".join(f"CASE WHEN s.operation = 'D' THEN {o} ELSE {c} END AS k{n}" for n, (o, c) in each)
        return f"""INSERT INTO {self.kept} SELECT * FROM (
      SELECT seq, operation, first_value(operation) OVER w AS first, lag(operation) OVER w AS before,
             lead(operation) OVER w IS NULL AS is_last
        FROM (SELECT s.seq, {self.kind} AS operation, {at} FROM {self.staged} s
               WHERE {WITHIN} AND s.operation <> 'T'
              UNION ALL
              SELECT s.seq, 'M', {", ".join(self.before)} FROM {self.staged} s
               WHERE nM_{self.place} > 0 AND {WITHIN} AND {self.is_moved}) o
      WINDOW w AS (PARTITION BY {keys} ORDER BY seq)) o WHERE before IS NOT NULL OR NOT is_last"""

    def _refused(self) -> str:
        """A history that no table has; a row of which not all was sent, after another write of it. Where rows are
        compared, any chain: its first operation meets the subscriber's row, and its last one is replayed.

        The subscriber's own columns outlive an update, and get their defaults where a row is written anew.
        """
        odd = [
            f"operation IN {NONE} AND before NOT IN ('D', 'M')",
            f"operation IN {ROW} AND before IN ('D', 'M')",
            "operation = 'V' AND is_last",
            *(["operation IN ('D', 'M') AND NOT is_last"] if self.has_own_columns else []),
            *(["true"] if self.image else []),
        ]
        p = self.place
        moved = f"nM_{p} > 0" if self.has_own_columns else f"nM_{p} > 0 AND nV_{p} > 0"
        return f"""IF ({moved}) OR EXISTS (SELECT FROM {self.kept} WHERE {" OR ".join(odd)}) THEN
      {by_loop("operations that depend on each other")}
    END IF;"""

    def _counted(self) -> str:
        p = self.place
        counts = ", ".join(f"n{kind}_{p} - count(*) FILTER (WHERE operation = '{kind}')" for kind in KINDS)
        into = ", ".join(f"f{kind}_{p}" for kind in KINDS)
        return f"""SELECT {counts} INTO {into} FROM {self.kept} WHERE before IS NOT NULL;
    SELECT count(*) INTO brief_{p} FROM {self.kept}
     WHERE is_last AND operation IN ('D', 'M') AND first IN {NONE};"""

    def gone(self) -> str:
        """Keys that end without a row, and the first operation of each: `k0`, …, `first`. Where rows are compared, the
        row before the operation as well: `o0`, …"""
        keys = ", ".join(f"{o} AS k{at}" for at, o in enumerate(self.before)) + self.image
        return f"""SELECT {keys}, coalesce(c.first, 'D') AS first
           FROM {self.staged} s LEFT JOIN {self.kept} c ON c.seq = s.seq
          WHERE {WITHIN} AND s.operation = 'D' AND c.is_last IS NOT FALSE
         UNION ALL
         SELECT {keys}, coalesce(c.first, 'M')
           FROM {self.staged} s LEFT JOIN {self.kept} c ON c.seq = s.seq AND c.operation = 'M'
          WHERE nM_{self.place} > 0 AND {WITHIN} AND {self.is_moved} AND c.is_last IS NOT FALSE"""

    def stays(self, where: str, first: str) -> str:
        """Rows that stand at the end: the staged row, and the first operation of its key, which is one of these."""
        return f"""(SELECT s.*, coalesce(c.first, {self.kind}) AS first
           FROM {self.staged} s LEFT JOIN {self.kept} c ON c.seq = s.seq AND c.operation <> 'M'
          WHERE {WITHIN} AND s.operation IN ('I', 'U', 'V') AND {where} AND c.is_last IS NOT FALSE
            AND coalesce(c.first, {self.kind}) IN {first}) s"""


def by_loop(why: str) -> str:
    """End the try by set."""
    return f"RAISE EXCEPTION '{why}' USING ERRCODE = '{NOT_BY_SET}';"
