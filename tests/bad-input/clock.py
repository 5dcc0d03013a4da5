"""The wall clock of the machine jumps and stands still; expirations do not follow.

The server runs under libfaketime, which reads the offset from the file that ONGGI_FAKETIME_FILE names.
"""

import os
import time
from pathlib import Path

from resp import Connection
from suite import equal, expect

LIVE_MS = 1500
HOUR, YEAR = 3600, 365 * 86400


def jump(suite, offset):
    """Keys live as long as they were given, whatever the wall clock does."""
    file = Path(os.environ["ONGGI_FAKETIME_FILE"])
    with Connection(suite.server) as connection:
        keys = [f"clock:{number}" for number in range(50)]
        for key in keys:
            connection.call("SET", key, "v", "PX", LIVE_MS)
        connection.call("SET", "long", "v", "EX", 100_000)
        start = time.monotonic()
        # Written beside and moved: the server never reads half of it.
        beside = file.with_suffix(".new")
        beside.write_text(offset)
        beside.rename(file)
        # A busy server looks at the clock all the time; an idle one does not.
        while time.monotonic() - start < LIVE_MS / 1000 * 0.6:
            connection.call("PING")
        equal(connection.call("EXISTS", *keys), len(keys), f"expired early after {offset}")
        left = connection.call("PTTL", keys[0])
        gone = LIVE_MS - (time.monotonic() - start) * 1000
        expect(abs(left - gone) < 300, f"after {offset} {left} ms are left and not {gone:.0f}")
        time.sleep(max(0, LIVE_MS / 1000 * 1.15 + 0.2 - (time.monotonic() - start)))
        equal(connection.call("EXISTS", *keys), 0, f"still there after {offset}")
        equal(connection.call("EXISTS", "long"), 1, f"the long one is gone after {offset}")
        deadline = time.monotonic() + 1
        while connection.call("DBSIZE") > 1 and time.monotonic() < deadline:
            time.sleep(0.02)
        equal(connection.call("DBSIZE"), 1, f"not removed after {offset}")


def run(suite):
    offsets = {"an hour ahead": f"+{HOUR}", "an hour back": f"-{HOUR}", "a year ahead": f"+{YEAR}", "a year back": f"-{YEAR}",
               "a clock that stands still": "2030-01-01 00:00:00"}
    for name, offset in offsets.items():
        suite.check(f"wall clock: {name}", lambda: jump(suite, offset))
