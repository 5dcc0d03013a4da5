#!/usr/bin/env python3
"""The copy that a replica takes, next to that of a Valkey replica of the same primary: time, CPU and resident memory.

    python3 bench/follow.py --onggi target/release/onggi --valkey valkey-server [--bytes 2147483648] [--rounds 3]

The primary is Valkey on loopback, without log and saves and with `repl-diskless-sync-delay 0`. It holds strings of
1000 random bytes, and a tenth of the bytes as hashes of 20 fields of 48 random bytes. Each round measures one copy by
each way, in rotating order: a Valkey replica and an Onggi replica, both with their defaults but for `save ""`, from the
order to `master_link_status:up`; and `onggi import` into an empty directory, from its start to its end. CPU is the user
and system time of that process. Memory is the peak of its resident size less what the data takes, which is the
`used_memory` of the loaded replica. An import holds no data in memory.
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
from pathlib import Path

VALUE_LEN = 1000
HASH_FIELDS = 20
FIELD_LEN = 48
PIPELINE = 500
MIB = 1 << 20
SECONDS_MAX = 600


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def request(*words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(word), word))
    return b"".join(parts)


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX)
        self.file = self.socket.makefile("rb")

    def call(self, *words):
        self.socket.sendall(request(*words))
        return self.reply()

    def reply(self):
        line = self.file.readline()
        if line[:1] == b"$":
            return self.file.read(int(line[1:]) + 2)[:-2].decode()
        return line.strip().decode()

    def field(self, section, name):
        lines = self.call("INFO", section).splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line).get(name)


class Server:
    """A server in a directory of its own."""

    def __init__(self, argv, *options):
        self.directory, self.port = tempfile.mkdtemp(prefix="onggi-bench-"), free_port()
        argv = [*argv, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.directory, "--save", "", *options]
        self.process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + SECONDS_MAX
        while time.monotonic() < deadline:
            try:
                self.client = Client(self.port)
                # It may be loading.
                while self.client.call("PING") != "+PONG":
                    time.sleep(0.05)
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit(f"{argv[0]} does not answer")

    def status(self, name):
        """A field of the kernel's, in bytes."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
        raise SystemExit(f"no {name}")

    def cpu(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


def fill(client, size):
    draw = random.Random("copy")
    noise = draw.randbytes(64 * MIB)

    def piece(length):
        at = draw.randrange(len(noise) - length)
        return noise[at:at + length]
    written, number = 0, 0
    while written < size:
        batch = []
        for _ in range(PIPELINE):
            if number % 10 == 9:
                fields = [word for at in range(HASH_FIELDS) for word in (f"field:{at}", piece(FIELD_LEN))]
                batch.append(request("HSET", f"hash:{number:010}", *fields))
            else:
                batch.append(request("SET", f"key:{number:010}", piece(VALUE_LEN)))
            number += 1
        client.socket.sendall(b"".join(batch))
        for _ in batch:
            client.reply()
        written += PIPELINE * VALUE_LEN
    return number


def replicate(argv, primary, keys):
    server = Server(argv)
    try:
        cpu, begun = server.cpu(), time.monotonic()
        reply = server.client.call("REPLICAOF", "127.0.0.1", primary)
        assert reply == "+OK", reply
        # A replica that loads may keep its clients waiting.
        while server.client.field("replication", "master_link_status") != "up":
            time.sleep(0.02)
        seconds = time.monotonic() - begun
        cpu, peak = server.cpu() - cpu, server.status("VmHWM")
        assert server.client.call("DBSIZE") == f":{keys}"
        data = int(server.client.field("memory", "used_memory"))
        return {"s": seconds, "s of CPU": cpu, "data": data, "peak": peak}
    finally:
        server.end()


def take(onggi, primary):
    directory = tempfile.mkdtemp(prefix="onggi-bench-")
    try:
        begun = time.monotonic()
        argv = [onggi, "import", f"redis://127.0.0.1:{primary}", "--dir", f"{directory}/data"]
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        assert status == 0, status
        return {"s": time.monotonic() - begun, "s of CPU": used.ru_utime + used.ru_stime, "peak": used.ru_maxrss * 1024}
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--onggi", default="target/release/onggi")
    parser.add_argument("--valkey", default="valkey-server")
    parser.add_argument("--bytes", type=int, default=2 << 30)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    figures = {"Valkey replica": [], "Onggi replica": [], "onggi import": []}
    primary = Server([arguments.valkey], "--repl-diskless-sync-delay", "0", "--appendonly", "no")
    try:
        keys = fill(primary.client, arguments.bytes)
        ways = [
            ("Valkey replica", lambda: replicate([arguments.valkey], primary.port, keys)),
            ("Onggi replica", lambda: replicate([arguments.onggi, "serve", "--http-port", "0"], primary.port, keys)),
            ("onggi import", lambda: take(arguments.onggi, primary.port)),
        ]
        for number in range(arguments.rounds):
            for name, run in ways[number % len(ways):] + ways[:number % len(ways)]:
                figures[name].append(run())
                print(f"# round {number + 1}: {name}: {figures[name][-1]}", flush=True)
    finally:
        primary.end()
    data = {name: max((found.get("data", 0) for found in all_), default=0) for name, all_ in figures.items()}

    def median(name, figure):
        return statistics.median(found[figure] for found in figures[name])
    print(f"{keys} keys, {arguments.bytes / MIB:.0f} MiB of values, {arguments.rounds} rounds; medians\n")
    print("| | s | of Valkey's speed | s of CPU | data, MiB | most resident memory, MiB | above the data, MiB |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for name in figures:
        seconds, peak = median(name, "s"), median(name, "peak")
        speed = median("Valkey replica", "s") / seconds
        print(
            f"| {name} | {seconds:.1f} | {speed:.2f} | {median(name, 's of CPU'):.1f} | {data[name] / MIB:.0f} | "
            f"{peak / MIB:.0f} | {(peak - data[name]) / MIB:.0f} |"
        )


if __name__ == "__main__":
    main()
