"""Crash points: the power is cut at every operation on files, on the simulated disk; the tests of `cmdlog`, `checkpoint` and
`durability` by that name, and those that switch the log, with more seeds than in the stage `unit`.

A test says how many points it has cut; the stage wants so many of them. What random commands have made, through the whole
server, comes back as often. The long form gives figures for docs/reliability.md.
"""

import re

import faults
from job import Job, Stage

POINTS = 20_000
IN_A_PIECE = 150_000
PIECES = 20
SECONDS_MAX = 1800

CRATES = ["cmdlog", "checkpoint", "durability"]
SAID = re.compile(r"crash points: (\d+)")


def crash(job, rounds, points):
    """So many times as many seeds as usual, which give at least so many points; the figures."""
    before, failed = len(job.lines()), job.tally.failed
    seeds = {"ONGGI_CRASH_ROUNDS": str(rounds), "CRASH_SEED": str(job.seed % 1_000_000 * 1_000 + 1), "CRASH_RUNS": str(3 * rounds),
             "CHECKPOINT_CRASH_SEEDS": str(4 * rounds)}
    packages = [word for crate in CRATES for word in ("-p", f"onggi-{crate}")]
    job.command(["cargo", "test", "--locked", *packages, "--", "--nocapture", "--test-threads", "2", "crash", "switching"],
                name="crash points", env=seeds, timeout=SECONDS_MAX, counts=True)
    job.command(["cargo", "test", "--locked", "-p", "onggi-in-process", "--", "recovery::"], name="random commands", env=seeds,
                timeout=SECONDS_MAX, counts=True)
    seen = sum(int(found[1]) for line in job.lines()[before:] if (found := SAID.search(line)))
    job.check(f"{seen} crash points", None if seen >= points else f"fewer than {points}")
    return f"{seen} crash points, {rounds} times the usual seeds" if job.tally.failed == failed else None


def run(job: Job):
    crash(job, 3, POINTS)


def pieces(_job):
    piece = lambda job: faults.record(job, "crash", crash(job, 16, IN_A_PIECE))
    return [(f"points {number}", piece) for number in range(1, PIECES + 1)]


STAGE = Stage("crash", "power cuts at every operation on files, on a simulated disk", run, pieces)
