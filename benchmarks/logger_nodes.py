"""Nodes on servers of their own, each of which replays the calls of every other; and the processes that do so."""

import pickle
import secrets
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

from psycopg import sql

from benchmarks.databases import APPLIER, READER, Database
from concord.databases.provisioning import Installation, provision
from concord.databases.registry import dialect
from concord.jobs.replication import ReplicationDefinition, ReplicationJob
from concord.transactional.replicate import replicate
from concord.values.identifier import parse_table_name
from embedded.postgres import Server

LOG_READER = "concord_log_reader"
#: Both counters of a hit are one transaction's; the first hit of a key inserts it with 1 (S4-173).
TABLES = (
    "CREATE TABLE public.hits_of_address (address text PRIMARY KEY, hits bigint NOT NULL)",
    "CREATE TABLE public.hits_of_person (person text PRIMARY KEY, hits bigint NOT NULL)",
    """CREATE PROCEDURE public.hit(address text, person text) LANGUAGE plpgsql
SECURITY DEFINER SET search_path = '' AS $$
BEGIN
  INSERT INTO public.hits_of_address AS present VALUES (hit.address, 1)
    ON CONFLICT ON CONSTRAINT hits_of_address_pkey DO UPDATE SET hits = present.hits + 1;
  INSERT INTO public.hits_of_person AS present VALUES (hit.person, 1)
    ON CONFLICT ON CONSTRAINT hits_of_person_pkey DO UPDATE SET hits = present.hits + 1;
END $$""",
)
#: Seconds that a run stays; the next one follows.
_STAY = 5.0
_SETTINGS = {"wal_level": "logical", "shared_buffers": "128MB", "max_wal_size": "2GB"}


@contextmanager
def nodes(directory: Path, many: int) -> Iterator[Sequence[Database]]:
    """Provisioned, and ready before the first hit; removed when the block ends."""
    with ExitStack() as stack:
        made = [stack.enter_context(_node(directory, f"node{number + 1}")) for number in range(many)]
        definitions = [_definition(one, other) for one, other in permutations(made, 2)]
        provision([_installation(each, definitions) for each in made])
        for job in jobs(made):
            replicate(job.model_copy(update={"initialize": True, "run_for": 0, "linger": 0}), dialect)
        yield made


@contextmanager
def _node(directory: Path, name: str) -> Iterator[Database]:
    with Server.create(directory / name, settings=_SETTINGS) as server:
        made = Database(name, server, secrets.token_urlsafe(24))
        server.create_database(name)
        for login, right in ((READER, ""), (APPLIER, ""), (LOG_READER, "REPLICATION")):
            create = sql.SQL("CREATE ROLE {} LOGIN {} PASSWORD {}")
            role = create.format(sql.Identifier(login), sql.SQL(right), sql.Literal(made.password))
            made.run(role.as_string())
        made.run(*TABLES)
        yield made
        server.remove()


def _definition(one: Database, other: Database) -> ReplicationDefinition:
    return ReplicationDefinition(
        name=f"{one.name}_to_{other.name}",
        replication_set="logger",
        publisher=one.name,
        subscriber=other.name,
        tables=(),
        procedures=(parse_table_name("public.hit"),),
    )


def _installation(node: Database, definitions: Sequence[ReplicationDefinition]) -> Installation:
    return Installation(
        site=node.name,
        installer=node.credentials(node.server.superuser),
        reader=READER,
        applier=APPLIER,
        log_reader=LOG_READER,
        tables=(),
        replications=tuple(each for each in definitions if node.name in (each.publisher, each.subscriber)),
    )


def jobs(made: Sequence[Database]) -> Iterator[ReplicationJob]:
    """Of each way, from node to node. Whoever runs one gives it an epoch."""
    for one, other in permutations(made, 2):
        yield ReplicationJob(
            replication=_definition(one, other),
            transmission=secrets.token_hex(16),
            epoch=1,
            source=one.access,
            target=other.access,
            log_reader=one.credentials(LOG_READER),
            run_for=_STAY,
            linger=_STAY,
        )


@dataclass
class Worker:
    """The process that carries all calls to one node, which may be killed at any moment."""

    incoming: Sequence[ReplicationJob]
    log: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """It stays until it is killed."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.logger_inside"], stdin=subprocess.PIPE, stderr=log
            )
        assert self.process.stdin is not None
        pickle.dump(self.incoming, self.process.stdin)
        self.process.stdin.close()

    def kill(self) -> None:
        """By SIGKILL."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@contextmanager
def workers(made: Sequence[Database], directory: Path) -> Iterator[Sequence[Worker]]:
    """One for each node that hears of others, at work; killed when the block ends."""
    every = list(jobs(made))
    incoming = {node.name: [job for job in every if job.target.name == node.name] for node in made}
    started = [Worker(ways, directory / f"{node}.log") for node, ways in incoming.items() if ways]
    try:
        for each in started:
            each.start()
        yield started
    finally:
        for each in started:
            each.kill()
