"""Values on a tier with more data than memory: loaded, changed, killed, started and read again; see tests/tier/."""

import pathlib
import signal
import tempfile
import time

import need
from job import ROOT, Job, Stage
from servers import Server

HOME = ROOT / "tests" / "tier"
KEYS = 60_000
MAPPED_KEYS = 20_000
SHM = pathlib.Path("/dev/shm")
LONG_KEYS = 2_000_000
SECONDS_TO_START = 10


def live(job, keys, maxmemory, place=None, extra=()):
    """Loads, kills, starts and compares; once with values that only the log has, and once with a checkpoint's."""
    python = need.python_environment() / "python3"
    options = [("appendonly", "yes"), ("maxmemory", maxmemory), ("workers", 2), ("compression", "off"), *extra]
    with (tempfile.TemporaryDirectory(prefix="onggi-tier-", dir=place) as directory,
          Server("onggi", options=[*options, ("tier-dir", directory)]) as server):
        def client(action):
            job.command([python, "main.py", action, server.port, keys], name=action, cwd=HOME, counts=True)

        def kill_and_start(what):
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
            begin = time.monotonic()
            server.start()
            seconds = time.monotonic() - begin
            job.say(f"# started after a kill, {what}, in {seconds:.1f} s")
            slow = f"{seconds:.1f} s" if seconds > SECONDS_TO_START * max(keys // KEYS, 1) else None
            job.check(f"a start after a kill, {what}, takes seconds", slow)

        client("load")
        client("read")
        client("change")
        kill_and_start("from the log")
        client("read")
        client("save")
        kill_and_start("from a checkpoint")
        client("read")
        job.check("the server lives", None if server.alive() else f"it ended with {server.process.returncode}")


def mapped(job, keys, maxmemory):
    """The same with segments that are mapped in memory, to which values go at once."""
    live(job, keys, maxmemory, SHM if SHM.is_dir() else None, [("tier-medium", "shared"), ("tier-policy", "write")])


def run(job: Job):
    live(job, KEYS, "24mb")
    mapped(job, MAPPED_KEYS, "12mb")


def pieces(_job):
    return [("2 GB", lambda job: live(job, LONG_KEYS, "256mb")),
            ("1 GB, mapped", lambda job: mapped(job, LONG_KEYS // 2, "256mb"))]


STAGE = Stage("tier", "values on a tier, more than memory, loaded, killed and read back", run, pieces)
