#!/usr/bin/env python3
"""Plays the tables of requests that the tests of ARCUS' dialect hold to arcus-memcached itself.

    python3 tests/memcached/arcus_tables.py --arcus PROGRAM --engine DEFAULT_ENGINE.SO [--scrub ASCII_SCRUB.SO]

The tables are those of tests/in-process/arcus_clients.rs, whose replies are Onggi's. Each function has a server of its
own. Replies that differ are printed, unless KNOWN has their request: these are rows of docs/protocol/arcus.md. The
end is 1 if another one differs, or one of KNOWN no longer does.
"""

import argparse
import pathlib
import re
import socket
import subprocess
import sys
import time

TABLES = pathlib.Path(__file__).parent.parent / "in-process" / "arcus_clients.rs"
FUNCTION = re.compile(r"fn (\w+)\(\) \{\n(.*?)\n\}\n", re.S)
TEXT = r'"((?:[^"\\]|\\.|\\\n)*)"'
ROW = re.compile(r"\(\s*" + TEXT + r",\s*\{?\s*" + TEXT + r",?\s*\}?,?\s*\)", re.S)
WAIT_SECONDS = 0.3

# By the difference, requests in which it shows.
KNOWN = {
    "an expiration of -1 without a limit": ["incr gone 1 0 -1 3"],
    "an attribute of a collection, of an item": ["setattr kv maxcount=5"],
    "a line with too few words": ["setattr k", "lop", "lop get k", "mget 3 0|abc|mn"],
    "requests of a pipe after a bad data chunk": [
        "lop insert b 0 6 create 11 0 0 pipe|datum0|lop insert b 1 6 pipe|datum1x|lop insert b 1 6 pipe|datum2|"
        "lop insert b 1 6|datum3",
        "lop get b 0..-1",
    ],
    "another command while a pipe is open": [
        "lop insert l 0 1 create 0 0 0 pipe|x|get l",
        "lop insert l 0 1 pipe|x|nonsense|lop insert l 0 1|y|lop get l 0..-1",
        "lop get l 0 pipe|lop get l 0",
        "lop insert l 0 1 create 0 0 0 pipe|x|mget 1 1|a",
    ],
    "meta commands, and the words for unknown ones": [
        "mget 3 2|a c d|mn", "lop insert k x 1|mn", "lop insert k 0 1 other|mn", "lop insert k 0 1 noreply|xx", "mn",
        "bop insert b 7 0xg 1|mn", "bop smget 5 2 0..100 5 other|b1 b2|mn",
    ],
    "no count": ["bop mget 2 1 0..20|b1"],
    "a key twice": ["bop smget 5 2 0..100 5 unique|b1 b1"],
}


def text_of(literal):
    """What a literal of Rust stands for."""
    literal = re.sub(r"\\\n\s*", "", literal)
    return literal.replace('\\"', '"').replace("\\0", "\0").replace("\\\\", "\\")


def wire(text):
    return f"{text}\r\n".replace("|", "\r\n").encode() if text else b""


def reply(connection, request, expected):
    """What comes until it is what is expected and nothing follows, or for WAIT_SECONDS."""
    connection.sendall(wire(request))
    got, end = b"", time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        try:
            part = connection.recv(1 << 16)
        except TimeoutError:
            continue
        if not part:
            break
        got += part
        if got == expected:
            end = min(end, time.monotonic() + 0.03)
    return got


def started(options):
    """A server, and a connection to it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    extensions = ["-X", options.scrub] if options.scrub else []
    command = [options.arcus, "-E", options.engine, *extensions, "-p", str(port), "-U", "0"]
    command += ["-l", "127.0.0.1", "-u", "root"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(100):
        try:
            connection = socket.create_connection(("127.0.0.1", port))
            connection.settimeout(0.02)
            return server, connection
        except OSError:
            time.sleep(0.05)
    server.kill()
    raise SystemExit(f"{options.arcus} does not accept connections")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arcus", required=True)
    parser.add_argument("--engine", required=True)
    parser.add_argument("--scrub")
    options = parser.parse_args()
    known = {request for requests in KNOWN.values() for request in requests}
    total, other, differing = 0, 0, set()
    for name, body in FUNCTION.findall(TABLES.read_text()):
        if "check_everywhere(&[" not in body:
            continue
        server, connection = started(options)
        for request, expected in ROW.findall(body):
            request, expected = text_of(request), wire(text_of(expected))
            got, total = reply(connection, request, expected), total + 1
            if got == expected:
                continue
            differing.add(request)
            if request not in known:
                other += 1
                print(f"{name}: {request!r}\n  Onggi {expected!r}\n  ARCUS {got!r}")
        connection.close()
        server.terminate()
        server.wait()
    gone = known - differing
    for request in sorted(gone):
        print(f"no difference any more: {request!r}")
    alike, as_known = total - len(differing), len(differing) - other
    print(f"{alike} of {total} replies are alike, {as_known} differ as is known, {other} otherwise")
    sys.exit(bool(other or gone or not total))


if __name__ == "__main__":
    main()
