"""The wall clock of the machine jumps and stands still; expirations do not follow.

The server runs under libfaketime, which reads the offset from the file that ONGGI_FAKETIME_FILE names.
"""

import os
import time
from pathlib import Path

from resp import Connection
from suite import equal, eventually, expect

LIVE_MS = 1500
TOLERANCE_MS = 300
HOUR, YEAR = 3600, 365 * 86400


def jump(suite, offset):
    """Keys live as long as they were given, whatever the wall clock does."""
    file = Path(os.environ["ONGGI_FAKETIME_FILE"])
    with Connection(suite.server) as connection:
        keys = [f"clock:{number}" for number in range(50)]
        connection.call("SET", "long", "v", "EX", 100_000)
        first = time.monotonic()
        for key in keys:
            connection.call("SET", key, "v", "PX", LIVE_MS)
        start = time.monotonic()
        # Written next to it and moved: the server never reads half of it.
        beside = file.with_suffix(".new")
        beside.write_text(offset)
        beside.rename(file)
        # A busy server looks at the clock all the time; an idle one does not.
        while time.monotonic() - start < LIVE_MS / 1000 * 0.6:
            connection.call("PING")
        there = connection.call("EXISTS", *keys)
        before = time.monotonic()
        left = connection.call("PTTL", keys[0])
        now = time.monotonic()
        # A machine that stood still meanwhile has nothing to say: the keys are due, and gone.
        if (now - first) * 1000 < LIVE_MS - TOLERANCE_MS:
            equal(there, len(keys), f"expired early after {offset}")
            least, most = (
                LIVE_MS - (now - first) * 1000 - TOLERANCE_MS,
                LIVE_MS - (before - start) * 1000 + TOLERANCE_MS,
            )
            expect(least < left < most, f"after {offset} {left} ms are left and not {least:.0f} to {most:.0f}")
        time.sleep(max(0, LIVE_MS / 1000 * 1.15 + 0.2 - (time.monotonic() - start)))
        equal(connection.call("EXISTS", *keys), 0, f"still there after {offset}")
        equal(connection.call("EXISTS", "long"), 1, f"the long one is gone after {offset}")
        eventually(lambda: connection.call("DBSIZE") == 1, f"not removed after {offset}")


def run(suite):
    offsets = {
        "an hour ahead": f"+{HOUR}",
        "an hour back": f"-{HOUR}",
        "a year ahead": f"+{YEAR}",
        "a year back": f"-{YEAR}",
        "a clock that stands still": "2030-01-01 00:00:00",
    }
    for name, offset in offsets.items():
        suite.check(f"wall clock: {name}", lambda: jump(suite, offset))
