"""`onggi import memcached://...`: the items of a running memcached, with flags and times, are in a data directory."""

import socket
import struct
import subprocess
import time

import need
from directory import SECONDS_MAX, Client
from servers import free_port

ITEMS = 3000


class Memcached:
    """A memcached of Debian on a free port."""

    def __init__(self, *options):
        self.port = free_port()
        user = ["-u", "nobody"]
        argv = [need.program("memcached", "memcached"), *user, "-l", "127.0.0.1", "-p", str(self.port), "-U", "0"]
        self.process = subprocess.Popen([*argv, *options], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS_MAX)
                self.file = self.socket.makefile("rb")
                return self
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()
        self.process.kill()
        self.process.wait()

    def set(self, items):
        """Stores items: key, value, flags, seconds until they expire or 0."""
        self.socket.sendall(b"".join(
            b"set %s %d %d %d\r\n%s\r\n" % (key.encode(), flags, seconds, len(value), value)
            for key, value, flags, seconds in items
        ))
        for _ in items:
            reply = self.file.readline()
            assert reply == b"STORED\r\n", reply


    def set_any(self, key, value):
        """Stores an item by the binary protocol, which takes every name."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS_MAX) as stream:
            head = struct.pack(">BBHBBHIIQ", 0x80, 0x01, len(key), 8, 0, 0, 8 + len(key) + len(value), 0, 0)
            stream.sendall(head + bytes(8) + key + value)
            reply = stream.recv(24)
            assert reply[:2] == b"\x81\x01" and reply[6:8] == b"\0\0", reply


def items_are_imported(tools):
    items = [(f"key:{number}", b"v" * (number % 700), number % 3, 0) for number in range(ITEMS)]
    items += [
        ("number", b"41", 0, 0), ("lines", b"a\r\nEND\r\n", 0, 0), ("empty", b"", 0, 0), ("%41+b", b"percent", 0, 0),
        ("flags", b"f", 4294967295, 0), ("large", b"x" * 900_000, 0, 0),
        ("expires", b"e", 5, 5000),
    ]
    with Memcached() as cache:
        cache.set(items)
        address = f"memcached://127.0.0.1:{cache.port}"
        told = tools.run("import", address, "--dry-run")
        assert f"{len(items)} items" in told and "1 expire" in told and "nothing was written" in told, told
        told = tools.run("import", address, "--dir", tools.scratch / "cache")
        assert f"imported {len(items)} keys" in told, told
        told = tools.run("import", address, "--dir", tools.scratch / "cache", status=2)
        assert "has files already" in told, told
    port = free_port()
    with tools.serve("cache", "--memcached-port", str(port)) as ours, Client(ours.port) as mine:
        assert mine.call("DBSIZE") == len(items)
        with (
            socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX) as stream,
            stream.makefile("rb") as file,
        ):
            for key, value, flags, _ in items:
                stream.sendall(b"get %s\r\n" % key.encode())
                head = file.readline()
                assert head == b"VALUE %s %d %d\r\n" % (key.encode(), flags, len(value)), head
                assert file.read(len(value) + 7) == value + b"\r\nEND\r\n", key
            stream.sendall(b"incr number 1\r\n")
            assert file.readline() == b"42\r\n"
        assert mine.call("TTL", "number") == -1 and 4000 < mine.call("TTL", "expires") <= 5000


def what_cannot_be_imported_is_said(tools):
    nothing = f"memcached://127.0.0.1:{free_port()}"
    assert "Connection refused" in tools.run("import", nothing, "--dry-run", status=2)
    assert "expected memcached://HOST[:PORT]" in tools.run("import", "memcached://", "--dry-run", status=2)
    told = tools.run("import", nothing, "--dir", tools.scratch / "none", "--follow", status=2)
    assert "memcached does not send" in told, told
    with Memcached() as cache:
        cache.set([("k", b"v", 0, 0)])
        cache.set_any(b"with space", b"v")
        told = tools.run("import", f"memcached://127.0.0.1:{cache.port}", "--dry-run")
        assert ": 1 item," in told and "nothing was written" in told, told
        assert "1 item is left out: the name has spaces or control characters" in told, told
    with Memcached("-o", "no_lru_crawler") as cache:
        cache.set([("k", b"v", 0, 0)])
        told = tools.run("import", f"memcached://127.0.0.1:{cache.port}", "--dir", tools.scratch / "none", status=2)
        assert "lru_crawler is disabled or busy" in told and not (tools.scratch / "none").exists(), told


def run(tools):
    tools.check("items of memcached are imported", lambda: items_are_imported(tools))
    tools.check("what cannot be imported of memcached is said", lambda: what_cannot_be_imported_is_said(tools))
