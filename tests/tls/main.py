"""Certificates as a client of redis-py sees them: which are accepted, and how they change under load.

Usage: main.py DIRECTORY TLS_PORT PORT PASSWORD PID. The directory has what the stage made; see authority.py.
"""

import sys

import access
import reload
from harness import Harness


def main():
    directory, tls_port, port, password, pid = sys.argv[1:]
    harness = Harness(directory, int(tls_port), int(port), password, int(pid))
    access.run(harness)
    reload.run(harness)
    return 1 if harness.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
