#!/usr/bin/env python3
"""The memcached port compared with memcached: server CPU per operation, and memory per item.

    python3 bench/memcached.py --onggi target/release/onggi [--memcached memcached] [--rounds 5] [--requests 400000]

CPU is user and system time of the server's process over a fixed number of requests, from 20 connections that each
send a pipeline and wait for its replies; both servers have one worker and 50,000 items of 14-byte keys and 16 bytes
of data. Rounds alternate between the servers; the table has medians and, in brackets, the least and the most.
Memory is the growth of the resident size over two million items of 16-byte keys and 16 bytes of data, less those 32
bytes. Onggi runs without log and compression. With --collections, requests to ARCUS' collections are compared with
those to sorted sets or, with --arcus, with those to ARCUS' own server.
"""

import argparse
import random
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import measured

CONNECTIONS = 20
KEYS = 50_000
ITEMS = 2_000_000
BUFFERS = 64


class Server:
    """A server with one worker on a port of its own."""

    def __init__(self, name, program):
        self.name, self.directory = name, tempfile.mkdtemp(prefix="onggi-bench-")
        self.port, self.resp_port = measured.free_port(), measured.free_port()
        argv = [program, "-u", "root", "-l", "127.0.0.1", "-p", str(self.port), "-U", "0", "-t", "1", "-m", "4096"]
        if name == "arcus":
            argv += ["-E", str(Path(program).parent / ".libs" / "default_engine.so")]
        if name == "onggi":
            argv = [
                program,
                "serve", "--http-port", "0", "--port", str(self.resp_port), "--memcached-port", str(self.port),
                "--workers", "1", "--dir", self.directory, "--appendonly", "no", "--save", "", "--compression", "off",
            ]
        self.process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                self.connect().close()
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit(f"{name} does not answer")

    def connect(self, resp=False):
        return socket.create_connection(("127.0.0.1", self.resp_port if resp else self.port))

    def cpu_seconds(self):
        return measured.cpu_seconds(self.process.pid)

    def resident_bytes(self):
        return measured.resident_bytes(self.process.pid)

    def stop(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


def receive(connection, end, count):
    """Reads until this many ends of replies have come. An end may be cut in two."""
    tail = b""
    while count > 0:
        data = tail + connection.recv(1 << 18)
        count -= data.count(end)
        tail = data[data.rfind(end) + len(end):][-len(end) + 1:] if end in data else data[-len(end) + 1:]


def set_request(key, number):
    return b"set %s 0 0 16\r\n%016d\r\n" % (key, number)


def key(number):
    return b"key:%010d" % number


def any_key(source):
    return key(source.randrange(KEYS))


KINDS = {
    "get": (b"END\r\n", lambda source: b"get " + any_key(source) + b"\r\n"),
    "set": (b"STORED\r\n", lambda source: set_request(any_key(source), 1)),
    "get of 10 keys": (b"END\r\n", lambda source: b"get " + b" ".join(any_key(source) for _ in range(10)) + b"\r\n"),
}

# Collections, half of them filled by ARCUS clients and half by Redis clients.
TREES, ELEMENTS, TAKEN = 500, 600, 20


def resp(*words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def fresh(source):
    return source.randrange(10_000, 1 << 60)


def bop_insert(source):
    number = fresh(source)
    return b"bop insert b%d %d 16 create 0 0 0\r\n%016d\r\n" % (source.randrange(TREES), number, number % 10**16)


def zadd(source):
    number = fresh(source) >> 8
    return resp("ZADD", "z%d" % source.randrange(TREES), number, b"%016d" % (number % 10**16))


def lop_insert(source):
    return b"lop insert l%d -1 16 create 0 0 0\r\n%016d\r\n" % (source.randrange(TREES), source.randrange(10**16))


# Command: whether it is one of Redis clients, the end of a reply and how often it comes, the request.
COLLECTIONS = {
    "bop insert": (False, b"STORED\r\n", 1, bop_insert),
    "lop insert": (False, b"STORED\r\n", 1, lop_insert),
    "ZADD": (True, b":1\r\n", 1, zadd),
    "bop get of 20": (False, b"END\r\n", 1,
                      lambda source: b"bop get b%d 0..9999999999999999999 20\r\n" % source.randrange(TREES)),
    "lop get of 20": (False, b"END\r\n", 1, lambda source: b"lop get l%d 0..19\r\n" % source.randrange(TREES)),
    "ZRANGE of 20": (True, b"\r\n", 1 + 4 * TAKEN,
                     lambda source: resp("ZRANGE", "z%d" % source.randrange(TREES), 0, TAKEN - 1, "WITHSCORES")),
}


def fill(server):
    connection = server.connect()
    for start in range(0, KEYS, 500):
        connection.sendall(b"".join(set_request(key(number), number) for number in range(start, start + 500)))
        receive(connection, b"STORED\r\n", 500)


def microseconds(server, connections, kind, pipeline, requests):
    """Server CPU of one request."""
    end, make = KINDS[kind]
    source = random.Random(1)
    buffers = [b"".join(make(source) for _ in range(pipeline)) for _ in range(BUFFERS)]
    return microseconds_of(server, connections, buffers, (end, pipeline), (pipeline, requests))


def microseconds_of(server, connections, buffers, reply, counts):
    """Server CPU of one request. A reply ends like this so many times; a buffer has so many requests, of so many."""
    (end, ends), (pipeline, requests) = reply, counts
    before, done, at = server.cpu_seconds(), 0, 0
    while done < requests:
        for connection in connections:
            connection.sendall(buffers[at % len(buffers)])
            at += 1
        for connection in connections:
            receive(connection, end, ends)
        done += pipeline * len(connections)
    return (server.cpu_seconds() - before) / done * 1e6


def measure_cpu(programs, rounds, requests):
    servers = [Server(name, program) for name, program in programs]
    try:
        connections = {server.name: [server.connect() for _ in range(CONNECTIONS)] for server in servers}
        for server in servers:
            fill(server)
        print("| | onggi, us | memcached, us | onggi / memcached |\n|---|---:|---:|---:|")
        for pipeline in (1, 16):
            for kind in KINDS:
                found = {server.name: [] for server in servers}
                for _ in range(rounds):
                    for server in servers:
                        count = requests if pipeline > 1 else requests // 4
                        found[server.name].append(microseconds(server, connections[server.name], kind, pipeline, count))
                cells = [f"{statistics.median(all):.2f} ({min(all):.2f} to {max(all):.2f})" for all in found.values()]
                ratio = statistics.median(found["onggi"]) / statistics.median(found["memcached"])
                print(f"| {kind}, pipeline {pipeline} | {' | '.join(cells)} | {ratio:.2f} |", flush=True)
    finally:
        for server in servers:
            server.stop()


def measure_peers(programs, rounds, requests):
    """Collections of ARCUS on both servers, by turns."""
    servers = [Server(name, program) for name, program in programs]
    kinds = {kind: rest for kind, (is_resp, *rest) in COLLECTIONS.items() if not is_resp}
    try:
        connections = {server.name: [server.connect() for _ in range(CONNECTIONS)] for server in servers}
        for server in servers:
            source = random.Random(3)
            for kind in ("bop insert", "lop insert"):
                end, ends, make = kinds[kind]
                for _ in range(TREES * ELEMENTS // 500):
                    connections[server.name][0].sendall(b"".join(make(source) for _ in range(500)))
                    receive(connections[server.name][0], end, 500 * ends)
        print("| | onggi, us | ARCUS, us | ARCUS / onggi |\n|---|---:|---:|---:|")
        for pipeline in (1, 16):
            for kind, (end, ends, make) in kinds.items():
                found = {server.name: [] for server in servers}
                for turn in range(rounds):
                    source = random.Random(turn * 100 + pipeline)
                    count = requests // 2 if pipeline > 1 else requests // 8
                    buffers = [b"".join(make(source) for _ in range(pipeline))
                               for _ in range(count // pipeline + CONNECTIONS)]
                    for server in servers if turn % 2 else reversed(servers):
                        found[server.name].append(microseconds_of(
                            server, connections[server.name], buffers, (end, ends * pipeline), (pipeline, count)))
                cells = [f"{statistics.median(all):.2f} ({min(all):.2f} to {max(all):.2f})" for all in found.values()]
                ratio = statistics.median(found["arcus"]) / statistics.median(found["onggi"])
                print(f"| {kind}, pipeline {pipeline} | {' | '.join(cells)} | {ratio:.2f} |", flush=True)
    finally:
        for server in servers:
            server.stop()


def measure_collections(program, rounds, requests):
    """Collections of ARCUS beside a sorted set of Redis clients, on one server; then the memory of b+trees."""
    server = Server("onggi", program)
    try:
        connections = {is_resp: [server.connect(is_resp) for _ in range(CONNECTIONS)] for is_resp in (False, True)}
        source = random.Random(3)
        for kind in ("bop insert", "lop insert", "ZADD"):
            is_resp, end, ends, make = COLLECTIONS[kind]
            for _ in range(TREES * ELEMENTS // 500):
                connections[is_resp][0].sendall(b"".join(make(source) for _ in range(500)))
                receive(connections[is_resp][0], end, 500 * ends)
        print("\n| | us | relative to ZADD or ZRANGE |\n|---|---:|---:|")
        for pipeline in (1, 16):
            found = {kind: [] for kind in COLLECTIONS}
            for _ in range(rounds):
                for kind, (is_resp, end, ends, make) in COLLECTIONS.items():
                    count = requests // 2 if pipeline > 1 else requests // 8
                    # Elements are new with every request.
                    total = count // pipeline + CONNECTIONS
                    buffers = [b"".join(make(source) for _ in range(pipeline)) for _ in range(total)]
                    found[kind].append(microseconds_of(
                        server, connections[is_resp], buffers, (end, ends * pipeline), (pipeline, count)))
            for kind, all in found.items():
                beside = statistics.median(found["ZADD" if kind.endswith(("insert", "ADD")) else "ZRANGE of 20"])
                middle = statistics.median(all)
                print(f"| {kind}, pipeline {pipeline} | {middle:.2f} ({min(all):.2f} to {max(all):.2f}) | "
                      f"{middle / beside:.2f} |", flush=True)
    finally:
        server.stop()
    server = Server("onggi", program)
    try:
        connection, before, trees = server.connect(), server.resident_bytes(), 2000
        for tree in range(trees):
            connection.sendall(b"".join(
                b"bop insert tree:%d %d 16 create 0 0 0\r\n%016d\r\n" % (tree, number * 7919 + 10**15, number)
                for number in range(ELEMENTS)))
            receive(connection, b"STORED\r\n", ELEMENTS)
        time.sleep(1)
        each = (server.resident_bytes() - before) / trees / ELEMENTS
        print(f"\nAn element of a b+tree of {ELEMENTS} (key of 8 bytes, data of 16): {each:.1f} bytes")
    finally:
        server.stop()


def bytes_per_item(name, program, flags, exptime):
    server = Server(name, program)
    try:
        connection, before = server.connect(), server.resident_bytes()
        for start in range(0, ITEMS, 2000):
            connection.sendall(b"".join(b"set k:%014d %d %d 16 noreply\r\n%016d\r\n" % (number, flags, exptime, number)
                                        for number in range(start, start + 2000)))
        connection.sendall(b"get k:%014d\r\n" % (ITEMS - 1))
        receive(connection, b"END\r\n", 1)
        time.sleep(1)
        return (server.resident_bytes() - before) / ITEMS - 32
    finally:
        server.stop()


def measure_memory(programs):
    print("\n| bytes per item beyond key and data | onggi | memcached |\n|---|---:|---:|")
    for title, flags, exptime in (("no flags", 0, 0), ("flags", 5, 0), ("flags and expiration", 5, 1_000_000)):
        cells = [f"{bytes_per_item(name, program, flags, exptime):.1f}" for name, program in programs]
        print(f"| {title} | {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onggi", required=True)
    parser.add_argument("--memcached", default="memcached")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=400_000)
    parser.add_argument("--collections", action="store_true", help="ARCUS' collections in place of items")
    parser.add_argument("--arcus", help="with --collections: compares them with this memcached program of ARCUS")
    options = parser.parse_args()
    programs = [("onggi", options.onggi), ("memcached", options.memcached)]
    if options.collections and options.arcus:
        measure_peers([("onggi", options.onggi), ("arcus", options.arcus)], options.rounds, options.requests)
        return
    if options.collections:
        measure_collections(options.onggi, options.rounds, options.requests)
        return
    measure_cpu(programs, options.rounds, options.requests)
    measure_memory(programs)


if __name__ == "__main__":
    main()
