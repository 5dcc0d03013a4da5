#!/usr/bin/env python3
"""What real documents take in memory: Onggi with dictionaries beside Valkey, which keeps them as they are.

    python3 bench/documents.py --onggi target/release/onggi --valkey /path/to/valkey-server [--bytes 100-2048] DIR...

JSON documents are found in the files below the directories, as by crates/codec/examples/measure: small files, and the members of
large ones; none twice. Every server gets all of them, under keys that say from what kind of file each comes. Memory is what the
kernel says of a process (resident, private and shared), less what it took when it was empty; Onggi is read when its background pass
has nothing left to do, and every document is read back and compared.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import time

FILE_MAX = 32 << 20
PIPELINE = 500


def documents(directories, least, most):
    """Documents by the name of their file, in an order that repeats."""
    found = collections.defaultdict(list)
    seen = set()

    def add(name, value):
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="surrogatepass")
        if least <= len(text) <= most:
            if text not in seen:
                seen.add(text)
                found[name].append(text)
        elif len(text) > most:
            members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            for member in members:
                if isinstance(member, (dict, list)):
                    add(name, member)

    for directory in directories:
        for path in sorted(pathlib.Path(directory).rglob("*.json")):
            try:
                if path.is_file() and path.stat().st_size <= FILE_MAX:
                    add(path.name, json.loads(path.read_bytes()))
            except (ValueError, OSError, RecursionError):
                pass
    return found


class Server:
    """A server of its own on a port that is free."""

    def __init__(self, name, command):
        self.name = name
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.directory = tempfile.TemporaryDirectory()
        command = [part.format(port=port, dir=self.directory.name) for part in command]
        self.process = subprocess.Popen(command, cwd=self.directory.name, stdout=subprocess.DEVNULL)
        for _ in range(200):
            try:
                self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
                self.file = self.socket.makefile("rb")
                if self.ask([b"PING"]) == [b"PONG"]:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise SystemExit(f"{name} does not answer")

    def ask(self, *commands):
        parts = []
        for command in commands:
            parts.append(b"*%d\r\n" % len(command))
            parts.extend(b"$%d\r\n%s\r\n" % (len(word), word) for word in command)
        self.socket.sendall(b"".join(parts))
        return [self.reply() for _ in commands]

    def reply(self):
        line = self.file.readline()
        if line[:1] == b"$":
            length = int(line[1:])
            return self.file.read(length + 2)[:-2] if length >= 0 else None
        if line.startswith(b"-LOADING"):
            return None
        if line[:1] == b"-":
            raise SystemExit(f"{self.name}: {line!r}")
        return line[1:-2]

    def resident(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Rss:"):
                return int(line.split()[1]) * 1024
        raise SystemExit("no smaps_rollup")

    def info(self):
        text = self.ask([b"INFO", b"compression"])[0].decode()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=60)
        self.directory.cleanup()


def load(server, pairs):
    for start in range(0, len(pairs), PIPELINE):
        server.ask(*[[b"SET", key, value] for key, value in pairs[start : start + PIPELINE]])


def verify(server, pairs):
    for start in range(0, len(pairs), PIPELINE):
        part = pairs[start : start + PIPELINE]
        if server.ask(*[[b"GET", key] for key, _ in part]) != [value for _, value in part]:
            raise SystemExit(f"{server.name}: a document is another one")


def settled(server, limit):
    """Waits until what is stored no longer changes, and memory has been given back."""
    last, since, end = None, time.time(), time.time() + limit
    while time.time() < end:
        info = server.info()
        now = (info["compression_values"], info["compression_stored_bytes"], server.resident() >> 20)
        if now != last:
            last, since = now, time.time()
        elif time.time() - since > 15 and int(info["compression_values"]) > 0:
            break
        time.sleep(0.5)
    return server.info()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onggi", required=True)
    parser.add_argument("--valkey", required=True)
    parser.add_argument("--bytes", default="100-2048", help="lengths of documents")
    parser.add_argument("--seconds", type=int, default=600, help="longest wait for the background pass")
    shards = "of Onggi, each with pages of its own, which a small store does not fill; 0 leaves it to the number of workers"
    parser.add_argument("--shards", default="0", help=shards)
    parser.add_argument("directories", nargs="+")
    options = parser.parse_args()
    least, most = map(int, options.bytes.split("-"))
    found = documents(options.directories, least, most)
    pairs = [
        (f"{name.removesuffix('.json')}:{number}".encode(), value)
        for name, values in sorted(found.items())
        for number, value in enumerate(values)
    ]
    random.Random(1).shuffle(pairs)
    raw = sum(len(value) for _, value in pairs)
    print(f"{len(pairs)} documents of {len(found)} kinds of files, {raw / 1e6:.1f} MB, {raw / len(pairs):.0f} bytes each")

    zstd = "--compression zstd --compression-idle-time 2 --compression-cpu-percent 80"
    onggi = [options.onggi, "serve", "--port", "{port}", "--dir", "{dir}", "--shards", options.shards]
    onggi += ["--save", "", "--appendonly", "no"]
    commands = {
        "valkey": [options.valkey, "--port", "{port}", "--save", "", "--appendonly", "no", "--dir", "{dir}"],
        "onggi, off": onggi,
        "onggi, zstd": [*onggi, *zstd.split()],
    }
    print("| server | memory, MB | bytes a document | of Valkey's |\n|---|---|---|---|")
    base = None
    for name, command in commands.items():
        server = Server(name, [os.path.abspath(command[0]), *command[1:]])
        try:
            empty = server.resident()
            load(server, pairs)
            info = settled(server, options.seconds) if "zstd" in name else time.sleep(3)
            taken = server.resident() - empty
            verify(server, pairs)
        finally:
            server.stop()
        base = base or taken
        print(f"| {name} | {taken / 1e6:.1f} | {taken / len(pairs):.0f} | {taken / base:.1%} |", flush=True)
        if info:
            print("\n" + "\n".join(f"{key}: {value}" for key, value in info.items() if key.startswith("compression")))


if __name__ == "__main__":
    sys.exit(main())
