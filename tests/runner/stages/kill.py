"""Kill: the server is killed at random moments under load, and while it starts; see tests/faults/."""

import faults
from job import Job, Stage

# Per mode: cycles of `make test`, longest load before a kill in milliseconds, cycles of a piece, pieces.
MODES = {"sync": (60, 500, 250, 4), "async": (30, 1500, 200, 5), "modes": (60, 500, 250, 4)}


def kill(job, mode, cycles, load_ms):
    """So many kills in a mode; the figures."""
    return faults.run(job, "kill", "--cycles", cycles, "--load-ms", load_ms, mode=mode)


def run(job: Job):
    for mode, (cycles, load_ms, _, _) in MODES.items():
        kill(job, mode, cycles, load_ms)


def pieces(_job):
    def piece(mode, cycles, load_ms):
        return lambda job: faults.record(job, "kill", kill(job, mode, cycles, load_ms))

    return [(f"{mode} {number}", piece(mode, cycles, load_ms))
            for mode, (_, load_ms, cycles, count) in MODES.items() for number in range(1, count + 1)]


STAGE = Stage("kill", "kill -9 under load and at starts: nothing promised is lost, torn, doubled or back", run, pieces,
              present=lambda: faults.SERVER_KEEPS, measures=True)
