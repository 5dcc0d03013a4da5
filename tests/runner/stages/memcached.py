"""The memcached port compared with Debian's memcached, and under real clients; see tests/memcached/."""

import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import areas
import need
from job import ROOT, Failed, Job, Skip, Stage
from servers import Server, free_port
from stages.clients import go_program, java_program, with_packages

HOME = ROOT / "tests" / "memcached"
PASSWORD = "correct-horse"
REQUESTS = 30_000
LONG_REQUESTS = 1_000_000


class Memcached:
    """Debian's memcached on a free port, with these options besides."""

    def __init__(self, *options):
        self.options = options

    def __enter__(self):
        program = need.program("memcached", "memcached")
        self.port = free_port()
        place = ["-u", "root", "-l", "127.0.0.1", "-p", str(self.port), "-U", "0"]
        self.process = subprocess.Popen([program, *place, *self.options])
        wait_for(self.port)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def wait_for(port):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise Failed(f"nothing answers on port {port}")


def onggi(**more):
    """A server with a memcached port, which it remembers."""
    port = more.pop("memcached_port", None) or free_port()
    server = Server("onggi", options=[("memcached-port", port), *more.pop("options", [])], **more)
    server.memcached_port = port
    return server


def compare(job, seed, count):
    differ = areas.module(HOME, "differ")
    with onggi() as server, Memcached() as memcached:
        done, problem = differ.run((server.memcached_port, memcached.port), seed, count)
        job.say(f"{done} requests, seed {seed}")
        job.check(f"{count} random requests are answered as memcached answers them", problem)
        job.check("the server lives", None if server.alive() else "it has ended")


def kill(job):
    survives = areas.module(HOME, "survives")
    with onggi(options=[("appendonly", "yes"), ("appendfsync", "always")]) as server:
        def restart():
            server.start()
            wait_for(server.memcached_port)
            return server.memcached_port
        job.check("acknowledged items survive a kill", survives.run(server, restart))
        job.check("collections and their attributes survive kills", survives.collections(server, restart))


def upgrade(job):
    area = areas.module(HOME, "upgrade")
    with onggi(options=area.OPTIONS) as server:
        def restart():
            server.start()
            wait_for(server.memcached_port)
            return server.memcached_port
        job.check("a directory of an earlier version is opened", area.run(server, restart))


def eviction(job):
    area = areas.module(HOME, "eviction")
    with onggi(options=area.OPTIONS) as server:
        job.check("each database is evicted by its own policy", area.run(server))
    with onggi(options=area.STICKY_OPTIONS) as server:
        def restart():
            server.process.kill()
            server.process.wait()
            server.start()
            wait_for(server.memcached_port)
        job.check("sticky items stay, within their limit, and survive a kill", area.sticky(server, restart))


def login(job):
    area = areas.module(HOME, "login")
    with onggi(password=PASSWORD) as server:
        area.run(server, lambda name, holds: job.check(name, None if holds else "it did not"))


def hostile(job):
    area = areas.module(HOME, "hostile")
    with onggi(options=area.OPTIONS) as server:
        area.run(
            server,
            job.seed,
            lambda name, holds, why: job.check(name, None if holds else why or "the other client noticed"),
        )


def cluster(job):
    """Two nodes that ARCUS' client finds by ZooKeeper."""
    area = areas.module(HOME, "cluster")
    try:
        need.apt("zookeeper")
        java, option, path, _ = arcus(job)
        # The client brings ZooKeeper 3.4, which resolves no address under Java 17. Debian's takes its place.
        command = [java, option, f"{area.ZOOKEEPER}:{path}", "onggi.Clustered"]
    except Skip as reason:
        job.skip_check("cluster", str(reason))
        return
    nodes = ExitStack()

    def start(port, zookeeper, failstop):
        options = [("arcus-zookeeper", zookeeper), ("arcus-zookeeper-timeout", area.SESSION_SECONDS),
                   ("arcus-zkfailstop", failstop)]
        return nodes.enter_context(onggi(options=options, memcached_port=port))

    start.port = free_port
    with tempfile.TemporaryDirectory(prefix="onggi-zookeeper-") as directory:
        directory = Path(directory)
        zookeeper = area.ZooKeeper(java, directory, free_port())
        client = area.Client([*command, zookeeper.address, area.SERVICE], directory)
        try:
            area.run(zookeeper, client, start, lambda name, holds: job.check(name, None if holds else "it did not"))
        finally:
            nodes.close()
            client.process.kill()
            client.process.wait()
            zookeeper.stop()


def pymemcache(_job):
    return [need.python_environment() / "python", HOME / "main.py"]


def gomemcache(job):
    return go_program(job, HOME / "gomemcache")


def npm_memcached(job):
    home = HOME / "npm-memcached"
    return [with_packages(job, home), home / "main.mjs"]


def java(job):
    return java_program(job, HOME / "java", "memcached")


def arcus(job):
    return java_program(job, HOME / "arcus")


# Clients of memcached itself, which must pass on it as well.
PLAIN = (pymemcache, gomemcache, npm_memcached, java)


def clients(job):
    for prepare in (*PLAIN, arcus):
        try:
            command = prepare(job)
        except Skip as reason:
            job.skip_check(prepare.__name__, str(reason))
            continue
        with onggi() as server:
            job.command([*command, server.memcached_port], name=prepare.__name__, counts=True, timeout=120)


def clients_on_memcached(job):
    for prepare in PLAIN:
        command = prepare(job)
        # Its longest item includes the header; ours does not.
        with Memcached("-I", "2m") as memcached:
            job.command([*command, memcached.port], name=f"{prepare.__name__} on memcached", counts=True, timeout=120)


def run(job: Job):
    compare(job, job.seed, REQUESTS)
    kill(job)
    upgrade(job)
    eviction(job)
    login(job)
    hostile(job)
    clients(job)
    cluster(job)


def pieces(job):
    return [
        ("memcached", run),
        ("a million requests", lambda job: compare(job, job.seed, LONG_REQUESTS)),
        ("clients on memcached", clients_on_memcached),
    ]


STAGE = Stage(
    "memcached", "the memcached port beside memcached 1.6, killed, attacked, and under real clients", run, pieces
)
