"""Clients that send what no client should, next to one that must not notice."""

import contextlib
import random
import resource
import socket

from wire import Wire

IDLE = 10_000
# Descriptors that both ends of the connections need, here and in the server, which has some open besides.
SPARE = 200
OPTIONS = [("maxclients", IDLE + SPARE)]
MB = 1 << 20


def run(server, seed, check):
    good = Wire(server.memcached_port)
    good.exchange(b"set good 1 0 4\r\nkept\r\n")

    def unharmed():
        return good.exchange(b"get good\r\n") == b"VALUE good 1 4\r\nkept\r\nEND\r\n"

    for area in (lines, data, bytewise, garbage, unread, idle):
        problem = area(server, random.Random(seed))
        check(f"{area.__name__}: {area.__doc__}", problem is None and unharmed() and server.alive(), problem)


def is_closed(port, request):
    """Whether the server closes the connection after the request, within the time-out."""
    wire = Wire(port)
    try:
        wire.socket.sendall(request)
        while wire.socket.recv(1 << 16):
            pass
        return True
    except (ConnectionError, BrokenPipeError):
        return True
    except socket.timeout:
        return False
    finally:
        wire.close()


def lines(server, _):
    """lines without an end close the connection, but for keys to get"""
    if not all(
        is_closed(server.memcached_port, line)
        for line in (b"x" * 3000, b" " * 3000, b"\x80" + b"\0" * 23, b"mg " + b"k" * 3000)
    ):
        return "a connection stays open"
    wire = Wire(server.memcached_port)
    keys = b" ".join(b"key%d" % number for number in range(200_000))
    reply = wire.exchange(b"get " + keys + b" good\r\n")
    return None if reply == b"VALUE good 1 4\r\nkept\r\nEND\r\n" else f"a long line of keys gave {reply[:80]}"


def data(server, _):
    """data that is too long is skipped and takes no memory"""
    before, wire = resident(server), Wire(server.memcached_port)
    wire.socket.sendall(b"set big 0 0 2000000000\r\n")
    for _ in range(64):
        wire.socket.sendall(b"z" * MB)
    grown = resident(server) - before
    wire.close()
    return None if grown < 32 * MB else f"{grown >> 20} MB more"


def bytewise(server, _):
    """a request that comes byte by byte is a request"""
    wire = Wire(server.memcached_port)
    for byte in b"set slow 3 0 5\r\nhello\r\nget slow\r\nmn\r\n":
        wire.socket.sendall(bytes([byte]))
    reply = wire.until(b"MN\r\n")
    return None if reply == b"STORED\r\nVALUE slow 3 5\r\nhello\r\nEND\r\n" else f"{reply}"


def garbage(server, source):
    """random bytes do no harm"""
    words = [
        b"set", b"get", b"ms", b"mg", b"cas", b" ", b"\r\n", b"\n", b"0", b"noreply", b"k", b"\xff", b"\0", b"b",
        b"99999999999",
    ]
    for _ in range(300):
        wire = Wire(server.memcached_port)
        noise = b"".join(source.choice([*words, source.randbytes(9)]) for _ in range(200))
        try:
            wire.socket.sendall(noise)
        except OSError:
            pass
        wire.close()
    return None


def unread(server, _):
    """replies that a client does not read are not piled up"""
    wire, before = Wire(server.memcached_port), resident(server)
    wire.exchange(b"set long 0 0 100000\r\n" + b"y" * 100_000 + b"\r\n")
    wire.socket.settimeout(1)
    try:
        for _ in range(2_000):
            wire.socket.sendall(b"get long\r\n" * 100)
    except OSError:
        pass
    grown = resident(server) - before
    wire.close()
    return None if grown < 128 * MB else f"{grown >> 20} MB more"


def idle(server, _):
    """10,000 idle connections are no burden"""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] != resource.RLIM_INFINITY and before[1] < IDLE + SPARE:
        return f"it needs a hard limit of {IDLE + SPARE} descriptors (ulimit -Hn), which is {before[1]}"
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], IDLE + SPARE), before[1]))
    memory = resident(server)
    try:
        with contextlib.ExitStack() as stack:
            wires = [stack.enter_context(contextlib.closing(Wire(server.memcached_port))) for _ in range(IDLE)]
            grown = resident(server) - memory
            # One in a hundred wakes up; the others are there still at the end.
            served = all(wire.exchange(b"get good\r\n").startswith(b"VALUE") for wire in wires[::100])
            served = served and wires[1].exchange(b"mn\r\n") == b"MN\r\n"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    if grown > IDLE * 4096:
        return f"an idle connection takes {grown // IDLE} bytes"
    return None if served else "one was not served"


def resident(server):
    with open(f"/proc/{server.process.pid}/status") as status:
        line = next(line for line in status if line.startswith("VmRSS:"))
    return int(line.split()[1]) << 10
