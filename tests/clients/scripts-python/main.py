"""Libraries of Python whose work is done by Lua scripts: queues, rate limiters and locks.

Usage: main.py HOST PORT PASSWORD UNIX_SOCKET. The server must be empty; it is flushed at the end.
"""

import sys
from pathlib import Path

# The harness is that of the application on redis-py.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "redis-py"))

import celery_app
import dramatiq_app
import huey_app
import locks
import rq_app
from harness import Harness


def main():
    harness = Harness(*sys.argv[1:5])
    for area in (rq_app, celery_app, dramatiq_app, huey_app, locks):
        area.run(harness)
    harness.check("the server is left empty", lambda: harness.equal(harness.client().flushall(), True))
    return harness.close()


if __name__ == "__main__":
    raise SystemExit(main())
