"""What every attack is measured by: the server process, its memory, and the canary's waits."""

import os
import random
import resource
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from canary import Canary
from control import Peer, bound
from resp import Connection

MB = 1 << 20
PAGE = os.sysconf("SC_PAGE_SIZE")

# reliability: the same process, no error for others, waits below a second, and memory that stays and comes back. Waits
# are the server's part: what a peer that does nothing is waited for in the same moment comes on top (control.py).
WAIT_MS_MAX = 1000
# What all clients may hold together by default, and an eighth of it for the allocator's rounding.
GROWTH_MAX = 288 * MB
# How long to wait until memory is back; the time it took is printed.
AFTER_SECONDS = 10
AFTER_MAX = 32 * MB


class Server:
    """The server under attack."""

    def __init__(self, host, port, password, pid):
        self.host, self.port, self.password, self.pid = host, int(port), password, int(pid)

    def resident(self):
        """Bytes of memory the process has in use."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * PAGE

    def alive(self):
        """Whether the process runs: a zombie does not."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False

    def info(self, section, field):
        """A field of INFO."""
        with Connection(self) as connection:
            for line in connection.call("INFO", section).decode().splitlines():
                if line.startswith(field + ":"):
                    return line.split(":", 1)[1]
        raise AssertionError(f"INFO {section} has no {field}")


class Watch:
    """The highest resident memory from `with` to its end."""

    def __init__(self, server):
        self.server, self.before, self.peak = server, server.resident(), 0
        self.stop = threading.Event()

    def __enter__(self):
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()

    def _look(self):
        while not self.stop.wait(0.01):
            try:
                self.peak = max(self.peak, self.server.resident())
            except OSError:
                return


class Suite:
    """Runs attacks and reports them as `ok - NAME` or `not ok - NAME: REASON`, of measurements with a mark."""

    def __init__(self, server, seed, times):
        self.server, self.seed, self.times = server, seed, times
        self.peer = Peer()
        self.failed = 0

    def random(self, name):
        """The attack's random numbers; the same for the same seed."""
        return random.Random(f"{self.seed}/{name}")

    def check(self, name, body):
        """Runs `body`; what it raises is the failure."""
        try:
            body()
            print(f"ok - {name}", flush=True)
        except Exception as problem:
            self.failed += 1
            text = " ".join(str(problem).split())[:600]
            mark = " # MEASURED" if isinstance(problem, Measured) else ""
            print(f"not ok - {name}: {type(problem).__name__}: {text}{mark}", flush=True)

    def attack(
        self, name, body, growth=GROWTH_MAX, after=AFTER_MAX, wait_ms=WAIT_MS_MAX, p99_ms=None, full_is_fine=False
    ):
        """Runs an attack with the canary and checks what must hold. `growth` and `after` of None are not looked
        at."""

        def run():
            server = self.server
            start = time.monotonic()
            with Watch(server) as watch, Canary(server, full_is_fine) as canary, Canary(self.peer) as control:
                body()
                ended = time.monotonic()
                left = settle(server, watch.before + after) if after is not None else server.resident()
            done = time.monotonic()
            print(
                f"   {name}: worst wait {canary.worst_ms():.1f} ms, p99 {canary.p99_ms():.2f} ms of "
                f"{len(canary.waits)} "
                f"(control {control.worst_ms():.1f}, {control.p99_ms():.2f}), memory {mb(watch.before)}, "
                f"at most {mb(watch.peak - watch.before)} more, {mb(left - watch.before)} more {done - ended:.1f} s "
                f"after, "
                f"{done - start:.1f} s",
                flush=True,
            )
            expect(server.alive(), "the server has ended")
            expect(not canary.errors, f"the canary saw {canary.errors}")
            most = bound(wait_ms, control.worst_ms())
            measure(canary.worst_ms() < most, f"the canary waited {canary.worst_ms():.0f} ms of {most:.0f}")
            if p99_ms is not None:
                most = bound(p99_ms, control.p99_ms())
                measure(
                    canary.p99_ms() < most, f"one call of the canary in 100 took {canary.p99_ms():.1f} ms of {most:.1f}"
                )
            if growth is not None:
                measure(watch.peak - watch.before <= growth, f"memory grew by {mb(watch.peak - watch.before)}")
            if after is not None:
                measure(left <= watch.before + after, f"{mb(left - watch.before)} more after {AFTER_SECONDS} s")

        self.check(name, run)


def settle(server, wanted, seconds=AFTER_SECONDS):
    """Waits until the resident memory is at most `wanted`, at most for `seconds`; what it is then."""
    deadline = time.monotonic() + seconds
    while (now := server.resident()) > wanted and time.monotonic() < deadline:
        time.sleep(0.05)
    return now


def eventually(holds, otherwise, seconds=10):
    """Waits until it holds; fails with the text when it does not in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        expect(time.monotonic() < deadline, otherwise)
        time.sleep(0.02)


def expect(holds, otherwise):
    """Fails with the text unless it holds."""
    if not holds:
        raise AssertionError(otherwise)


class Measured(AssertionError):
    """A wait or resident memory is beyond its bound."""


def measure(holds, otherwise):
    """Fails with the text unless a wait or resident memory is within its bound. The runner repeats a stage in which
    nothing else failed; so what must hold on any machine is an `expect`, and comes first."""
    if not holds:
        raise Measured(otherwise)


def equal(got, wanted, context=""):
    """Fails unless the two are equal."""
    expect(got == wanted, f"got {got!r}, expected {wanted!r} {context}")


def mb(count):
    """Bytes for people."""
    return f"{count / MB:.1f} MB"


def raise_descriptor_limit(wanted):
    """Lets this process open this many descriptors; False when the system does not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= wanted:
        return True
    for limits in ((wanted, max(hard, wanted)), (min(wanted, hard), hard)):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            break
        except (ValueError, OSError):
            continue
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= wanted


@contextmanager
def many(server, count, **options):
    """This many connections, closed at the end."""
    connections = []
    try:
        for _ in range(count):
            connections.append(Connection(server, **options))
        yield connections
    finally:
        for connection in connections:
            connection.close()
