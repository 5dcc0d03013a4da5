"""Items, with flags and expirations, are there after a kill in sync mode."""

import signal
import socket
import time

from wire import Wire


def run(server, restart):
    """The problem, or None. `restart` starts the server again on the same data and gives its memcached port."""
    wire = Wire(server.memcached_port)
    until = int(time.time()) + 100_000
    for number in range(500):
        request = b"set k%d %d %d 5\r\nv%04d\r\n" % (number, number % 7 * 1000, (0, until)[number % 2], number)
        if wire.exchange(request) != b"STORED\r\n":
            return "set was not stored"
    wire.exchange(
        b"incr k0 1\r\nset n 3 0 2\r\n41\r\nincr n 1\r\nappend k1 0 0 1\r\n+\r\ntouch k2 %d\r\ndelete k3\r\n" % until
    )
    ids = wire.exchange(b"gets k4\r\n")
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    again = Wire(restart())
    for number in range(500):
        data = {1: b"v0001+", 3: None}.get(number, b"v%04d" % number)
        item = b"" if data is None else b"VALUE k%d %d %d\r\n%s\r\n" % (number, number % 7 * 1000, len(data), data)
        reply = again.exchange(b"get k%d\r\n" % number)
        if reply != item + b"END\r\n":
            return f"k{number} is {reply} after the restart, not {item}"
    if again.exchange(b"get n\r\n") != b"VALUE n 3 2\r\n42\r\nEND\r\n":
        return "the counter has not the value and flags that were acknowledged"
    stale = ids.split()[4]
    if again.exchange(b"cas k4 0 0 1 %s\r\nx\r\n" % stale) != b"EXISTS\r\n":
        return "an id of the earlier process was taken"
    return None


# Collections, read after the kill; each with its attributes and flags.
MADE = (
    b"lop insert l 0 2 create 5 0 7 error\r\nab\r\nlop insert l -1 1\r\nc\r\nsop create s 6 0 9\r\n"
    b"mop insert m f 1 create 7 0 0 unreadable\r\nv\r\nlop insert gone 0 1 create 8 0 3\r\nx\r\nlop delete gone 0\r\n"
    b"setattr s maxcount=10\r\n"
    b"bop insert b 10 0x0aff 2 create 9 0 3\r\nb1\r\nbop insert b 20 1\r\nx\r\nbop insert b 30 1\r\ny\r\nbop insert "
    b"b 40 1\r\nz\r\n"
    b"setattr b maxbkeyrange=100\r\nbop incr n 1 1\r\nbop create e 1 0 0 largest_silent_trim\r\n"
    + b"bop create big 2 0 0\r\n"
    + b"".join(b"bop insert big 0x%04x 0x01 30\r\n%030d\r\n" % (n * 7 % 65521, n) for n in range(600))
)
READ = (
    b"lop get l 0..-1\r\ngetattr l maxcount\r\nsop get s 0\r\ngetattr s\r\nmop get m 0 0\r\nlop get gone "
    b"0\r\ngetattr gone flags count\r\n"
    + (
        b"bop get b 0..100\r\ngetattr b\r\ngetattr e overflowaction count\r\nbop get big 0xffff..0x0000\r\ngetattr "
        b"big\r\n"
    )
)


def collections(server, restart):
    """The problem, or None: collections of ARCUS, empty ones too, are there after kills, from the log and a
    checkpoint."""
    wire = Wire(server.memcached_port)
    wire.exchange(MADE)
    before = wire.exchange(READ)
    if not all(part in before for part in (b"UNREADABLE", b"count=0", b"trimmed=1", b"ATTR count=600")):
        return f"the collections were not made: {before[:2000]}"
    for checkpoint in (False, True):
        if checkpoint:
            save(server.port)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        after = Wire(restart()).exchange(READ)
        if after != before:
            return f"after a kill {'and a checkpoint ' if checkpoint else ''}the replies are {after}, not {before}"
    return None


def save(port):
    """Takes a checkpoint, as a Redis client."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as redis:
        redis.sendall(b"SAVE\r\n")
        if redis.recv(100) != b"+OK\r\n":
            raise OSError("SAVE failed")
