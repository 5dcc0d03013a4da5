"""Clients of the TLS port that mean harm: handshakes that stop, are damaged, or come without pause; damaged records.

The directory of certificates and the port come from the environment. The server needs no certificate of clients: an
attacker without one gets less far.
"""

import multiprocessing
import os
import socket
import ssl
import time

from resp import Connection, Error, request
from suite import MB, equal, eventually, expect

HALF = 2000
DAMAGED = 1500
STORM_SECONDS = 4
# One core makes thousands of handshakes a second, and the server's part of each is a tenth of a millisecond or more.
P99_MS_MAX = 50
READERS = 20
PIECES = 3000


def directory():
    return os.environ["ONGGI_TEST_TLS"]


def address(server):
    return server.host, int(os.environ["ONGGI_TEST_TLS_PORT"])


def context():
    return ssl.create_default_context(cafile=f"{directory()}/ca.pem")


class TlsConnection(Connection):
    """A connection with TLS; what it needs of a plain one."""

    def __init__(self, server, settings=None, receive_bytes=None):
        tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        tcp.settimeout(30)
        if receive_bytes:
            tcp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        tcp.connect(address(server))
        tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = (settings or context()).wrap_socket(tcp, server_hostname="localhost")
        self.buffer = b""


class Manual:
    """A connection whose ciphertext passes through the test's hands."""

    def __init__(self, server):
        self.tcp = socket.create_connection(address(server), timeout=30)
        self.tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context().wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tcp.close()

    def shake(self):
        """Completes the handshake."""
        while True:
            try:
                self.tls.do_handshake()
                self.tcp.sendall(self.outgoing.read())
                return
            except ssl.SSLWantReadError:
                self.tcp.sendall(self.outgoing.read())
                self._receive()

    def encrypted(self, data):
        """The records for these bytes."""
        self.tls.write(data)
        return self.outgoing.read()

    def read(self, count):
        """This many bytes of replies."""
        got = b""
        while len(got) < count:
            try:
                got += self.tls.read(count - len(got))
            except ssl.SSLWantReadError:
                self._receive()
        return got

    def _receive(self):
        data = self.tcp.recv(1 << 16)
        expect(data, "the server has closed the connection")
        self.incoming.write(data)


