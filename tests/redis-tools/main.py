"""redis-cli and redis-benchmark, as Debian ships them, against a server; and `onggi cli` and `onggi top` if their
program is given.

Usage: main.py HOST PORT PASSWORD UNIX_SOCKET [ONGGI]. The server must be empty; it is flushed at the end.
"""

import sys

import benchmark
import interactive
import keyspace
import modes
import monitor
import onggi_cli
import onggi_top
from tools import Tools


def main():
    tools = Tools(*sys.argv[1:5])
    modes.run(tools)
    keyspace.run(tools)
    # While all keys are strings.
    for onggi in sys.argv[5:]:
        keyspace.run(onggi_cli.OwnCli(onggi, *sys.argv[1:5]))
    for area in (interactive, monitor, benchmark):
        area.run(tools)
    for onggi in sys.argv[5:]:
        onggi_cli.run(tools, onggi)
        onggi_top.run(tools, onggi)
    tools.check("the server is left empty", lambda: tools.equal(tools.cli("FLUSHALL").strip(), "OK"))
    return 1 if tools.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
