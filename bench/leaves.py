#!/usr/bin/env python3
"""Memory saved by compressed leaves of one large collection: 100,000 file paths as a set, a sorted set and a hash.

    python3 bench/leaves.py --onggi target/release/onggi [--as set,zset,hash] DIR...

The paths of the files below the directories are the members. In a sorted set their scores number them in an order
unrelated to their own; in a hash they are fields with empty values. For each form, one server runs without compression
and one with zstd and dictionaries. When the background pass is idle, the report gives `used_memory` and the process'
memory (resident, private and shared), each less its value in the empty server. Then every member is read. At last the
server restarts from a checkpoint, during which nothing may be compressed or decompressed, and is measured again.
"""

import argparse
import os
import pathlib
import random
import sys
import time

from documents import PIPELINE, Server, ZSTD, settled

KEY = b"paths"


def paths(directories, count):
    """`count` paths, in a repeatable order unrelated to their own."""
    found = {
        os.fsencode(os.path.join(top, name))
        for where in directories
        for top, _, names in os.walk(where)
        for name in names
    }
    found = random.Random(1).sample(sorted(found), min(count, len(found)))
    print(f"{len(found)} paths, {sum(map(len, found)) / 1e6:.2f} MB", flush=True)
    return found


# For each form: how to store a path, how to read it, and the expected reply.
FORMS = {
    "set": (lambda number, path: [b"SADD", KEY, path], lambda path: [b"SISMEMBER", KEY, path], lambda number: b"1"),
    "zset": (
        lambda number, path: [b"ZADD", KEY, b"%d" % number, path],
        lambda path: [b"ZSCORE", KEY, path],
        lambda number: b"%d" % number,
    ),
    "hash": (lambda number, path: [b"HSET", KEY, path, b""], lambda path: [b"HGET", KEY, path], lambda number: b""),
}


def in_pipelines(server, commands):
    for start in range(0, len(commands), PIPELINE):
        yield from server.ask(*commands[start : start + PIPELINE])


def counted(server):
    """`used_memory` and resident memory."""
    return int(server.info(b"memory")["used_memory"]), server.resident()


def row(name, state, now, empty):
    used, resident = (here - then for here, then in zip(now, empty))
    print(f"| {name} | {state} | {used / 1e6:.2f} | {resident / 1e6:.2f} |", flush=True)


def measure(options, form, members, compresses):
    store, read, answer = FORMS[form]
    command = [
        os.path.abspath(options.onggi),
        "serve", "--http-port", "0", "--port", "{port}", "--dir", "{dir}", "--save", "", "--appendonly", "no",
    ]
    server = Server("onggi", [*command, *(ZSTD if compresses else [])])
    try:
        empty = counted(server)
        for _ in in_pipelines(server, [store(number, path) for number, path in enumerate(members)]):
            pass
        info = settled(server, options.seconds) if compresses else time.sleep(3)
        row(form, "zstd" if compresses else "raw", counted(server), empty)
        if not compresses:
            return
        print(
            "\n".join(f"{key}: {value}" for key, value in info.items() if key.startswith("compression")),
            file=sys.stderr,
        )
        if list(in_pipelines(server, [read(path) for path in members])) != [
            answer(number) for number in range(len(members))
        ]:
            raise SystemExit(f"a member of the {form} is another one")
        row(form, "zstd, all read", counted(server), empty)
        settled(server, options.seconds)
        row(form, "zstd, unused again", counted(server), empty)
        server.ask([b"SAVE"])
        size = sum(file.stat().st_size for file in pathlib.Path(server.directory.name).rglob("prdb-*"))
        server.process.terminate()
        server.process.wait(timeout=60)
        server.start()
        info = server.info()
        row(form, f"restarted, {size / 1e6:.2f} MB in files", counted(server), empty)
        print(
            "\n".join(f"{key}: {value}" for key, value in info.items() if key.startswith("compression")),
            file=sys.stderr,
        )
    finally:
        server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onggi", required=True)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--as", dest="forms", default="set,zset,hash")
    parser.add_argument("--seconds", type=int, default=120, help="longest wait for the background pass")
    parser.add_argument("directories", nargs="+")
    options = parser.parse_args()
    members = paths(options.directories, options.count)
    print("| paths as | state | used_memory, MB | resident, MB |\n|---|---|---|---|", flush=True)
    for form in options.forms.split(","):
        for compresses in (False, True):
            measure(options, form, members, compresses)


if __name__ == "__main__":
    sys.exit(main())
