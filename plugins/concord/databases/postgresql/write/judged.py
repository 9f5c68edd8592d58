"""One table's staged rows with their verdicts: what the statements of a write need."""

from __future__ import annotations

from dataclasses import dataclass

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.rows.stage import Staged
from concord.databases.postgresql.write import merged_row
from concord.databases.postgresql.write.guard import WINNING

_WRITES = f"({', '.join(map(literal, WINNING))})"


@dataclass(frozen=True, slots=True)
class Judged:
    """One table's staged rows with their verdicts: what the write statements need."""

    staged: Staged
    verdicts: str  #: temporary table of the rows that do not simply apply
    exceptional: int  #: how many rows it holds
    source: str
    target: str
    merged: bool = False  #: some row is a new one, made of both or by a hook
    adopted: int = 0  #: rows of which the version alone is taken: this site did the very same thing
    since: str = ""  #: the snapshot they were judged in, where only those with verdicts are locked

    @property
    def winners(self) -> str:
        """Subquery: the staged rows that are written, each with the version it replaces in a conflict."""
        keys = self.staged.shape.same_key("v", "s")
        if not self.exceptional:
            return f"(SELECT s.*, NULL::jsonb AS concord_united FROM {self.staged.typed} s)"
        if self.merged:
            united = (
                "CASE WHEN v.made_vector IS NOT NULL THEN v.made_vector"
                " WHEN v.verdict IN ('source_wins', 'source_stays')"
                " THEN concord.vector_unite(s.concord_vector, v.p_vector) END AS concord_united"
            )
            return (
                f"(SELECT {merged_row.columns(self.staged.shape)}, {united}"
                f" FROM {self.staged.typed} s LEFT JOIN {self.verdicts} v ON {keys}"
                f" WHERE coalesce(v.verdict, 'apply') IN {_WRITES})"
            )
        return (
            "(SELECT s.*, CASE WHEN v.verdict IN ('source_wins', 'source_stays')"
            " THEN concord.vector_unite(s.concord_vector, v.p_vector) END AS concord_united"
            f" FROM {self.staged.typed} s LEFT JOIN {self.verdicts} v ON {keys}"
            f" WHERE coalesce(v.verdict, 'apply') IN {_WRITES})"
        )
