"""`python -m embedded`: stop and delete the embedded servers below a directory."""

import sys
from pathlib import Path

from embedded.postgres import Server


def main(arguments: list[str]) -> int:
    """Do what the command line asks and return the exit status."""
    match arguments:
        case ["remove", directory]:
            for record in sorted(Path(directory).rglob("server.json")):
                Server.remove_from(record.parent)
            return 0
        case _:
            sys.stderr.write("usage: python -m embedded remove DIRECTORY\n")
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
