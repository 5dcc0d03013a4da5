"""A database on disk with six times as much data as memory: loaded, read, killed, started and read again; see
tests/disk/."""

import signal
import time

import need
from job import ROOT, Job, Stage
from servers import Server

HOME = ROOT / "tests" / "disk"
MEGABYTES = 200
LONG_MEGABYTES = 2000
SECONDS_TO_START = 10


def live(job, megabytes, maxmemory):
    """Loads, kills, starts and compares."""
    python = need.python_environment() / "python3"
    options = [("appendonly", "yes"), ("database", "0 engine disk"), ("maxmemory", maxmemory), ("workers", 2),
               ("latency-monitor-threshold", 1)]
    with Server("onggi", options=options) as server:
        def client(action, size=megabytes):
            job.command([python, "main.py", action, server.port, size, server.directory / "digests"],
                        name=action, cwd=HOME, counts=True)

        client("load")
        client("read")
        client("fill", megabytes // 3)
        client("look", megabytes // 3)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        begin = time.monotonic()
        server.start()
        seconds = time.monotonic() - begin
        job.say(f"# started after a kill in {seconds:.1f} s")
        slow = f"{seconds:.1f} s" if seconds > SECONDS_TO_START else None
        job.check("a start after a kill takes seconds", slow)
        client("read")
        client("look", megabytes // 3)
        job.check("the server lives", None if server.alive() else f"it ended with {server.process.returncode}")


def run(job: Job):
    live(job, MEGABYTES, "32mb")


def pieces(_job):
    return [("2 GB", lambda job: live(job, LONG_MEGABYTES, "256mb"))]


STAGE = Stage("disk", "a database on disk, larger than memory, loaded, killed and read back", run, pieces)
