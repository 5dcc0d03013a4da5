"""Connections to the server under test, and the reporting of checks."""

import os
import time
import traceback

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry


def tls_options():
    """What a client over TLS needs; nothing unless ONGGI_TEST_TLS names the directory of its certificates."""
    directory = os.environ.get("ONGGI_TEST_TLS")
    if not directory:
        return {}
    return {
        "ssl": True,
        "ssl_ca_certs": f"{directory}/ca.pem",
        "ssl_certfile": f"{directory}/client.pem",
        "ssl_keyfile": f"{directory}/client.key",
    }


class Harness:
    """Makes clients and reports checks as `ok - NAME` or `not ok - NAME: REASON`."""

    def __init__(self, host, port, password, unix):
        self.host, self.port, self.password, self.unix = host, int(port), password, unix
        self.failed = 0
        self.open = []

    def client(self, **options):
        """A client with a connection pool of its own; replies are bytes."""
        options.setdefault("password", self.password)
        options.setdefault("retry", Retry(NoBackoff(), 1))
        client = redis.Redis(host=self.host, port=self.port, **tls_options(), **options)
        self.open.append(client)
        return client

    def local(self, **options):
        """A client on the server's unix socket."""
        client = redis.Redis(unix_socket_path=self.unix, password=self.password, **options)
        self.open.append(client)
        return client

    def check(self, name, body):
        """Runs `body`; what it raises is the failure."""
        try:
            body()
            print(f"ok - {name}", flush=True)
        except Exception as problem:
            self.failed += 1
            print(f"not ok - {name}: {type(problem).__name__}: {problem}", flush=True)
            traceback.print_exc()

    @staticmethod
    def equal(got, expected):
        """Fails unless the two are equal."""
        if got != expected:
            raise AssertionError(f"got {str(got)[:200]!r}, expected {str(expected)[:200]!r}")

    @staticmethod
    def raises(kind, text, body):
        """Fails unless `body` raises `kind` with `text` in its message."""
        try:
            body()
        except kind as problem:
            if text not in str(problem):
                raise AssertionError(f"error {problem!s} without {text!r}") from problem
            return
        raise AssertionError(f"no {kind.__name__} was raised")

    @staticmethod
    def eventually(condition, seconds):
        """Waits for a condition until a deadline; the polls only shorten the wait."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"did not happen within {seconds} s")
            time.sleep(0.002)

    def close(self):
        """Ends all connections; returns the exit status."""
        for client in self.open:
            client.close()
        return 1 if self.failed else 0
