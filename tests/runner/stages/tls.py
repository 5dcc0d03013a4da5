"""Clients over TLS: certificates, reloads under load, redis-cli, `onggi`, applications; see tests/tls/."""

import tempfile
from contextlib import contextmanager

import areas
import need
from job import ROOT, Job, Skip, Stage
from servers import Server, free_port
from stages import clients

HOME = ROOT / "tests" / "tls"
PASSWORD = "correct-horse-battery"
SECONDS_MAX = 300
# Programs of tests/clients that use TLS when this names a directory with certificates.
VARIABLE = "ONGGI_TEST_TLS"
APPLICATIONS = ("redis-py", "ioredis", "go-redis", "jedis", "redis-rs")


@contextmanager
def certificates_in_directory():
    """The directory of a CA, and of certificates of a server and a client."""
    need.program("openssl", "openssl")

    with tempfile.TemporaryDirectory(prefix="onggi-tls-") as directory:
        authority = areas.module(HOME, "authority").Authority(directory, "ca")
        authority.issue("server")
        authority.issue("client", common_name="app")
        yield directory


@contextmanager
def serving(*options, password=PASSWORD, kind="onggi"):
    """A server with a TLS port, and the directory of its certificates, its CA's, and a client's."""
    with certificates_in_directory() as directory:
        certificate, key = f"{directory}/server.pem", f"{directory}/server.key"
        port = free_port()
        files = [("tls-cert-file", certificate), ("tls-key-file", key), ("tls-ca-cert-file", f"{directory}/ca.pem")]
        with Server(kind, password=password, options=[("tls-port", port), *files, *options]) as server:
            server.tls_port = port
            yield server, directory


def certificates(job):
    python = need.python_environment() / "python"
    with serving() as (server, directory):
        job.command(
            [python, "main.py", directory, server.tls_port, server.port, PASSWORD, server.process.pid],
            name="certificates", cwd=HOME, timeout=SECONDS_MAX, counts=True,
        )
        job.check("the server lives after certificates", None if server.alive() else "it has ended")


def redis_cli(job):
    need.apt("redis-tools")
    with serving() as (server, directory):
        job.command(
            ["python3", "redis_cli.py", directory, server.tls_port, PASSWORD],
            name="redis-cli --tls", cwd=HOME, timeout=SECONDS_MAX, counts=True,
        )


def own_tools(job):
    with serving() as (server, directory):
        job.command(
            ["python3", "own_tools.py", directory, need.onggi(), server.tls_port, server.port, PASSWORD],
            name="onggi cli and bench --tls", cwd=HOME, timeout=SECONDS_MAX, counts=True,
        )


def confined(job):
    """A sandboxed server of its own: only the certificates are taken."""
    with certificates_in_directory() as directory:
        job.command(
            ["python3", "confined.py", directory, need.onggi(), free_port(), free_port()],
            name="a server in its sandbox", cwd=HOME, timeout=SECONDS_MAX, counts=True,
        )


def page(job):
    """The page and the metrics from another address."""
    with certificates_in_directory() as directory:
        job.command(
            ["python3", "page_access.py", directory, need.onggi(), free_port(), free_port()],
            name="the page from another address", cwd=HOME, timeout=SECONDS_MAX, counts=True,
        )


def moves(job):
    """A primary of Redis that is reached over TLS: Debian's has it built in."""
    python = need.python_environment() / "python"
    with serving(kind="redis") as (primary, directory):
        files = [
            ("tls-cert-file", f"{directory}/client.pem"), ("tls-key-file", f"{directory}/client.key"),
            ("tls-ca-cert-file", f"{directory}/ca.pem"),
        ]
        with Server("onggi", password=PASSWORD, options=[("tls-replication", "yes"), *files]) as replica:
            job.command(
                [python, "moves.py", directory, need.onggi(), primary.tls_port, PASSWORD, replica.port],
                name="data of a server over TLS", cwd=HOME, timeout=SECONDS_MAX, counts=True,
            )
            job.check("the replica lives", None if replica.alive() else "it has ended")


def application(job, client):
    """The application of a client library, all of whose connections use TLS and show a certificate."""
    command = client.prepare(job)
    with serving() as (server, directory):
        job.command(
            [*command, "localhost", server.tls_port, PASSWORD, server.unix], name=f"{client.name} over TLS",
            cwd=clients.CLIENTS / client.name, env={VARIABLE: directory}, timeout=SECONDS_MAX, counts=True,
        )
        job.check(f"the server lives after {client.name}", None if server.alive() else "it has ended")


def run(job: Job):
    certificates(job)
    redis_cli(job)
    own_tools(job)
    confined(job)
    page(job)
    moves(job)
    for client in clients.ALL:
        if client.name not in APPLICATIONS:
            continue
        try:
            application(job, client)
        except Skip as reason:
            job.skip_check(f"{client.name} over TLS", str(reason))


STAGE = Stage("tls", "clients over TLS, certificates that change under load, applications", run,
              lambda _job: [("everything", run)])
