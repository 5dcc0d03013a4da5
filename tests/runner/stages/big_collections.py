"""Huge collections: they grow, are read, ranged over, saved and deleted, and no client of other keys waits; see
tests/big-collections/.

The long form has ten million elements, and the bound itself: it is for a machine that does nothing else. It runs until
no step is slow at the same moment in each run, three times at most.
"""

import json
import tempfile
from pathlib import Path

from job import ROOT, Job, Stage
from servers import Server

HOME = ROOT / "tests" / "big-collections"
IN_TEST = 500_000
IN_FULL = 10_000_000
MARGIN_IN_TEST = 5
SECONDS_MAX = 1800
RUNS_IN_FULL = 3


def watch(job, elements, margin, figures=()):
    """A server of two workers, and all steps with this many elements."""
    with Server("onggi", options=[("workers", 2)]) as server:
        job.command(
            ["python3", "main.py", "127.0.0.1", server.port, "", server.process.pid, elements, margin, *figures],
            name=f"{elements} elements",
            cwd=HOME, timeout=SECONDS_MAX, counts=True,
        )
        job.check("the server lives", None if server.alive() else f"it ended with {server.process.returncode}")


def run(job: Job):
    watch(job, IN_TEST, MARGIN_IN_TEST)


def watch_in_full(job):
    """The same with the long form's elements, as often as it takes."""
    with tempfile.TemporaryDirectory() as directory:
        figures = Path(directory) / "figures.json"
        for left in reversed(range(RUNS_IN_FULL)):
            watch(job, IN_FULL, 1, [figures] if left else [figures, "last"])
            if not figures.exists() or not json.loads(figures.read_text())["slow"]:
                return


def pieces(_job):
    return [("ten million", watch_in_full)]


STAGE = Stage("big-collections", "clients of other keys while a big set and a big sorted set are used", run, pieces)
