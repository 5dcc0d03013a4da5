"""The memcached port beside Debian's memcached, and under real clients; see tests/memcached/."""

import socket
import subprocess
import sys
import time

import need
from job import ROOT, TOOLS, Failed, Job, Skip, Stage
from servers import Server, free_port
from stages.clients import system_certificates

HOME = ROOT / "tests" / "memcached"
PASSWORD = "correct-horse"
REQUESTS = 30_000
LONG_REQUESTS = 1_000_000


class Memcached:
    """Debian's memcached on a free port."""

    def __enter__(self):
        program = need.program("memcached", "memcached")
        self.port = free_port()
        self.process = subprocess.Popen([program, "-u", "root", "-l", "127.0.0.1", "-p", str(self.port), "-U", "0"])
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
    port = free_port()
    server = Server("onggi", options=[("memcached-port", port), *more.pop("options", [])], **more)
    server.memcached_port = port
    return server


def compare(job, seed, count):
    sys.path.insert(0, str(HOME))
    import differ
    with onggi() as server, Memcached() as memcached:
        done, problem = differ.run((server.memcached_port, memcached.port), seed, count)
        job.say(f"{done} requests, seed {seed}")
        job.check(f"{count} random requests are answered as memcached answers them", problem)
        job.check("the server lives", None if server.alive() else "it has ended")


def kill(job):
    sys.path.insert(0, str(HOME))
    import survives
    with onggi(options=[("appendonly", "yes"), ("appendfsync", "always")]) as server:
        def restart():
            server.start()
            wait_for(server.memcached_port)
            return server.memcached_port
        job.check("acknowledged items survive a kill", survives.run(server, restart))
        job.check("collections and their attributes survive kills", survives.collections(server, restart))


def login(job):
    sys.path.insert(0, str(HOME))
    import login as area
    with onggi(password=PASSWORD) as server:
        area.run(server, lambda name, holds: job.check(name, None if holds else "it did not"))


def hostile(job):
    sys.path.insert(0, str(HOME))
    import hostile as area
    with onggi() as server:
        area.run(
            server,
            job.seed,
            lambda name, holds, why: job.check(name, None if holds else why or "the other client noticed"),
        )


def pymemcache(_job):
    return [need.python_environment() / "python", HOME / "main.py"]


def gomemcache(job):
    go = need.program("go", "golang-go")
    program = TOOLS / "clients" / "gomemcache"
    job.build([go, "build", "-mod=readonly", "-o", program, "."], cwd=HOME / "gomemcache")
    return [program]


def npm_memcached(job):
    node, npm = need.program("node", "nodejs"), need.program("npm", "npm")
    home = HOME / "npm-memcached"
    if not (home / "node_modules" / ".package-lock.json").exists():
        job.build([npm, "ci", "--silent", "--no-audit", "--no-fund", "--prefix", home], env=system_certificates())
    return [node, home / "main.mjs"]


def java(job):
    need.program("javac", "openjdk-17-jdk-headless")
    maven = need.program("mvn", "maven")
    output = TOOLS / "clients" / "memcached"
    job.build([maven, "-q", "-B", "-ntp", "-f", HOME / "java" / "pom.xml", f"-Doutput.directory={output}", "compile"])
    return ["java", "-cp", f"{output}/classes:{output}/lib/*", "onggi.Main"]


def clients(job):
    for prepare in (pymemcache, gomemcache, npm_memcached, java):
        try:
            command = prepare(job)
        except Skip as reason:
            job.skip_check(prepare.__name__, str(reason))
            continue
        with onggi() as server:
            job.command([*command, server.memcached_port], name=prepare.__name__, counts=True, timeout=120)


def run(job: Job):
    compare(job, job.seed, REQUESTS)
    kill(job)
    login(job)
    hostile(job)
    clients(job)


def pieces(job):
    return [("memcached", run), ("a million requests", lambda job: compare(job, job.seed, LONG_REQUESTS))]


STAGE = Stage(
    "memcached", "the memcached port beside memcached 1.6, killed, attacked, and under real clients", run, pieces
)
