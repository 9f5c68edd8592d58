"""What Java keeps for a copy of this process (fork): py4j lets go of it in a thread that a copy does not have."""

from __future__ import annotations

from py4j.finalizer import ThreadSafeFinalizer  # type: ignore[import-untyped]
from pyspark import SparkContext


def known() -> frozenset[str]:
    """Java's objects that this process refers to, as py4j names them."""
    return frozenset(ThreadSafeFinalizer.finalizers)


def release(kept: frozenset[str]) -> None:
    """Let go of all but those: a copy calls it before it ends, since Java would keep them for good."""
    gateway = SparkContext._gateway
    assert gateway is not None, "Spark is started"
    client = gateway._gateway_client
    prefix = f"{client.address}{client.port}"
    gone = {prefix + name for _, name in client.finalizer_deque}
    for name in (known() | gone) - kept:
        client.garbage_collect_object(name.removeprefix(prefix), False)
