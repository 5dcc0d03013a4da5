"""Checks that need pyssdb. Usage: main.py PORT. Each check is one line, `ok - NAME` or `not ok - NAME: REASON`."""

import sys

import pyssdb


def refused(call):
    # Under Python 3 pyssdb fails to make its error of a message that is bytes.
    try:
        call()
    except (pyssdb.error, TypeError):
        return True
    return False


def run(client, check):
    check("set and get", [client.set("a", "é"), client.get("a"), client.get("none")], [1, "é".encode(), None])
    check("setx", client.setx("t", 1, 100), 1)
    check("ttl: whole seconds that are left", client.ttl("t") in (b"99", b"100"), True)
    check("incr", [client.incr("n"), client.incr("n", 10), client.decr("n", 1)], [1, 11, 10])
    check("multi_get", [client.multi_set("x", 1, "y", 2), client.multi_get("x", "none", "y")],
          [2, [b"x", b"1", b"y", b"2"]])
    check("keys and scan", [client.keys("n", "y", 10), client.scan("t", "", 1)], [[b"t", b"x", b"y"], [b"x", b"1"]])
    check("hashes",
          [client.hset("h", "f", "v"), client.hget("h", "f"), client.hincr("h", "n", 5), client.hgetall("h")],
          [1, b"v", 5, [b"f", b"v", b"n", b"5"]])
    check("hscan in pages", pages(client), [b"f%03d" % number for number in range(300)])
    check("zsets",
          [client.zset("z", "m", 5), client.zget("z", "m"), client.zincr("z", "m", -7), client.zrank("z", "m")],
          [1, 5, -2, 0])
    check("zscan", [client.multi_zset("z", "k", 1, "l", 1), client.zscan("z", "k", 1, "", 10)], [2, [b"l", b"1"]])
    check("queues", [client.qpush("q", "a", "b", "c"), client.qrange("q", 1, 9), client.qpop("q"), client.qsize("q")],
          [b"3", [b"b", b"c"], b"a", 2])
    check("names", [client.hlist("", "", 10), client.zlist("", "", 10), client.qlist("", "", 10)],
          [[b"big", b"h"], [b"z"], [b"q"]])
    check("long values", [client.set("l", b"\0\n\r" * 400_000), len(client.get("l"))], [1, 1_200_000])
    check("errors", [refused(lambda: client.incr("a")), refused(lambda: client.get("h")),
                     refused(lambda: client.nonsense()), refused(lambda: client.zset("z", "m", 2**53 + 1))],
          [True] * 4)
    check("info", client.info()[b"version"], b"1.9.8")
    check("delete", [client.delete("a"), client.get("a")], [1, None])


def pages(client):
    """All fields, a page at a time."""
    client.multi_hset("big", *[part for number in range(300) for part in (b"f%03d" % number, b"v")])
    fields, last = [], b""
    while page := client.hkeys("big", last, "", 70):
        fields, last = fields + page, page[-1]
    return fields


def main():
    failed = 0

    def check(name, given, wanted):
        nonlocal failed
        failed += given != wanted
        text = f"ok - pyssdb: {name}" if given == wanted else f"not ok - pyssdb: {name}: {given}, not {wanted}"
        print(text, flush=True)

    run(pyssdb.Client(port=int(sys.argv[1]), socket_timeout=20), check)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
