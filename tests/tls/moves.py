"""Data of a Redis server that is reached over TLS: imported once, followed under load, and by REPLICAOF.

Usage: moves.py DIRECTORY PROGRAM REDIS_PORT PASSWORD REPLICA_PORT. PROGRAM is `onggi`. The server at REPLICA_PORT has
`tls-replication yes`, and no TLS for clients of its own.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import redis
from authority import Authority
from expect import equal
from harness import Harness, SECONDS_MAX

KEYS = 20_000


class Test:
    """The programs of the test."""

    def __init__(self, directory, program, port, password, replica_port):
        self.directory, self.program, self.port, self.password = directory, program, int(port), password
        self.harness = Harness(directory, self.port, 0, password, 0)
        self.source = self.harness.client()
        self.replica = redis.Redis(port=int(replica_port), password=password, socket_timeout=SECONDS_MAX)

    def files(self, ca="ca"):
        """The options of a command that connects."""
        path = self.harness.path
        return [
            "--tls-ca-cert-file", path(f"{ca}.pem"), "--tls-client-cert-file", path("client.pem"),
            "--tls-client-key-file", path("client.key"),
        ]

    def importing(self, target, *more, ca="ca"):
        """A started `onggi import` of the source into a new directory."""
        shutil.rmtree(target, ignore_errors=True)
        source = f"rediss://:{self.password}@localhost:{self.port}"
        return subprocess.Popen(
            [self.program, "import", source, "--dir", target, *self.files(ca), *more],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )


def fill(test):
    """Strings and other types, so that all of the copy is longer than many records."""
    pipe = test.source.pipeline(transaction=False)
    for number in range(KEYS):
        pipe.set(f"key:{number}", f"{number:0200}")
    pipe.rpush("list", *range(1000))
    pipe.hset("hash", mapping={f"field:{number}": number for number in range(1000)})
    pipe.execute()


def content(client):
    """All that the test has written."""
    names = sorted(client.scan_iter(count=1000))
    strings = [name for name in names if name.startswith(b"key:")]
    return names, client.mget(strings), client.lrange("list", 0, -1), client.hgetall("hash")


def served(test, target):
    """What a server on a data directory has."""
    path = os.path.join(test.directory, "socket")
    process = subprocess.Popen(
        [test.program, "serve", "--port", "0", "--unixsocket", path, "--dir", target],
        stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT,
    )
    try:
        client = redis.Redis(unix_socket_path=path, socket_timeout=SECONDS_MAX)
        eventually(lambda: is_ready(client), "the server on the imported directory does not answer")
        return content(client)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(SECONDS_MAX)


def is_ready(client):
    try:
        return client.dbsize() > 0
    except (redis.ConnectionError, redis.exceptions.ResponseError):
        return False


def eventually(condition, problem):
    """Waits for a condition; the polls only shorten the wait."""
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(problem)
        time.sleep(0.02)


def once(test):
    """A copy, and what keeps it from being made."""
    target = test.harness.path("imported")
    done = test.importing(target)
    printed = done.communicate(timeout=SECONDS_MAX)[0]
    equal((done.returncode, printed if done.returncode else ""), (0, ""))
    equal(served(test, target), content(test.source))
    Authority(test.directory, "other")
    refused = test.importing(target, ca="other")
    printed = refused.communicate(timeout=SECONDS_MAX)[0]
    equal((refused.returncode, "connect with TLS: invalid peer certificate" in printed), (2, True))


def followed(test):
    """A copy and what changes while it is made and after it."""
    target = test.harness.path("followed")
    is_over = threading.Event()
    counts = [0]

    def write():
        client = test.harness.client()
        while not is_over.is_set():
            counts[0] += 1
            client.set(f"key:{counts[0] % KEYS}", f"changed {counts[0]}")
            client.rpush("list", counts[0])

    writer = threading.Thread(target=write)
    writer.start()
    process = test.importing(target, "--follow")
    try:
        lines = iter(process.stdout.readline, "")
        for line in lines:
            if "applied" in line:
                break
        seen = counts[0]
        eventually(lambda: counts[0] > seen + 1000, "the writer stands still")
    finally:
        is_over.set()
        writer.join()
    caught_up = test.source.info("replication")["master_repl_offset"]
    eventually(
        lambda: any(
            int(value["offset"]) >= caught_up
            for name, value in test.source.info("replication").items() if name.startswith("slave")
            and isinstance(value, dict)
        ),
        "the follower does not catch up",
    )
    process.send_signal(signal.SIGTERM)
    printed = process.communicate(timeout=SECONDS_MAX)[0]
    equal((process.returncode, printed if process.returncode else ""), (0, ""))
    equal(served(test, target), content(test.source))


def replicated(test):
    """REPLICAOF: a copy, and changes after it."""
    equal(test.replica.config_set("primaryauth", test.password), True)
    equal(test.replica.replicaof("localhost", test.port), b"OK")
    eventually(lambda: test.replica.info("replication")["master_link_status"] == "up", "the replica has no link")
    test.source.set("key:0", "after the copy")

    def has_all():
        try:
            return content(test.replica) == content(test.source)
        except redis.exceptions.BusyLoadingError:
            return False

    eventually(has_all, "the replica differs")
    equal(test.replica.replicaof("NO", "ONE"), b"OK")


def main():
    test = Test(*sys.argv[1:])
    harness = test.harness
    fill(test)
    for name, body in (
        ("onggi import rediss://", once),
        ("onggi import --follow rediss://", followed),
        ("REPLICAOF over TLS", replicated),
    ):
        harness.check(f"moves: {name}", lambda _h, body=body: body(test))
    return 1 if harness.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
