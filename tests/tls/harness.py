"""Connections with TLS to the server under test, and the reporting of checks."""

import os
import socket
import ssl
import traceback

import redis
from expect import equal
from redis.backoff import NoBackoff
from redis.retry import Retry

SECONDS_MAX = 60


class Harness:
    """Makes clients and reports checks as `ok - NAME` or `not ok - NAME: REASON`."""

    def __init__(self, directory, tls_port, port, password, pid):
        self.directory, self.tls_port, self.port, self.password, self.pid = directory, tls_port, port, password, pid
        self.failed = 0

    def path(self, file):
        """A file of the directory."""
        return os.path.join(self.directory, file)

    def client(self, host="localhost", shows="client", trusts="ca", **options):
        """A client that shows this certificate, or none, and trusts this CA. It never tries twice."""
        if shows:
            options.update(ssl_certfile=self.path(f"{shows}.pem"), ssl_keyfile=self.path(f"{shows}.key"))
        return redis.Redis(
            host=host, port=self.tls_port, password=self.password, socket_timeout=SECONDS_MAX, ssl=True,
            ssl_ca_certs=self.path(f"{trusts}.pem"), retry=Retry(NoBackoff(), 0), **options,
        )

    def admin(self):
        """A client without TLS."""
        return redis.Redis(port=self.port, password=self.password, socket_timeout=SECONDS_MAX)

    def context(self, shows="client"):
        """The settings of a connection that Python's library makes itself."""
        context = ssl.create_default_context(cafile=self.path("ca.pem"))
        context.load_cert_chain(self.path(f"{shows}.pem"), self.path(f"{shows}.key"))
        return context

    def connect(self, context, session=None):
        """A connection after its handshake and one PING."""
        tcp = socket.create_connection(("127.0.0.1", self.tls_port), timeout=SECONDS_MAX)
        connection = context.wrap_socket(tcp, server_hostname="localhost", session=session)
        connection.sendall(f"AUTH {self.password}\r\nPING\r\n".encode())
        expected = b"+OK\r\n+PONG\r\n"
        answer = b""
        while len(answer) < len(expected):
            piece = connection.recv(len(expected) - len(answer))
            if not piece:
                raise ConnectionError("the server has closed the connection")
            answer += piece
        equal(answer, expected)
        return connection

    def check(self, name, body):
        """Runs `body`; what it raises is the failure."""
        try:
            body(self)
            print(f"ok - {name}", flush=True)
        except Exception as problem:
            self.failed += 1
            print(f"not ok - {name}: {type(problem).__name__}: {problem}", flush=True)
            traceback.print_exc()


def refused(client, part=""):
    """Fails unless the connection fails, with this text in the error."""
    try:
        client.ping()
    except (redis.ConnectionError, ssl.SSLError) as problem:
        if part not in str(problem):
            raise AssertionError(f"error {problem!s} without {part!r}") from problem
        return
    raise AssertionError("the connection was accepted")
