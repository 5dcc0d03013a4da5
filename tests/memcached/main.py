"""Checks that need pymemcache. Usage: main.py PORT. Each check is one line, `ok - NAME` or `not ok - NAME: REASON`."""

import sys

import client


def main():
    failed = 0

    def check(name, holds):
        nonlocal failed
        failed += not holds
        print(f"ok - pymemcache: {name}" if holds else f"not ok - pymemcache: {name}: it did not", flush=True)

    client.run(int(sys.argv[1]), check)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
