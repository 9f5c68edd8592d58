"""Statements that interrupt the capture of a published table, by what they do."""

PUBLICATION = "concord_operations"

#: Each ends or narrows what is captured of `account`, and what repairs it by hand; '' is left to `provision`.
BY_LOG: dict[str, tuple[str, str]] = {
    "it is dropped from the publication": (f"ALTER PUBLICATION {PUBLICATION} DROP TABLE account", ""),
    "it comes back by hand": (
        f"ALTER PUBLICATION {PUBLICATION} DROP TABLE account",
        f"ALTER PUBLICATION {PUBLICATION} ADD TABLE account",
    ),
    "others are set": (f"ALTER PUBLICATION {PUBLICATION} SET TABLE movement", ""),
    "its rows are filtered": (
        f"ALTER PUBLICATION {PUBLICATION} SET TABLE account (id, owner, balance) WHERE (id < 5), movement",
        "",
    ),
    "a column is left out": (
        f"ALTER PUBLICATION {PUBLICATION} SET TABLE account (id, owner), movement",
        "",
    ),
    "a column is left out for a while": (
        f"ALTER PUBLICATION {PUBLICATION} SET TABLE account (id, owner), movement",
        f"ALTER PUBLICATION {PUBLICATION} SET TABLE account, movement",
    ),
    "deletes alone are published": (f"ALTER PUBLICATION {PUBLICATION} SET (publish = 'delete')", ""),
    "deletes alone are published for a while": (
        f"ALTER PUBLICATION {PUBLICATION} SET (publish = 'delete')",
        f"ALTER PUBLICATION {PUBLICATION} SET (publish = 'insert, update, delete, truncate')",
    ),
}
BY_TRIGGERS: dict[str, tuple[str, str]] = {
    "its trigger is dropped": ('DROP TRIGGER "RI_concord_operation" ON account', ""),
    "its triggers are disabled": ("ALTER TABLE account DISABLE TRIGGER USER", ""),
    "its triggers are disabled for a while": (
        "ALTER TABLE account DISABLE TRIGGER USER",
        'ALTER TABLE account ENABLE ALWAYS TRIGGER "RI_concord_operation",'
        ' ENABLE ALWAYS TRIGGER "RI_concord_truncate"',
    ),
}