def hello():
    """The first message of a client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def is_served(server):
    """Fails unless a good client is served."""
    with TlsConnection(server) as client:
        equal(client.call("PING"), b"PONG")


def ends(connection):
    """Whether the server closes the connection, after an alert at most."""
    try:
        while data := connection.recv(4096):
            expect(data[:1] == b"\x15" or data[:1] == b"\x16", f"it answered {data[:20]!r}")
        return True
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def half(suite):
    """Handshakes that stop: they count as connections that have not logged in, and end in time."""
    server, rng, whole = suite.server, suite.random("half"), hello()
    with Connection(server) as control:
        limit = 200
        control.call("CONFIG", "SET", "login-max-clients", limit, "login-timeout", 10)
        crowd = []
        try:
            for _ in range(HALF):
                connection = socket.create_connection(address(server), timeout=30)
                connection.sendall(whole[: rng.choice([0, 1, 5, rng.randrange(len(whole))])])
                crowd.append(connection)
            clients = lambda: control.call("CLIENT", "LIST").count(b"\n")
            eventually(lambda: clients() <= limit + 4, f"more connections than {limit} handshakes")
            is_served(server)
            eventually(lambda: clients() <= 4, "handshakes do not end after login-timeout", seconds=30)
            expect(all(ends(connection) for connection in crowd), "a connection stays open")
        finally:
            for connection in crowd:
                connection.close()
            control.call("CONFIG", "SET", "login-max-clients", 1024, "login-timeout", 10)


def damaged(suite):
    """First messages with changed, cut and added bytes, and records of any kind and length."""
    server, rng, whole = suite.server, suite.random("damaged"), hello()
    for number in range(DAMAGED * suite.times):
        data = bytearray(whole)
        kind = rng.randrange(5)
        if kind == 0:
            for _ in range(rng.randrange(1, 8)):
                data[rng.randrange(len(data))] = rng.randrange(256)
        elif kind == 1:
            del data[rng.randrange(len(data)):]
        elif kind == 2:
            at = rng.randrange(len(data))
            data[at:at] = rng.randbytes(rng.randrange(1, 300))
        elif kind == 3:
            data = bytearray([rng.randrange(20, 25), 3, rng.randrange(5), *rng.randbytes(2)])
            data += rng.randbytes(rng.choice([0, 100, 20_000]))
        else:
            data = bytearray(request("SET", "broken in", "x") * rng.randrange(1, 100))
        with socket.create_connection(address(server), timeout=30) as connection:
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
            except OSError:
                # It has closed already.
                continue
            expect(ends(connection), f"attack {number} of kind {kind} leaves the connection open")
    is_served(server)
    with Connection(server) as control:
        equal(control.call("EXISTS", "broken in"), 0)


def damaged_records(suite):
    """After the handshake, a record with a changed byte ends the connection, and its request does not run."""
    server, rng = suite.server, suite.random("records")
    for number in range(200 * suite.times):
        with Manual(server) as connection:
            connection.shake()
            connection.tcp.sendall(connection.encrypted(request("SET", "good", number)))
            equal(connection.read(5), b"+OK\r\n")
            data = bytearray(connection.encrypted(request("SET", "bad", number)))
            data[rng.randrange(5, len(data))] ^= 1 << rng.randrange(8)
            connection.tcp.sendall(data)
            try:
                while connection.tcp.recv(4096):
                    # An alert, or a ticket.
                    pass
            except ConnectionError:
                pass
    with Connection(server) as control:
        equal(control.call("EXISTS", "bad"), 0)
        equal(control.call("GETDEL", "good"), b"%d" % (200 * suite.times - 1))


def small_records(suite):
    """A request of which each byte is a record, and records that carry nothing."""
    server = suite.server
    with Manual(server) as connection:
        connection.shake()
        data = request("ECHO", "x" * PIECES)
        connection.tcp.sendall(b"".join(connection.encrypted(data[at:at + 1]) for at in range(len(data))))
        expected = b"$%d\r\n%b\r\n" % (PIECES, b"x" * PIECES)
        equal(connection.read(len(expected)), expected)


def storm(suite):
    """Full handshakes without pause by one process, of which every second one is given up half-way."""
    counter = multiprocessing.Value("q", 0)
    process = multiprocessing.Process(target=churn, args=(suite.server, STORM_SECONDS * suite.times, counter))
    process.start()
    process.join()
    print(f"   handshakes: {counter.value / STORM_SECONDS / suite.times:.0f} a second", flush=True)
    expect(process.exitcode == 0 and counter.value > 0, "the handshakes failed")


def churn(server, seconds, counter):
    """Connects without pause."""
    settings, first = context(), hello()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with socket.create_connection(address(server), timeout=30) as connection:
            connection.sendall(first)
            connection.recv(1)
        with TlsConnection(server, settings) as client:
            equal(client.call("PING"), b"PONG")
        counter.value += 2


def unread(suite):
    """Clients that ask for far more than they read."""
    server = suite.server
    with Connection(server) as control:
        control.call("SET", "large", b"x" * MB)
    clients = [TlsConnection(server, receive_bytes=4096) for _ in range(READERS)]
    try:
        for client in clients:
            client.socket.settimeout(0.2)
            try:
                client.send(request("GET", "large") * 2000)
            except OSError:
                # The server takes no more.
                pass
        time.sleep(1)
        with TlsConnection(server) as other:
            equal(other.call("PING"), b"PONG")
    finally:
        for client in clients:
            client.close()
        with Connection(server) as control:
            control.call("DEL", "large")


def authentication(suite):
    """Nothing runs before the login, and the password is not replaced by the handshake."""
    server = suite.server
    with Connection(server) as control:
        control.call("CONFIG", "SET", "requirepass", "secret")
        try:
            with TlsConnection(server) as client:
                expect(client.error("GET", "k").startswith("NOAUTH"), "a command ran before the login")
                equal(client.call("AUTH", "secret"), b"OK")
                equal(client.call("PING"), b"PONG")
        except Error as error:
            raise AssertionError(str(error)) from error
        finally:
            control.call("CONFIG", "SET", "requirepass", "")


def run(suite):
    suite.attack(f"tls: {HALF} handshakes that stop", lambda: half(suite))
    suite.attack(f"tls: {DAMAGED * suite.times} damaged first messages", lambda: damaged(suite))
    suite.attack("tls: damaged records after the handshake", lambda: damaged_records(suite))
    suite.attack("tls: a record for each byte", lambda: small_records(suite))
    suite.attack("tls: handshakes without pause", lambda: storm(suite), p99_ms=P99_MS_MAX)
    suite.attack("tls: clients that read nothing", lambda: unread(suite))
    suite.check("tls: login is needed", lambda: authentication(suite))
