"""Onggi's own tools on the files of real servers.

Usage: main.py ONGGI, with tests/runner in PYTHONPATH. Each check is one line, `ok - NAME` or `not ok - NAME: REASON`.
"""

import sys
import tempfile
from pathlib import Path

import backup
import dictionaries
import exports
import follows
import history
import imports
import logs
import moves
import page
import picture
import repairs
import signals
import supervisor
from directory import Tools


def main():
    with tempfile.TemporaryDirectory(prefix="onggi-test-") as scratch:
        tools = Tools(sys.argv[1], Path(scratch))
        for area in (
            backup, dictionaries, history, imports, logs, exports, follows, moves, page, picture, repairs, signals,
            supervisor,
        ):
            area.run(tools)
        return 1 if tools.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
