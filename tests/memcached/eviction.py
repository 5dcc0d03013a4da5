"""Databases with policies of their own: memcached clients fill a cache, and other databases keep every key."""

import socket

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
