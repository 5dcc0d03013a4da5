"""Crash points: the power is cut at every operation on files, on the simulated disk; the tests of `cmdlog`,
`checkpoint` and `durability` by that name, and those that switch the log, with more seeds than in the stage `unit`.

A test says how many points it has cut; the stage wants a minimum of them. What random commands have made, through the
whole server, comes back as often. The long form gives figures for docs/reliability.md; it also stops after every byte
of a checkpoint of a mebibyte, and damages big logs and sets, which the stage `unit` does for smaller ones.
"""

import re

import faults
import workspace
from job import Job, Stage

POINTS = 20_000
IN_A_PIECE = 500_000
PIECES = 2
SECONDS_MAX = 1800

# Of a piece: logs and sets, and how often each is damaged; logs are damaged after two kinds of end.
DAMAGED, DAMAGES = 10, 4_000
DAMAGE_PIECES = 10
CHECKPOINT_KIB = 1024

CRATES = ["cmdlog", "checkpoint", "durability"]
SAID = re.compile(r"(?:crash points|damages|stops): (\d+)")


def crash(job, rounds, points):
    """A multiple of the usual seeds, which give at least this many points; the figures."""
    before, failed = len(job.lines()), job.tally.failed
    seeds = {
        "ONGGI_CRASH_ROUNDS": str(rounds),
        "CRASH_SEED": str(job.seed % 1_000_000 * 1_000 + 1),
        "CRASH_RUNS": str(3 * rounds),
        "CHECKPOINT_CRASH_SEEDS": str(4 * rounds),
    }
    for program, home in workspace.test_programs(job, *CRATES, "in-process"):
        words = ["recovery::"] if home.name == "in-process" else ["--nocapture", "crash", "switching"]
        job.command([program, "--test-threads", "2", *words], name=f"crash points of {home.name}", cwd=home, env=seeds,
                    timeout=SECONDS_MAX, counts=True)
    seen = said(job, before)
    job.check(f"{seen} crash points", None if seen >= points else f"fewer than {points}")
    return f"{seen} crash points, {rounds} times the usual seeds" if job.tally.failed == failed else None


def said(job, since):
    """What the tests have counted since this line."""
    return sum(int(found[1]) for line in job.lines()[since:] if (found := SAID.search(line)))


def damage(job):
    """Logs and sets of more than 100 KiB, damaged at random; the figures."""
    before, failed = len(job.lines()), job.tally.failed
    seeds = {
        "CRASH_SEED": str(job.seed % 1_000_000 * 1_000 + 1),
        "CRASH_RUNS": str(DAMAGED),
        "DAMAGE_ROUNDS": str(DAMAGES),
    }
    job.command(
        [
            "cargo", "test", "--locked", "-p", "onggi-cmdlog", "-p", "onggi-checkpoint", "--", "--nocapture",
            "damage_in_a_big_set", "damage_in_big_logs",
        ],
        name="damage", env=seeds, timeout=SECONDS_MAX, counts=True,
    )
    times = said(job, before)
    figures = f"{times} times bits, sectors or places of sectors were wrong, in logs and sets of more than 100 KiB"
    return figures if job.tally.failed == failed else None


def every_byte(job):
    """A stop after every byte of a big checkpoint; the figures."""
    before, failed = len(job.lines()), job.tally.failed
    job.command(
        ["cargo", "test", "--locked", "-p", "onggi-checkpoint", "--", "--nocapture", "a_stop_after_every_byte"],
        name="every byte",
        env={"CHECKPOINT_KIB": str(CHECKPOINT_KIB)},
        timeout=SECONDS_MAX,
        counts=True,
    )
    figures = f"a stop after each of {said(job, before)} bytes of a checkpoint"
    return figures if job.tally.failed == failed else None


def run(job: Job):
    crash(job, 3, POINTS)


def pieces(_job):
    def piece(work):
        return lambda job: faults.record(job, "crash", work(job))

    return [
        ("every byte", piece(every_byte)),
        *((f"damage {number}", piece(damage)) for number in range(1, DAMAGE_PIECES + 1)),
        *((f"points {number}", piece(lambda job: crash(job, 16, IN_A_PIECE))) for number in range(1, PIECES + 1)),
    ]


STAGE = Stage("crash", "power cuts at every operation on files, on a simulated disk", run, pieces)
