"""redis-cli and redis-benchmark, as Debian ships them, against a server.

Usage: main.py HOST PORT PASSWORD UNIX_SOCKET. The server must be empty; it is flushed at the end.
"""

import sys

import benchmark
import interactive
import keyspace
import modes
import monitor
from tools import Tools


def main():
    tools = Tools(*sys.argv[1:5])
    for area in (modes, keyspace, interactive, monitor, benchmark):
        area.run(tools)
    tools.check("the server is left empty", lambda: tools.equal(tools.cli("FLUSHALL").strip(), "OK"))
    return 1 if tools.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
