"""Bad input: clients that mean harm or do not care, next to one that must not notice; see tests/bad-input/.

The long form begins with ten thousand seeds of clocks that jump and an hour in a control group, in two pieces, with
figures for docs/reliability.md; then it repeats each area ten times, each with a seed of its own, and the timed attacks
for longer.
"""

import os
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import faults
import need
from job import ROOT, Job, Skip, Stage
from servers import Server
from stages.tls import VARIABLE, serving

HOME = ROOT / "tests" / "bad-input"
SECONDS_MAX = 600
ROUNDS = 10
TIMES = 5
# Two policies of eight seconds each: for half a minute, and for most of half an hour.
MEMORY_TIMES_IN_TEST = 2
MEMORY_TIMES = 100
LOGGED = (("appendonly", "yes"),)
CLOCK_SEEDS = 10_000
END_SECONDS_MAX = 15

MB = 1 << 20
BUDGET = 100 * MB
# Where the memory controller of control groups is: version 1, version 2.
GROUPS = ((Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"), (Path("/sys/fs/cgroup"), "memory.max"))

FEW_DESCRIPTORS = 600


@dataclass(frozen=True)
class Area:
    """One module of attacks, and the server it wants."""

    name: str
    options: tuple = ()
    password: str = None

    def run(self, job, times=1):
        """Starts the server and attacks it."""
        with Server("onggi", password=self.password, options=self.options) as server:
            attack(job, self.name, server, times)


AREAS = [
    Area("output"),
    Area("input"),
    Area("arguments", (("proto-max-bulk-len", "1mb"),)),
    Area("connections", (("maxclients", "12000"),)),
    Area("login", password="correct-horse-battery"),
    Area("keys"),
    Area("payloads", (("proto-max-bulk-len", "64mb"),)),
    Area("sockets"),
]


def attack(job, area, server, times=1, env=None):
    """One module of attacks on a server that runs, and how the server ends afterwards."""
    job.command(
        [
            "python3", "main.py", area, "127.0.0.1", server.port,
            server.password or "",
            server.process.pid, job.seed, times,
        ],
        name=area,
        cwd=HOME,
        timeout=SECONDS_MAX * times,
        counts=True,
        env=env,
    )
    job.check(
        f"the server lives after {area}", None if server.alive() else f"it ended with {server.process.returncode}"
    )
    start = time.monotonic()
    server.process.terminate()
    try:
        status = server.process.wait(timeout=END_SECONDS_MAX)
        job.say(f"   ended {time.monotonic() - start:.1f} s after SIGTERM")
        job.check(f"SIGTERM ends the server after {area}", None if status == 0 else f"status {status}")
    except Exception as problem:
        job.check(f"SIGTERM ends the server after {area}", str(problem))


def memory(job, times=1, options=()):
    """The budget, in a control group that kills the server when it takes a quarter and 64 MiB more."""
    with Server("onggi", options=[("maxmemory", BUDGET), *options]) as server:
        try:
            group = control_group(server.process.pid, BUDGET * 125 // 100 + 64 * MB)
        except Skip as reason:
            job.skip_check("memory in a control group", str(reason))
            group = nullcontext()
        with group:
            attack(job, "memory", server, times)


@contextmanager
def group_of(path):
    """Removes the group when the server has ended."""
    yield
    for _ in range(100):
        try:
            path.rmdir()
            return
        except OSError:
            time.sleep(0.05)


def control_group(pid, limit):
    """Puts the process in a new control group with a limit of memory."""
    if os.geteuid() != 0:
        raise Skip("not root: cannot make a control group")
    for home, file in GROUPS:
        path = home / f"onggi-test-{pid}"
        if not (home / "cgroup.procs").exists():
            continue
        path.mkdir()
        if (path / file).exists():
            (path / file).write_text(str(limit))
            (path / "cgroup.procs").write_text(str(pid))
            return group_of(path)
        path.rmdir()
    raise Skip("no memory controller of control groups")


def clock(job):
    """The machine's wall clock jumps, as the server sees it."""
    need.apt("faketime")
    libraries = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    if not libraries:
        raise Skip("the package faketime has no libfaketime.so.1")
    with TemporaryDirectory(prefix="onggi-clock-") as directory:
        file = Path(directory) / "time"
        file.write_text("+0")
        env = {
            "LD_PRELOAD": str(libraries[0]),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        # The library reads its file inside the server.
        with Server("onggi", options=[("sandbox-allow-path", directory)], env=env) as server:
            attack(job, "clock", server, env={"ONGGI_FAKETIME_FILE": str(file)})


def tls(job, times=1):
    """Clients of a TLS port that asks for no certificate."""
    with serving(("tls-auth-clients", "no"), password=None) as (server, directory):
        attack(job, "tls", server, times, env={VARIABLE: directory, f"{VARIABLE}_PORT": str(server.tls_port)})


def users(job, times=1):
    """Users with few rights, and an ACL file that the attack writes."""
    with TemporaryDirectory(prefix="onggi-users-") as directory:
        file = Path(directory) / "users.acl"
        file.write_text("user default on nopass ~* &* +@all\n")
        with Server("onggi", options=[("aclfile", file), ("proto-max-bulk-len", "1mb")]) as server:
            attack(job, "users", server, times, env={"ONGGI_TEST_ACL_FILE": str(file)})


def few_descriptors(job):
    """A server that may not open enough descriptors says so and takes fewer clients."""
    need.program("setpriv", "util-linux")
    wrap = ["prlimit", f"--nofile={FEW_DESCRIPTORS}:{FEW_DESCRIPTORS}"]
    if os.geteuid() == 0:
        wrap = ["setpriv", "--bounding-set=-sys_resource", "--inh-caps=-sys_resource", *wrap]
    with Server("onggi", wrap=wrap) as server:
        said = server.output.read_text()
        wanted = f"descriptors for {FEW_DESCRIPTORS - 64} clients"
        job.check("too few descriptors are named at start", None if wanted in said else f"it said: {said[:500]}")


def run(job: Job, times=1):
    for area in AREAS:
        area.run(job, times)
    for options in (), LOGGED:
        memory(job, MEMORY_TIMES_IN_TEST, options)
    few_descriptors(job)
    tls(job, times)
    users(job, times)
    try:
        clock(job)
    except Skip as reason:
        job.skip_check("clock", str(reason))


def half_an_hour(job, options=()):
    """The budget for as long, in a control group; the figures."""
    before, failed = len(job.lines()), job.tally.failed
    memory(job, MEMORY_TIMES, options)
    peaks = [line.strip() for line in job.lines()[before:] if "resident of" in line]
    return (
        f"memory{', with a log and checkpoints' if options else ''}: {'; '.join(peaks)}"
        if job.tally.failed == failed
        else None
    )


def jumps(job):
    """Clocks that jump, in the test's process; the figures."""
    failed = job.tally.failed
    seeds = {"ONGGI_CLOCK_SEED": str(job.seed), "ONGGI_CLOCK_SEEDS": str(CLOCK_SEEDS)}
    job.command(
        ["cargo", "test", "--locked", "-p", "onggi-in-process", "--", "clocks::"],
        name="clocks", env=seeds, timeout=1800, counts=True,
    )
    return f"{CLOCK_SEEDS} seeds of clocks that jump" if job.tally.failed == failed else None


def pieces(_job):
    def piece(work):
        return lambda job: faults.record(job, "bad-input", work(job))

    return [("clocks that jump", piece(jumps)), ("half an hour of memory", piece(half_an_hour)),
            ("half an hour of memory with a log", piece(lambda job: half_an_hour(job, LOGGED))),
            *((f"round {number}", lambda job: run(job, TIMES)) for number in range(1, ROUNDS + 1))]


STAGE = Stage("bad-input", "clients that mean harm or do not care, beside one that must not notice", run, pieces)
