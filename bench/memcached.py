#!/usr/bin/env python3
"""The memcached port compared with memcached: server CPU per operation, and memory per item.

    python3 bench/memcached.py --onggi target/release/onggi [--memcached memcached] [--rounds 5] [--requests 400000]

CPU is user and system time of the server's process over a fixed number of requests, from 20 connections that each
send a pipeline and wait for its replies; both servers have one worker and 50,000 items of 14-byte keys and 16 bytes
of data. Rounds alternate between the servers; the table has medians and, in brackets, the least and the most.
Memory is the growth of the resident size over two million items of 16-byte keys and 16 bytes of data, less those 32
bytes. Onggi runs without log and compression.
"""

import argparse
import os
import random
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

CONNECTIONS = 20
KEYS = 50_000
ITEMS = 2_000_000
BUFFERS = 64


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server with one worker on a port of its own."""

    def __init__(self, name, program):
        self.name, self.directory = name, tempfile.mkdtemp(prefix="onggi-bench-")
        self.port = free_port()
        argv = [program, "-u", "root", "-l", "127.0.0.1", "-p", str(self.port), "-U", "0", "-t", "1", "-m", "4096"]
        if name == "onggi":
            argv = [
                program,
                "serve", "--http-port", "0", "--port", str(free_port()), "--memcached-port", str(self.port),
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

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port))

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))

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
    before, done, at = server.cpu_seconds(), 0, 0
    while done < requests:
        for connection in connections:
            connection.sendall(buffers[at % BUFFERS])
            at += 1
        for connection in connections:
            receive(connection, end, pipeline)
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
    options = parser.parse_args()
    programs = [("onggi", options.onggi), ("memcached", options.memcached)]
    measure_cpu(programs, options.rounds, options.requests)
    measure_memory(programs)


if __name__ == "__main__":
    main()
