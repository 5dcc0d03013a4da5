"""The longest turns of the server's workers while something runs, by stretches of time, and what comes again over
several runs."""

import mmap
import multiprocessing
import time

from resp import Connection, request

# A stretch, at the end of which the server's figures are read and set back.
STRETCH_SECONDS = 0.25
# Stretches of two runs are of the same moment of the work when they begin so close to each other: in stretches, and as
# a part of all.
NEAR_STRETCHES = 1.5
NEAR_PART = 0.03
# What may be slow in every run, wherever it is.
SLOW_PART_MAX = 0.02

FIELDS = ("longest_turn_cpu_usec", "longest_turn_usec")


class Turns:
    """From `with` to its end; then `stretches`: for each the longest turn by the thread's clock and by the wall, in
    us."""

    def __init__(self, server):
        self.server, self.stretches = server, []

    def __enter__(self):
        self.ours, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=_watch, args=(self.server, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.ours.recv()
        return self

    def __exit__(self, *_):
        self.ours.send("stop")
        self.stretches = self.ours.recv()
        self.process.join()

    def longest(self):
        """Of all stretches."""
        return tuple(max(figures) for figures in zip(*self.stretches))


def _watch(server, pipe):
    stretches, ends = [], False
    with Connection(server) as connection:
        connection.call("CONFIG", "RESETSTAT")
        pipe.send("started")
        while not ends:
            ends = pipe.poll(STRETCH_SECONDS)
            # In one go, so that nothing between them is lost.
            connection.send(request("INFO", "stats") + request("CONFIG", "RESETSTAT"))
            fields = dict(line.split(":", 1) for line in connection.reply().decode().splitlines() if ":" in line)
            connection.reply()
            stretches.append(tuple(int(fields[name]) for name in FIELDS))
    pipe.send(stretches)


# Memory that grows, is touched and is given back while another process watches the host.
TOUCHED_BYTES = 64 << 20


def host_gaps(seconds, gap_us):
    """The gaps of at least `gap_us` us that a thread sees in its own clock while it does nothing but read it, next to a
    process that touches new memory all the time: what the host takes from a running thread while a collection grows."""
    toucher = multiprocessing.Process(target=_touch, daemon=True)
    toucher.start()
    gaps = _gaps(seconds, gap_us)
    toucher.terminate()
    toucher.join()
    return gaps


def _touch():
    while True:
        with mmap.mmap(-1, TOUCHED_BYTES) as memory:
            for at in range(0, TOUCHED_BYTES, mmap.PAGESIZE):
                memory[at] = 1


def _gaps(seconds, gap_us):
    gaps, before, end = [], time.thread_time_ns(), time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(1000):
            now = time.thread_time_ns()
            if now - before >= gap_us * 1000:
                gaps.append((now - before) // 1000)
            before = now
        before = time.thread_time_ns()
    return gaps


def slow_parts(stretches, turn_us_max):
    """Where the work had slow stretches, each as a part of all of it from 0 to 1, and how long a stretch is."""
    count = len(stretches)
    return [at / count for at, (cpu, _wall) in enumerate(stretches) if cpu > turn_us_max], 1 / count


def again(runs):
    """What is wrong with a step, by `slow_parts` of each run: a stretch that is slow in all of them, or too many in
    each. `None` when there is nothing."""
    first, *others = runs
    for part in first[0]:
        if all(
            any(abs(part - other) <= max(NEAR_STRETCHES * stretch, NEAR_PART) for other in parts)
            for parts, stretch in others
        ):
            return f"slow at {part:.0%} of the way in each of {len(runs)} runs"
    slow = min(len(parts) * stretch for parts, stretch in runs)
    if slow > SLOW_PART_MAX and min(len(parts) for parts, _ in runs) > 1:
        return f"at least {slow:.1%} of the time slow in each of {len(runs)} runs"
    return None
