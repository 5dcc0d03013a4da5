"""Onggi's own tools on the files of real servers.

Usage: main.py ONGGI [cuts CUTS KILLS], with tests/runner in PYTHONPATH. Each check is one line, `ok - NAME` or
`not ok - NAME: REASON`.
"""

import sys
import tempfile
from pathlib import Path

import backup
import caches
import cuts
import dictionaries
import exports
import follows
import history
import imports
import installed
import logs
import moves
import objects
import page
import promotions
import repairs
import replicas
import signals
import ssdbs
import supervisor
import rows
import tiers
from directory import Tools


def main():
    with tempfile.TemporaryDirectory(prefix="onggi-test-") as scratch:
        tools = Tools(sys.argv[1], Path(scratch))
        if sys.argv[2:3] == ["cuts"]:
            counts = [int(word) for word in sys.argv[3:5]]
            name = f"{counts[0]} cuts, {counts[1]} kills of each side"
            tools.check(name, lambda: cuts.cut_and_kill(tools, *counts, cuts.FLOOD))
            return 1 if tools.failed else 0
        for area in (
            backup, caches, dictionaries, history, imports, logs, exports, follows, replicas, cuts, promotions, moves,
            page, repairs, signals, supervisor, rows, tiers, objects, installed, ssdbs,
        ):
            area.run(tools)
        return 1 if tools.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
