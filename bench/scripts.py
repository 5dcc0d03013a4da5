#!/usr/bin/env python3
"""Server CPU of scripts at pipeline 16, next to Valkey's, and the speed of two workers against one.

    python3 bench/scripts.py --onggi target/release/onggi --valkey valkey-server [--rounds 5]
    python3 bench/scripts.py --onggi target/release/onggi --two-workers

The first form calls four scripts by EVALSHA over one connection, 16 requests at a time: an empty one, GET, INCR with
EXPIRE, and a rate limiter that counts in 20 keys. The servers take turns in each round. The figure is the user and
system time of the server process divided by the calls. Onggi has one worker, and both are without log and saves. The
second form runs a script of a millisecond on two connections, with one declared key each, on servers with one and two
workers.
"""

import argparse
import hashlib
import os
import socket
import statistics
import subprocess
import tempfile
import threading
import time

PIPELINE = 16
SCRIPTS = {
    "empty": ("return", 0, 200_000),
    "GET": ("return redis.call('GET', KEYS[1])", 1, 150_000),
    "INCR, EXPIRE": ("redis.call('INCR', KEYS[1]) redis.call('EXPIRE', KEYS[1], 60) return 1", 1, 100_000),
    "rate limiter of 20 keys": (
        "for i = 1, #KEYS do local n = redis.call('INCR', KEYS[i]) "
        "if n == 1 then redis.call('EXPIRE', KEYS[i], 60) end if n > 1e9 then return 0 end end return 1", 20, 10_000),
}
SPIN = "redis.call('INCR', KEYS[1]) for i = 1, {turns} do end return 1"
SECONDS_MAX = 120


def request(*words):
    parts = [b"*%d\r\n" % len(words)]
    parts.extend(b"$%d\r\n%b\r\n" % (len(word), word) for word in (str(word).encode() for word in words))
    return b"".join(parts)


class Server:
    def __init__(self, command):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.home = tempfile.TemporaryDirectory()
        words = [*command, "--port", str(self.port), "--dir", self.home.name, "--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        deadline = time.time() + SECONDS_MAX
        while True:
            try:
                with self.connect() as connection:
                    if ask(connection, ["PING"]).startswith(b"+PONG"):
                        break
            except OSError:
                pass
            if self.process.poll() is not None or time.time() > deadline:
                raise SystemExit(f"{command[0]} does not serve")
            time.sleep(0.05)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS_MAX)

    def cpu_seconds(self):
        """Of all threads that live: the kernel counts them in nanoseconds here, and in ticks of 10 ms elsewhere."""
        total = 0
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{thread}/schedstat", encoding="ascii") as stat:
                total += int(stat.read().split()[0])
        return total / 1e9

    def end(self):
        self.process.terminate()
        self.process.wait()
        self.home.cleanup()


def ask(connection, words):
    """The bytes of one reply, which comes whole."""
    connection.sendall(request(*words))
    return connection.recv(1 << 16)


def call_many(connection, words, count):
    """Calls whose replies are all the same."""
    reply = ask(connection, words)
    assert not reply.startswith(b"-"), reply
    batch, expected = request(*words) * PIPELINE, len(reply) * PIPELINE
    for _ in range(count // PIPELINE):
        connection.sendall(batch)
        received = 0
        while received < expected:
            received += len(connection.recv(1 << 16))


def words_of(connection, text, key_count, first="key"):
    ask(connection, ["SCRIPT", "LOAD", text])
    sha = hashlib.sha1(text.encode()).hexdigest()
    return ["EVALSHA", sha, key_count, *(f"{first}:{number}" for number in range(key_count))]


def compare(onggi, valkey, rounds):
    servers = {"Valkey": Server([valkey]), "Onggi": Server([onggi, "--workers", "1"])}
    for server in servers.values():
        ask(server.connect(), ["SET", "key:0", "1000"])
    print(f"| us of CPU a call | {' | '.join(servers)} | of Valkey's speed |")
    for name, (text, key_count, count) in SCRIPTS.items():
        seen = {server: [] for server in servers}
        for turn in range(rounds):
            for server in sorted(servers, reverse=turn % 2 == 0):
                connection = servers[server].connect()
                words = words_of(connection, text, key_count)
                call_many(connection, words, count // 10)
                before = servers[server].cpu_seconds()
                call_many(connection, words, count)
                seen[server].append((servers[server].cpu_seconds() - before) / count * 1e6)
        median = {server: statistics.median(figures) for server, figures in seen.items()}
        shown = " | ".join(f"{figure:.2f}" for figure in median.values())
        print(f"| {name} | {shown} | {median['Valkey'] / median['Onggi']:.2f} |", flush=True)
    for server in servers.values():
        server.end()


def calls_a_second(server, turns, seconds):
    """By two connections of two workers, if there are two, each with a key of its own."""
    counts = [0, 0]
    connections = [server.connect(), server.connect()]
    until = time.time() + seconds

    def run(number):
        words = words_of(connections[number], SPIN.format(turns=turns), 1, first=f"{number}")
        while time.time() < until:
            call_many(connections[number], words, PIPELINE)
            counts[number] += PIPELINE

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return sum(counts) / seconds


def two_workers(onggi, rounds):
    servers = {workers: Server([onggi, "--workers", str(workers)]) for workers in (1, 2)}
    connection = servers[1].connect()
    begun, turns = time.time(), 1_000_000
    call_many(connection, words_of(connection, SPIN.format(turns=turns), 1), PIPELINE)
    turns = int(turns * 0.001 / ((time.time() - begun) / (PIPELINE + 1)))
    print(f"a millisecond is {turns} turns of a loop")
    print("| workers | calls a second |")
    rates = {workers: [] for workers in servers}
    for _ in range(rounds):
        for workers, server in servers.items():
            rates[workers].append(calls_a_second(server, turns, 2))
    medians = {workers: statistics.median(figures) for workers, figures in rates.items()}
    for workers, median in medians.items():
        print(f"| {workers} | {median:.0f} |")
    print(f"two workers: {medians[2] / medians[1]:.2f} of one")
    for server in servers.values():
        server.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onggi", required=True)
    parser.add_argument("--valkey")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--two-workers", action="store_true")
    options = parser.parse_args()
    if options.two_workers:
        two_workers(options.onggi, options.rounds)
    elif options.valkey:
        compare(options.onggi, options.valkey, options.rounds)
    else:
        parser.error("name --valkey or --two-workers")


if __name__ == "__main__":
    main()
