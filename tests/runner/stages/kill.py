"""Kill: the server is killed at random moments under load, and while it starts; see tests/faults/."""

import faults
from job import Job, Stage

# Per mode: cycles of `make test`, longest load before a kill in milliseconds, cycles of a piece, pieces.
MODES = {"sync": (60, 500, 250, 4), "async": (30, 1500, 200, 5), "modes": (60, 500, 250, 4)}
# The same with strings that are compressed: long enough for dictionaries to be trained.
COMPRESSED = {"sync": (15, 1000, 100, 2), "async": (15, 1500, 100, 2), "modes": (15, 1000, 100, 2)}


def kill(job, mode, cycles, load_ms, is_compressed):
    """This many kills in a mode; the figures."""
    return faults.run(job, "kill", "--cycles", cycles, "--load-ms", load_ms, mode=mode, is_compressed=is_compressed)


def run(job: Job):
    for is_compressed, modes in ((False, MODES), (True, COMPRESSED)):
        for mode, (cycles, load_ms, _, _) in modes.items():
            kill(job, mode, cycles, load_ms, is_compressed)


def pieces(_job):
    def piece(mode, cycles, load_ms, is_compressed):
        return lambda job: faults.record(job, "kill", kill(job, mode, cycles, load_ms, is_compressed))

    return [(f"{mode}{' compressed' if is_compressed else ''} {number}", piece(mode, cycles, load_ms, is_compressed))
            for is_compressed, modes in ((False, MODES), (True, COMPRESSED))
            for mode, (_, load_ms, cycles, count) in modes.items() for number in range(1, count + 1)]


STAGE = Stage("kill", "kill -9 under load and at starts: nothing promised is lost, torn, doubled or back", run, pieces)
