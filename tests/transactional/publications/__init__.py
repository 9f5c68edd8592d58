"""Publications and their subscribers: tables, levels, operations, errors, and the documents' samples."""
