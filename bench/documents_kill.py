#!/usr/bin/env python3
"""A store of real documents survives a kill: load, compress under load, checkpoint, kill, restart, read.

    python3 bench/documents_kill.py --onggi target/release/onggi [--kind json] DIR...

The documents are those of bench/documents.py, each only once. During compression and the checkpoint, another connection
reads random documents and replaces others. After the checkpoint more are replaced, so only the command log has them.
Then the log is made durable, and the server is killed (SIGKILL) and restarted. Every document is read and compared.
"""

import argparse
import os
import random
import threading
import time

import documents

PAUSE = 0.002


class Load:
    """Another client: reads random documents and replaces some, until stopped."""

    def __init__(self, server, pairs):
        self.client = documents.Client(server.name, server.port)
        self.pairs, self.operations, self.wrong = pairs, 0, 0
        self.latest = {}
        self.is_over = False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        chance = random.Random(2)
        while not self.is_over:
            key, value = chance.choice(self.pairs)
            if self.client.ask([b"GET", key]) != [self.latest.get(key, value)]:
                self.wrong += 1
            if chance.random() < 0.25:
                key = chance.choice(self.pairs)[0]
                self.latest[key] = chance.choice(self.pairs)[1]
                self.client.ask([b"SET", key, self.latest[key]])
            self.operations += 2
            time.sleep(PAUSE)

    def stop(self):
        self.is_over = True
        self.thread.join()


def wait_until(done, limit):
    end = time.time() + limit
    while not done():
        if time.time() > end:
            raise SystemExit("it takes too long")
        time.sleep(0.05)


def checkpoint(server, limit):
    """Takes a checkpoint; returns its duration."""
    begun = time.time()
    server.ask([b"BGSAVE"])
    wait_until(lambda: server.info(b"persistence")["rdb_bgsave_in_progress"] == "0", limit)
    if server.info(b"persistence")["rdb_last_bgsave_status"] != "ok":
        raise SystemExit("the checkpoint failed")
    return time.time() - begun


def data_bytes(server):
    files = [os.path.join(server.directory.name, name) for name in os.listdir(server.directory.name)]
    return sum(os.path.getsize(name) for name in files if os.path.isfile(name))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onggi", required=True)
    parser.add_argument(
        "--bytes", type=documents.lengths, default="100-2048", metavar="LEAST-MOST", help="lengths of documents"
    )
    parser.add_argument("--kind", choices=["json", "text", "both"], default="json")
    parser.add_argument("--seconds", type=int, default=1200, help="longest wait for anything")
    parser.add_argument("directories", nargs="+")
    options = parser.parse_args()
    pairs = documents.documents(options.directories, options.kind, *options.bytes)
    prove(options.onggi, pairs, options.seconds)


def prove(onggi, pairs, limit):
    command = [
        os.path.abspath(onggi),
        "serve", "--http-port", "0", "--port", "{port}", "--dir", "{dir}", "--save", "", "--appendonly", "yes",
    ]
    server = documents.Server("onggi", [*command, *documents.ZSTD])
    try:
        begun = time.time()
        documents.load(server, pairs)
        print(f"loaded in {time.time() - begun:.1f} s", flush=True)
        load = Load(server, pairs)
        wait_until(lambda: int(server.info()["compression_values"]) > len(pairs) * 8 // 10, limit)
        print(f"four fifths compressed after {time.time() - begun:.1f} s", flush=True)
        taken = checkpoint(server, limit)
        load.stop()
        print(
            f"checkpoint in {taken:.1f} s; {load.operations} operations meanwhile, {load.wrong} wrong answers",
            flush=True,
        )
        latest = {**dict(pairs), **load.latest}
        chance = random.Random(3)
        replaced = [(chance.choice(pairs)[0], chance.choice(pairs)[1]) for _ in range(len(pairs) // 50)]
        documents.load(server, replaced)
        latest.update(replaced)
        if int(server.ask([b"WAITAOF", b"1", b"0", b"60000"])[0][0]) != 1:
            raise SystemExit("the log does not become durable")
        before = server.info()
        print(
            f"killed with {before['compression_values']} strings compressed, {data_bytes(server) / 1e6:.1f} MB in files"
        )
        server.process.kill()
        server.process.wait(timeout=60)
        begun = time.time()
        server.start()
        after = server.info()
        print(
            f"restored in {time.time() - begun:.1f} s, "
            f"{after['compression_decompressed_for_commands']} strings decompressed, "
            f"{after['compression_values']} compressed",
            flush=True,
        )
        documents.verify(server, list(latest.items()))
        print(f"{len(latest)} documents are what they were")
        if load.wrong:
            raise SystemExit("wrong answers")
    finally:
        server.stop()


if __name__ == "__main__":
    main()
