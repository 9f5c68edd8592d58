"""The remains of a large entry are written by set: rows go, change and come, and are counted as one by one (S0-48)."""

from __future__ import annotations

from concord.databases.postgresql.entries.staging import ReplicatedTable
from concord.databases.postgresql.replay.chains import NONE, ROW, Chains, by_loop
from concord.databases.postgresql.replay.statements import Statements


class NetRows:
    """One table's statements. `t` is the subscriber's row, `s` what stays of the publisher's."""

    def __init__(self, table: ReplicatedTable, *, refuses: bool) -> None:
        self.chains, self.place = Chains(table), table.place
        self.by_loop = refuses or table.compared
        self.table = table
        self.of, self.sql = Statements(table, "s"), table.table.sql

    def deleted(self) -> str:
        """All rows where the entry begins with a truncate; then each key that ends without a row."""
        p = self.place
        same = " AND ".join(f"t.{column.sql} = d.k{at}" for at, column in enumerate(self.of.keys))
        if self.table.compared:
            same = f"{same} AND {Statements(self.table, 'd').as_before}"
        return f"""
  IF nT_{p} > 0 THEN
    DELETE FROM {self.sql};
    GET DIAGNOSTICS n = ROW_COUNT;
    deleted_{p} := n;
  END IF;
  IF nD_{p} + nM_{p} > 0 THEN
    WITH done AS (DELETE FROM {self.sql} t USING ({self.chains.gone()}) d WHERE {same} RETURNING d.first)
    {self._met("IUVDMA")}
  END IF;"""

    def written(self) -> str:
        """Rows that the publisher had already, those that it made, and those that are not as expected."""
        p, chains = self.place, self.chains
        absent = f"NOT EXISTS (SELECT FROM {self.sql} t WHERE {self.of.at_new_key})"
        return f"""
  IF fU_{p} + fV_{p} + fD_{p} + fM_{p} > 0 THEN
    {self._updated("s.operation <> 'V'", self.of.values)}
  END IF;
  IF fV_{p} > 0 THEN
    {self._updated("s.operation = 'V'", self.of.kept)}
    IF fV_{p} > gV_{p} THEN {by_loop("an update without its row, of which not all was sent")} END IF;
  END IF;
  IF fU_{p} + fD_{p} + fM_{p} > gU_{p} + gD_{p} + gM_{p} THEN
    {self._inserted(ROW)} WHERE {absent};
  END IF;
  IF fI_{p} + fA_{p} > 0 THEN
    {self._inserted(NONE)} ON CONFLICT ({self.of.key}) DO NOTHING;
    GET DIAGNOSTICS n = ROW_COUNT;
    n := fI_{p} + fA_{p} - brief_{p} - n;
    IF n > 0 THEN
      gI_{p} := gI_{p} + n; gA_{p} := gA_{p} + fA_{p};
      {self.of.update(self.of.at_new_key, self.of.values, chains.stays("true", "('I')"))};
    END IF;
  END IF;
  {self._counted()}"""

    def _updated(self, where: str, values: dict[str, str]) -> str:
        stays = self.chains.stays(where, ROW)
        found = self.of.as_before if self.table.compared else self.of.at_new_key
        return f"""WITH done AS ({self.of.update(found, values, stays)} RETURNING s.first)
    {self._met("UVDM")}"""

    def _inserted(self, first: str) -> str:
        stays = self.chains.stays("s.operation <> 'V'", first)
        return f"{self.of.insert} SELECT {', '.join(self.of.values.values())} FROM {stays}"

    def _met(self, kinds: str) -> str:
        """Add the rows that were found to what their keys' first operations were."""
        counts = ", ".join(f"g{k}_{self.place} + count(*) FILTER (WHERE first = '{k}')" for k in kinds)
        return f"SELECT {counts} INTO {', '.join(f'g{k}_{self.place}' for k in kinds)} FROM done;"

    def _counted(self) -> str:
        """The same counts as operation by operation. A key that is taken twice is for the loop, and so is a row that
        was altered."""
        p = self.place
        refused = "OR n > 0" if self.by_loop else ""
        return f"""
  updated_for_insert_{p} := gI_{p};
  inserted_for_update_{p} := fU_{p} - gU_{p} + fM_{p} - gM_{p};
  missing_{p} := fD_{p} - gD_{p};
  inserted_{p} := nI_{p} - updated_for_insert_{p};
  updated_{p} := nU_{p} + nV_{p} + nM_{p} - inserted_for_update_{p};
  deleted_{p} := deleted_{p} + nD_{p} - missing_{p};
  n := updated_for_insert_{p} + inserted_for_update_{p} + missing_{p};
  IF gA_{p} > 0 {refused} THEN {by_loop("a row that is not as expected")} END IF;
  converted := converted + n;"""
