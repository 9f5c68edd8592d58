"""Verdicts of Spark's that no policy gives, and what becomes of rows by their verdict."""

#: A row that would not come back the same from the other site; also the column that says why, NULL for all others
#: (`manipulate`).
UNFAITHFUL = "unfaithful"

#: A conflict that waits for somebody else's function, and one that it gave no decision on (`custom`).
ASK, FAILED = "ask", "failed"

#: A change of a table whose hook cannot be called.
UNHOOKED = "unhooked"

#: A conflict that the write step is to decide, under lock, since it may end in a merge (`resolve`).
UNDER_LOCK = "conflicted"

#: Two sites did the very same thing: the write step decides whose version stays, and nothing is lost (`detect`).
SAME_THING = "same_thing"

#: Outcomes that change nothing at the target, not even a vector: counted, never staged.
SETTLED = ("converged", "superseded", UNFAITHFUL, FAILED)

#: Verdicts that stop the table; the rows say why.
STOPPING = (UNFAITHFUL, FAILED)
