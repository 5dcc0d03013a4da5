"""Databases with policies of their own: memcached clients fill a cache, and other databases keep every key. Sticky
items of such a cache stay."""

import socket
import time

from wire import Wire

KEPT, ITEMS, BYTES = 1_000, 24_000, 1_000
OPTIONS = [("memcached-database", "3"), ("maxmemory", "20mb"), ("database", "4 maxmemory-policy volatile-lru")]


def run(server):
    """The problem, or None, of a server with these options."""
    resp, wire = Resp(server.port), Wire(server.memcached_port)
    value = "v" * BYTES
    for database in (0, 4):
        resp.call("SELECT", database)
        for number in range(KEPT):
            resp.call("SET", f"kept:{number}", value)
    tail = b" 5 0 %d\r\n%s\r\n" % (BYTES, value.encode())
    for start in range(0, ITEMS, 100):
        reply = wire.exchange(b"".join(b"set item:%d" % number + tail for number in range(start, start + 100)))
        if reply != b"STORED\r\n" * 100:
            return f"a full cache answers {reply[:100]}"
    held = sizes(resp)
    if held[0] != KEPT or held[4] != KEPT or not ITEMS // 5 < held[3] < ITEMS:
        return f"databases hold {held}"
    # Without room to be made, each kind of client gets its own error.
    resp.call("CONFIG", "SET", "database", "3 maxmemory-policy noeviction")
    replies = [wire.exchange(b"set more:%d 0 0 %d\r\n%s\r\n" % (n, BYTES, value.encode())) for n in range(2_000)]
    if replies[-1] != b"SERVER_ERROR out of memory storing object\r\n":
        return f"a full server answers {replies[-1]}"
    resp.call("SELECT", 0)
    if not resp.call("SET", "more", value).startswith(b"-OOM"):
        return "a full server stores a key"
    if sizes(resp)[0] != KEPT or wire.exchange(b"stats settings\r\n").count(b"STAT evictions off\r\n") != 1:
        return "a policy that was set at run time does not hold"
    return None


STICKY_OPTIONS = [
    ("memcached-database", "3"), ("maxmemory", "20mb"), ("arcus-sticky-limit", "100kb"), ("appendonly", "yes"),
    ("appendfsync", "always"),
]
STICKY = 300


def sticky(server, restart):
    """The problem, or None, of a server with these options."""
    wire, kept = Wire(server.memcached_port), b"VALUE kept:%d 1 6\r\nsticky\r\n"
    stored = b"".join(b"set kept:%d 1 -1 6\r\nsticky\r\n" % number for number in range(STICKY))
    made = b"bop insert tree 1 1 create 2 -1 0\r\nx\r\n"
    if wire.exchange(stored + made) != b"STORED\r\n" * STICKY + b"CREATED_STORED\r\n":
        return "sticky items were not stored"
    refusal = b"SERVER_ERROR out of memory storing object\r\n"
    if wire.exchange(b"set long 0 -1 200000\r\n%s\r\n" % (b"x" * 200_000)) != refusal:
        return "the limit of sticky items does not hold"
    tail = b" 5 0 %d\r\n%s\r\n" % (BYTES, b"v" * BYTES)
    for start in range(0, ITEMS, 100):
        wire.exchange(b"".join(b"set item:%d" % number + tail for number in range(start, start + 100)))
    expected = b"".join(kept % number for number in range(STICKY)) + b"END\r\nATTR expiretime=-1\r\nEND\r\n"
    asked = b"get " + b" ".join(b"kept:%d" % number for number in range(STICKY)) + b"\r\ngetattr tree expiretime\r\n"
    if wire.exchange(asked) != expected:
        return "a sticky item was evicted"
    restart()
    wire = Wire(server.memcached_port)
    if wire.exchange(asked) != expected:
        return "a sticky item is not so after a restart"
    deadline = time.monotonic() + 10
    while b"STAT sticky_items %d\r\n" % (STICKY + 1) not in wire.exchange(b"stats\r\n"):
        if time.monotonic() > deadline:
            return "stats counts other sticky items"
        time.sleep(0.05)
    return None


def sizes(resp):
    found = {}
    for database in (0, 3, 4):
        resp.call("SELECT", database)
        found[database] = int(resp.call("DBSIZE")[1:])
    return found


class Resp:
    """Sends one command after the other, whose replies are lines."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.lines = self.socket.makefile("rb")

    def call(self, *words):
        words = [str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        return self.lines.readline()
