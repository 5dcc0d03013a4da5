"""Where the server listens, and how it ends."""

import os
import socket
import stat
import time

from resp import Connection, Error
from suite import Server, equal, expect


def free_port():
    """A port that no process has on 127.0.0.1 now, and a socket that keeps it on 127.0.0.2."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port, kept = probe.getsockname()[1], socket.socket()
            try:
                kept.bind(("127.0.0.2", port))
            except OSError:
                kept.close()
                continue
            return port, kept


def moving(suite):
    """`port` and `bind` change while connections stay; what cannot be listened on changes nothing."""
    server = suite.server
    port, kept = free_port()
    with kept, Connection(server) as stays:
        there = Server(server.host, port, server.password, server.pid)
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
        kept.close()
        stays.call("CONFIG", "SET", "bind", "127.0.0.1 127.0.0.2")
        Connection(second).close()
        Connection(there).close()
        stays.call("CONFIG", "SET", "bind", "127.0.0.2")
        expect(refused(there), "an address that was taken back still answers")
        equal(stays.call("PING"), b"PONG")
        stays.call("CONFIG", "SET", "bind", "127.0.0.1", "port", server.port)
        Connection(server).close()


def refused(server):
    """Whether no process accepts there, soon: the thread that accepts may have to wait for a processor before it stops
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


def own_address():
    """An IPv4 address of this host that is not loopback; `None` without one. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address = probe.getsockname()[0]
    return None if address.startswith("127.") else address


def protected(suite, address):
    """Without a password, a client of another address is refused, and the reason is sent; this host is served."""
    server = suite.server
    other = Server(address, server.port, "", server.pid)

    def refusal():
        with Connection(other, seconds=10) as connection:
            try:
                return connection.reply().decode()
            except Error as error:
                expect(connection.closed(), "the connection stays open")
                return str(error)

    with Connection(server) as control:
        rejected = int(server.info("stats", "rejected_connections"))
        control.call("CONFIG", "SET", "bind", f"127.0.0.1 {address}")
        text = refusal()
        expect(text.startswith("DENIED Running in protected mode because "), text)
        equal(int(server.info("stats", "rejected_connections")), rejected + 1)
        control.call("CONFIG", "SET", "protected-mode", "no")
        with Connection(other) as connection:
            equal(connection.call("PING"), b"PONG")
            control.call("CONFIG", "SET", "protected-mode", "yes")
            equal(connection.call("PING"), b"PONG")
        control.call("CONFIG", "SET", "requirepass", "secret")
        with Connection(other) as connection:
            expect(connection.error("PING").startswith("NOAUTH"), "a client without the password was served")
            equal(connection.call("AUTH", "secret"), b"OK")
        control.call("CONFIG", "SET", "requirepass", "", "bind", "127.0.0.1")


def run(suite):
    address = own_address()
    if address:
        suite.check("protected mode refuses other hosts", lambda: protected(suite, address))
    else:
        print("ok - protected mode refuses other hosts # SKIP this host has no address but loopback", flush=True)
    suite.check("port and bind change at run time", lambda: moving(suite))
    suite.check("permissions of the unix socket", lambda: socket_file(suite))
