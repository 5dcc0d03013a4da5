"""Applications on real client libraries, each loading a real catalogue into the server; see tests/clients/.

The long form runs the same programs against Valkey 9.1: what passes there and fails here is our fault.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import need
from job import ROOT, TARGET, TOOLS, Job, Skip, Stage
from servers import Server

CLIENTS = ROOT / "tests" / "clients"
SECONDS_MAX = 300


@dataclass(frozen=True)
class Client:
    """A client program: `prepare` installs and builds it and returns the command that runs it."""

    name: str
    prepare: Callable[[Job], list]

    def run(self, job, kind):
        """Runs the program against a fresh server of the kind."""
        command = self.prepare(job)
        with Server(kind, password="correct-horse-battery") as server:
            job.command(
                [*command, "127.0.0.1", server.port, server.password, server.unix],
                name=f"{self.name} on {kind}",
                cwd=CLIENTS / self.name,
                timeout=SECONDS_MAX,
                counts=True,
            )
            job.check(f"{kind} lives after {self.name}", None if server.alive() else "the server has ended")


def redis_py(_job):
    return [need.python_environment() / "python", "main.py"]


def collections(_job):
    return [need.python_environment() / "python", "main.py"]


def go_redis(job):
    need.apt("wamerican-huge")
    return go_program(job, CLIENTS / "go-redis")


def jedis(job):
    return java_program(job, CLIENTS / "jedis")


def ioredis(job):
    return [with_packages(job, CLIENTS / "ioredis"), "main.mjs"]


def scripts_node(job):
    return [with_packages(job, CLIENTS / "scripts-node"), "main.mjs"]


def scripts_python(_job):
    return [need.python_environment() / "python", "main.py"]


def scripts_ruby(_job):
    need.apt("ruby-sidekiq")
    return [need.program("ruby", "ruby"), "main.rb"]


def scripts_php(_job):
    need.apt("php-redis", *(f"php-illuminate-{part}" for part in ("cache", "container", "events", "queue", "redis")))
    return [need.program("php", "php-cli"), "main.php"]


def scripts_go(job):
    return go_program(job, CLIENTS / "scripts-go")


def scripts_java(job):
    return java_program(job, CLIENTS / "scripts-java")


def go_program(job, home):
    """Builds the program of Go. Returns the command that runs it."""
    go = need.program("go", "golang-go")
    program = TOOLS / "clients" / home.name
    job.build([go, "build", "-mod=readonly", "-o", program, "."], cwd=home)
    return [program]


def java_program(job, home, name=None):
    """Builds the program of Java. Returns the command that runs it."""
    need.program("javac", "openjdk-17-jdk-headless")
    maven = need.program("mvn", "maven")
    output = TOOLS / "clients" / (name or home.name)
    job.build([maven, "-q", "-B", "-ntp", "-f", home / "pom.xml", f"-Doutput.directory={output}", "compile"])
    return ["java", "-cp", f"{output}/classes:{output}/lib/*", "onggi.Main"]


def with_packages(job, home):
    """Installs what the lock file names, unless it is there. Returns Node's program."""
    node = need.program("node", "nodejs")
    npm = need.program("npm", "npm")
    lock = home / "package-lock.json"
    done = home / "node_modules" / ".package-lock.json"
    if not done.exists() or done.stat().st_mtime < lock.stat().st_mtime:
        job.build([npm, "ci", "--silent", "--no-audit", "--no-fund", "--prefix", home], env=system_certificates())
    return node


def system_certificates():
    """Node has a list of authorities of its own; the system's are trusted too, as by pip and cargo: a mirror may have
    its own."""
    bundle = Path("/etc/ssl/certs/ca-certificates.crt")
    return {} if "NODE_EXTRA_CA_CERTS" in os.environ or not bundle.exists() else {"NODE_EXTRA_CA_CERTS": str(bundle)}


def redis_rs(job):
    need.apt("wamerican-insane", "unicode-data", "iso-codes")
    target = TARGET / "clients"
    job.build(["cargo", "build", "--release", "--locked", "--manifest-path", CLIENTS / "redis-rs" / "Cargo.toml"],
              env={"CARGO_TARGET_DIR": str(target)})
    return [target / "release" / "onggi-test-redis-rs"]


ALL = [
    Client("redis-py", redis_py),
    Client("collections", collections),
    Client("go-redis", go_redis),
    Client("jedis", jedis),
    Client("ioredis", ioredis),
    Client("redis-rs", redis_rs),
    Client("scripts-node", scripts_node),
    Client("scripts-python", scripts_python),
    Client("scripts-ruby", scripts_ruby),
    Client("scripts-php", scripts_php),
    Client("scripts-go", scripts_go),
    Client("scripts-java", scripts_java),
]


def run(job: Job):
    for client in ALL:
        try:
            client.run(job, "onggi")
        except Skip as reason:
            job.skip_check(client.name, str(reason))


def pieces(_job):
    return [(f"{client.name} on {kind}", lambda job, client=client, kind=kind: client.run(job, kind))
            for kind in ("onggi", "valkey") for client in ALL]


STAGE = Stage(
    "clients", "applications on real client libraries with real catalogues, and libraries that run Lua scripts", run,
    pieces,
)
