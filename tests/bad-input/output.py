"""Replies that no client reads, and replies without measure."""

import time

from resp import Connection, Error, request
from suite import MB, equal, expect, many

HOLD_SECONDS = 2


def fill(server, count, size, name):
    """This many values of a size; their keys."""
    keys = [f"{name}:{number}" for number in range(count)]
    with Connection(server) as connection:
        for key in keys:
            connection.call("SET", key, b"v" * size)
    return keys


def forget(server, *lists):
    """Deletes keys again."""
    with Connection(server) as connection:
        for keys in lists:
            connection.call("DEL", *keys)


def slow_readers(suite, size, count):
    """Connections that ask for far more than they ever read."""
    server, rng = suite.server, suite.random("slow readers")
    keys = fill(server, 20, size, f"slow{size}")
    pipeline = b"".join(request("GET", rng.choice(keys)) for _ in range(20_000))
    try:
        with many(server, count, receive_bytes=4096) as connections:
            deadline = time.monotonic() + HOLD_SECONDS
            while time.monotonic() < deadline:
                for connection in connections:
                    connection.send_what_fits(pipeline)
                time.sleep(0.05)
    finally:
        forget(server, keys)


def replaced_values(suite):
    """Readers that hold on to values which are replaced meanwhile: each old one lives only for its reader."""
    server = suite.server
    size = 8 * MB
    try:
        with Connection(server) as writer, many(server, 64, receive_bytes=4096) as readers:
            for round_number in range(len(readers) // 2):
                writer.call("SET", "replaced", bytes([round_number]) * size)
                # Two readers for each, so that no value has one owner alone.
                for reader in readers[2 * round_number:2 * round_number + 2]:
                    reader.send(request("GET", "replaced"))
                writer.call("PING")
    finally:
        forget(server, ["replaced"])


def honest_pipeline(suite):
    """A long pipeline of large values is answered whole when its client reads, however slowly it began to."""
    server = suite.server
    keys = fill(server, 4, 24 * MB, "honest")
    try:
        with Connection(server, seconds=60) as connection:
            connection.send(b"".join(request("GET", key) for key in keys * 4) + request("NOSUCH") + request("PING"))
            time.sleep(0.3)
            for key in keys * 4:
                equal(len(connection.reply()), 24 * MB, key)
            try:
                expect(False, f"NOSUCH answered {connection.reply()!r}")
            except Error as error:
                expect("unknown command" in str(error), str(error))
            equal(connection.reply(), b"PONG")
    finally:
        forget(server, keys)


def amplification(suite):
    """Few bytes that ask for gigabytes: one request, one transaction."""
    server = suite.server
    keys = fill(server, 1, 12_000, "amplified")
    try:
        for words in (("MGET", *keys * 200_000),):
            with Connection(server, seconds=10) as connection:
                connection.send(request(*words))
                time.sleep(1)
        with Connection(server, seconds=10) as connection:
            connection.send_what_fits(request("MULTI") + request("GET", keys[0]) * 200_000 + request("EXEC"))
            time.sleep(1)
    finally:
        forget(server, keys)


def limits(suite):
    """client-output-buffer-limit closes: at once above the hard limit, after its seconds above the soft one."""
    server = suite.server
    keys = fill(server, 1, 10_000, "limits")
    with Connection(server) as control:
        before = control.call("CONFIG", "GET", "client-output-buffer-limit")[1]
        try:
            pipeline = request("GET", keys[0]) * 4000
            control.call("CONFIG", "SET", "client-output-buffer-limit", "normal 1mb 0 0")
            hard = connected(server, pipeline)
            expect(gone(control, hard, 10), "a client above the hard limit stays")
            control.call("CONFIG", "SET", "client-output-buffer-limit", "normal 0 1mb 1")
            start = time.monotonic()
            soft = connected(server, pipeline)
            time.sleep(0.3)
            early = gone(control, soft, 0)
            if time.monotonic() - start < 0.9:
                expect(not early, "a client is closed before the seconds of the soft limit are over")
            expect(gone(control, soft, 10), "a client above the soft limit stays")
            control.call(
                "CONFIG", "SET", "client-output-buffer-limit", "normal 0 0 0", "client-output-buffer-pause", "64kb"
            )
            held = connected(server, pipeline)
            time.sleep(0.5)
            expect(not gone(control, held, 0), "a client without limits is closed")
            for _ in range(4000):
                equal(len(held[0].reply()), 10_000)
        finally:
            control.call("CONFIG", "SET", "client-output-buffer-limit", before, "client-output-buffer-pause", "32mb")
    forget(server, keys)


def connected(server, pipeline):
    """A connection that sends and does not read, and its id."""
    connection = Connection(server, receive_bytes=4096)
    number = connection.call("CLIENT", "ID")
    connection.send_what_fits(pipeline)
    return connection, number


def gone(control, client, seconds):
    """Whether the server closes the client within the time."""
    deadline = time.monotonic() + seconds
    while True:
        if not control.call("CLIENT", "LIST", "ID", client[1]):
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)


def run(suite):
    suite.attack("slow readers of values that are copied", lambda: slow_readers(suite, 8_000, 60))
    suite.attack("slow readers of values that are shared", lambda: slow_readers(suite, 200_000, 60))
    suite.attack("readers of values that are replaced", lambda: replaced_values(suite), growth=256 * MB + 16 * MB)
    # The values themselves are data, and they are not what is measured.
    suite.attack("an honest pipeline of large values", lambda: honest_pipeline(suite))
    suite.attack("replies without measure", lambda: amplification(suite))
    suite.attack("output limits close", lambda: limits(suite))
