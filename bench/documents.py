#!/usr/bin/env python3
"""Memory of real documents: Onggi with dictionaries compared with Valkey, which keeps them uncompressed.

    python3 bench/documents.py --onggi target/release/onggi --valkey /path/to/valkey-server [--kind json] DIR...

The documents come from the files below the directories, as in crates/keyspace/codec/examples/measure: small JSON files
and the members of large ones, short texts and the sections of long ones, each only once. Every server gets all of them;
a key names the kind of file that its document comes from. Memory is the process' memory (resident, private and shared)
less that of the empty process. Onggi is measured when its background pass is idle. Every document is read back and
compared twice; the report gives the server's CPU time per document, in microseconds.

With --unseen the growth is that of a random half of the documents, which are loaded after the others were compressed.
No dictionary was trained on them, unless INFO counts more dictionaries after the load than before.
"""

import argparse
import collections
import hashlib
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import time

FILE_MAX = 256 << 20
TEXTS = {".md", ".rst", ".txt"}
TEXT_NAMES = {"METADATA", "copyright"}
SECTION = 1500
PIPELINE = 500
STARTING = 600
ZSTD = ["--compression", "zstd", "--compression-idle-time", "2", "--compression-cpu-percent", "80"]


def json_documents(value, least, most):
    """The value as a document; its members if it is too long."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="surrogatepass")
    if least <= len(text) <= most:
        yield text
    elif len(text) > most:
        members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        for member in members:
            if isinstance(member, (dict, list)):
                yield from json_documents(member, least, most)


def text_documents(text, least, most):
    """The paragraphs of a text, joined to sections."""
    section = ""
    for paragraph in [*text.split("\n\n"), ""]:
        if not paragraph or len(section) + len(paragraph) > SECTION:
            if least <= len(section.encode()) <= most:
                yield section.encode()
            section = ""
        section += paragraph + "\n\n" if paragraph else ""


def documents_of(path, kind, least, most):
    """The documents in a file, and the prefix of their keys."""
    if path.suffix == ".json" and kind != "text":
        return path.name.removesuffix(".json"), json_documents(json.loads(path.read_bytes()), least, most)
    if kind != "json" and (path.suffix in TEXTS or path.name in TEXT_NAMES):
        return path.suffix[1:] or path.name, text_documents(path.read_text(encoding="utf-8"), least, most)
    return "", ()


def documents(directories, kind, least, most):
    """Pairs of keys and documents, in a repeatable order."""
    found = collections.defaultdict(list)
    seen = set()
    for directory in directories:
        for path in sorted(pathlib.Path(directory).rglob("*")):
            try:
                if not path.is_file() or path.is_symlink() or path.stat().st_size > FILE_MAX:
                    continue
                name, parts = documents_of(path, kind, least, most)
                for part in parts:
                    mark = hashlib.blake2b(part, digest_size=16).digest()
                    if mark not in seen:
                        seen.add(mark)
                        found[name].append(part)
            except (ValueError, OSError, RecursionError):
                pass
    pairs = [
        (f"{name}:{number}".encode(), value)
        for name, values in sorted(found.items())
        for number, value in enumerate(values)
    ]
    random.Random(1).shuffle(pairs)
    raw = sum(len(value) for _, value in pairs)
    print(
        f"{len(pairs)} documents of {len(found)} kinds of files, {raw / 1e6:.1f} MB, {raw / len(pairs):.0f} bytes each",
        flush=True,
    )
    return pairs


class Client:
    """A connection."""

    def __init__(self, name, port):
        self.name = name
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.file = self.socket.makefile("rb")

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
        if line[:1] == b"*":
            return [self.reply() for _ in range(int(line[1:]))]
        if line.startswith(b"-LOADING"):
            return None
        if line[:1] == b"-":
            raise SystemExit(f"{self.name}: {line!r}")
        return line[1:-2]


class Server:
    """A server on a free port, and a connection to it."""

    def __init__(self, name, command, preload=None):
        self.name = name
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.directory = tempfile.TemporaryDirectory()
        self.command = [part.format(port=self.port, dir=self.directory.name) for part in command]
        self.environment = {**os.environ, "LD_PRELOAD": preload} if preload else None
        self.start()

    def start(self):
        where = {"cwd": self.directory.name, "env": self.environment, "stdout": subprocess.DEVNULL}
        self.process = subprocess.Popen(self.command, **where)
        end = time.time() + STARTING
        while time.time() < end:
            try:
                self.own = Client(self.name, self.port)
                # The server is still loading.
                if self.ask([b"PING"]) == [b"PONG"]:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise SystemExit(f"{self.name} does not answer")

    def ask(self, *commands):
        return self.own.ask(*commands)

    def resident(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Rss:"):
                return int(line.split()[1]) * 1024
        raise SystemExit("no smaps_rollup")

    def processor_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def info(self, section=b"compression"):
        text = self.ask([b"INFO", section])[0].decode()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=60)
        self.directory.cleanup()


def words(document):
    """The names and members of a document in turn; one without members becomes a single member `body`."""
    value = json.loads(document) if document[:1] == b"{" else {}
    members = [(name, json.dumps(member, separators=(",", ":"), ensure_ascii=False)) for name, member in value.items()]
    pairs = [[part.encode(errors="surrogatepass") for part in member] for member in members] or [[b"body", document]]
    return [word for pair in pairs for word in pair]


# The indexes of documents in the only list.
PLACES = {}


def push(key, value):
    PLACES.setdefault(key, len(PLACES))
    return [b"RPUSH", b"documents", value]


# For each form: how to store a document, how to read it, and the expected reply.
FORMS = {
    "string": (lambda key, value: [b"SET", key, value], lambda key: [b"GET", key], lambda value: value),
    "hash": (lambda key, value: [b"HSET", key, *words(value)], lambda key: [b"HGETALL", key], words),
    "body": (
        lambda key, value: [b"HSET", key, b"body", value],
        lambda key: [b"HGET", key, b"body"],
        lambda value: value,
    ),
    "list": (lambda key, value: [b"RPUSH", key, *words(value)], lambda key: [b"LRANGE", key, b"0", b"-1"], words),
    "onehash": (
        lambda key, value: [b"HSET", b"documents", key, value],
        lambda key: [b"HGET", b"documents", key],
        lambda value: value,
    ),
    "onelist": (push, lambda key: [b"LINDEX", b"documents", b"%d" % PLACES[key]], lambda value: value),
}


def load(server, pairs, form="string"):
    for start in range(0, len(pairs), PIPELINE):
        server.ask(*[FORMS[form][0](key, value) for key, value in pairs[start : start + PIPELINE]])


def verify(server, pairs, form="string"):
    _, read, expected = FORMS[form]
    # The server chooses the order of fields.
    order = (lambda reply: sorted(zip(reply[::2], reply[1::2]))) if form == "hash" else lambda reply: reply
    for start in range(0, len(pairs), PIPELINE):
        part = pairs[start : start + PIPELINE]
        replies = server.ask(*[read(key) for key, _ in part])
        if [order(reply) for reply in replies] != [order(expected(value)) for _, value in part]:
            raise SystemExit(f"{server.name}: a document is another one")


def settled(server, limit):
    """Waits until stored values no longer change and memory has been returned."""
    last, since, passes, end = None, time.time(), 0, time.time() + limit
    while time.time() < end:
        info = server.info()
        now = (info["compression_values"], info["compression_stored_bytes"], server.resident() >> 20)
        if now != last:
            last, since, passes = now, time.time(), int(info["compression_rounds"])
        elif (
            time.time() - since > 15
            and int(info["compression_values"]) > 0
            and int(info["compression_rounds"]) >= passes + 2
        ):
            break
        time.sleep(0.5)
    return server.info()


def growth(server, pairs, options):
    """Memory of the documents after loading and compression, and the compression fields of INFO."""
    before = server.resident()
    load(server, pairs, options.form)
    info = settled(server, options.seconds) if "zstd" in server.name else time.sleep(3)
    return server.resident() - before, info or {}


def report(title, info):
    if not info:
        return
    print(
        f"\n{title}:\n"
        + "\n".join(f"{key}: {value}" for key, value in info.items() if key.startswith("compression"))
        + "\n"
    )


def lengths(text):
    """The range of `--bytes`."""
    try:
        least, most = map(int, text.split("-"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not two numbers of bytes, such as 100-2048") from None
    return least, most


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onggi", required=True)
    parser.add_argument("--valkey", required=True)
    parser.add_argument("--bytes", type=lengths, default="100-2048", metavar="LEAST-MOST", help="lengths of documents")
    parser.add_argument("--kind", choices=["json", "text", "both"], default="json")
    how = "a string, the fields of a hash, one field of a hash, the elements of a list, or an element of the only one"
    parser.add_argument("--as", dest="form", choices=FORMS, default="string", help=f"what a document becomes: {how}")
    parser.add_argument("--jemalloc", help="library to preload into Valkey")
    parser.add_argument("--level", default="3", help="zstd level")
    parser.add_argument("--seconds", type=int, default=600, help="longest wait for the background pass")
    shards = (
        "of Onggi, each with pages of its own, which a small store does not fill; 0 leaves it to the number of workers"
    )
    parser.add_argument("--shards", default="0", help=shards)
    unseen = "measure half of the documents, loaded after dictionaries were trained on the others"
    parser.add_argument("--unseen", action="store_true", help=unseen)
    parser.add_argument("directories", nargs="+")
    options = parser.parse_args()
    pairs = documents(options.directories, options.kind, *options.bytes)
    # Their order is random.
    known, pairs = (pairs[::2], pairs[1::2]) if options.unseen else ([], pairs)

    onggi = [options.onggi, "serve", "--http-port", "0", "--port", "{port}", "--dir", "{dir}"]
    onggi += ["--shards", options.shards, "--save", "", "--appendonly", "no"]
    commands = {
        "valkey": [options.valkey, "--port", "{port}", "--save", "", "--appendonly", "no", "--dir", "{dir}"],
        "onggi, off": onggi,
        "onggi, zstd": [*onggi, *ZSTD, "--compression-level", options.level],
    }
    print(
        "| server | memory, MB | bytes a document | of Valkey's | us to read one | again |\n|---|---|---|---|---|---|"
    )
    base = None
    for name, command in commands.items():
        server = Server(
            name, [os.path.abspath(command[0]), *command[1:]], options.jemalloc if name == "valkey" else None
        )
        try:
            if known:
                _, info = growth(server, known, options)
                report("compression, the half that is known", info)
            taken, info = growth(server, pairs, options)
            costs = []
            for _ in range(2):
                before = server.processor_seconds()
                verify(server, pairs, options.form)
                costs.append((server.processor_seconds() - before) / len(pairs) * 1e6)
        finally:
            server.stop()
        base = base or taken
        print(
            f"| {name} | {taken / 1e6:.1f} | {taken / len(pairs):.0f} | {taken / base:.1%} "
            f"| {costs[0]:.1f} | {costs[1]:.1f} |",
            flush=True,
        )
        report("compression", info)


if __name__ == "__main__":
    sys.exit(main())
