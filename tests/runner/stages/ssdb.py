"""The SSDB port under real clients, attacked and killed, with a database on disk; see tests/ssdb/."""

import areas
import need
from job import ROOT, Job, Skip, Stage
from servers import Server, free_port
from stages.clients import with_packages
from stages.memcached import wait_for

HOME = ROOT / "tests" / "ssdb"
PASSWORD = "correct-horse"
DISK = [("appendonly", "yes"), ("appendfsync", "always"), ("database", "0 engine disk")]


def onggi(**more):
    """A server with an SSDB port, which it remembers."""
    port = free_port()
    server = Server("onggi", options=[("ssdb-port", port), *more.pop("options", [])], **more)
    server.ssdb_port = port
    return server


def pyssdb(_job):
    return [need.python_environment() / "python", HOME / "main.py"]


def npm_ssdb(job):
    home = HOME / "npm-ssdb"
    return [with_packages(job, home), home / "main.mjs"]


def run(job: Job):
    hostile = areas.module(HOME, "hostile")

    def check(name, holds, why=None):
        job.check(name, None if holds else why or "it did not")

    for prepare in (pyssdb, npm_ssdb):
        try:
            command = prepare(job)
        except Skip as reason:
            job.skip_check(prepare.__name__, str(reason))
            continue
        for options in ([], DISK):
            with onggi(options=options) as server:
                name = f"{prepare.__name__}{' on disk' if options else ''}"
                job.command([*command, server.ssdb_port], name=name, counts=True, timeout=60)
    with onggi(password=PASSWORD) as server:
        hostile.login(server, PASSWORD, check)
    with onggi(options=DISK) as server:
        def restart():
            server.start()
            wait_for(server.ssdb_port)

        job.check("acknowledged changes survive a kill", hostile.survives(server, restart))
    with onggi() as server:
        hostile.run(server, job.seed, check)


STAGE = Stage("ssdb", "the SSDB port under real clients, attacked and killed", run)
