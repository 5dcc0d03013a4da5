"""Attacks on a running server, with a client that must not notice.

Usage: main.py AREA HOST PORT PASSWORD PID [SEED [TIMES]]. AREA is one of the modules below; SEED makes an earlier run's
random choices again; TIMES makes the timed attacks longer.
"""

import random
import sys
from importlib import import_module

from suite import Server, Suite

AREAS = [
    "output", "input", "arguments", "connections", "login", "keys", "payloads", "memory", "sockets", "clock", "tls",
    "users",
]


def main():
    area, host, port, password, pid, *more = sys.argv[1:]
    if area not in AREAS:
        raise SystemExit(f"no area {area!r}; there are: {', '.join(AREAS)}")
    seed = more[0] if more and more[0] != "-" else str(random.SystemRandom().randrange(1 << 32))
    times = int(more[1]) if len(more) > 1 else 1
    print(f"   seed {seed}", flush=True)
    suite = Suite(Server(host, port, password, pid), seed, times)
    import_module(area).run(suite)
    return 1 if suite.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
