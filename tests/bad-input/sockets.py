"""Where the server listens, and how it ends."""

import os
import socket
import stat
import time

from resp import Connection, Error
from suite import Server, equal, expect


def free_port():
    """A port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def moving(suite):
    """`port` and `bind` change while connections stay; what cannot be listened on changes nothing."""
    server = suite.server
    with Connection(server) as stays:
        there = Server(server.host, free_port(), server.password, server.pid)
        stays.call("CONFIG", "SET", "port", there.port)
        with Connection(there) as connection:
            equal(connection.call("CONFIG", "GET", "port"), [b"port", b"%d" % there.port])
        expect(refused(server), "the old port still answers")
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            taken = other.getsockname()[1]
            text = stays.error("CONFIG", "SET", "port", taken)
            expect(str(taken) in text and "in use" in text.lower(), text)
        equal(stays.call("CONFIG", "GET", "port")[1], b"%d" % there.port)
        Connection(there).close()
        second = Server("127.0.0.2", there.port, server.password, server.pid)
        stays.call("CONFIG", "SET", "bind", "127.0.0.1 127.0.0.2")
        Connection(second).close()
        Connection(there).close()
        stays.call("CONFIG", "SET", "bind", "127.0.0.2")
        expect(refused(there), "an address that was taken back still answers")
        equal(stays.call("PING"), b"PONG")
        stays.call("CONFIG", "SET", "bind", "127.0.0.1", "port", server.port)
        Connection(server).close()


def refused(server):
    """Whether nobody accepts there, soon: the thread that accepts may have to wait for a processor before it stops
    listening."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            Connection(server, seconds=1).close()
        except OSError:
            return True
        time.sleep(0.01)
    return False


def socket_file(suite):
    """The socket file is for its owner alone."""
    with Connection(suite.server) as connection:
        path = connection.call("CONFIG", "GET", "unixsocket")[1].decode()
        equal(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        with socket.socket(socket.AF_UNIX) as unix:
            unix.connect(path)
            unix.sendall(b"PING\r\n")
            equal(unix.recv(16), b"+PONG\r\n")


def run(suite):
    suite.check("port and bind change at run time", lambda: moving(suite))
    suite.check("permissions of the unix socket", lambda: socket_file(suite))
