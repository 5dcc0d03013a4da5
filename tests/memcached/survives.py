"""Items, with flags and expirations, are there after a kill in sync mode."""

import signal
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
    wire.exchange(b"incr k0 1\r\nset n 3 0 2\r\n41\r\nincr n 1\r\nappend k1 0 0 1\r\n+\r\ntouch k2 %d\r\ndelete k3\r\n" % until)
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
