"""Requests that never end, that lie about their size, or that are none."""

import time

from control import bound
from resp import Connection, Error, request
from suite import MB, equal, expect, many, measure


def huge_pipelines(suite):
    """Pipelines far longer than any buffer: one whose client reads, many whose clients do not."""
    server = suite.server
    count = 200_000
    with Connection(server) as honest, many(server, 20, receive_bytes=4096) as deaf:
        for connection in deaf:
            connection.send_what_fits(request("PING") * 1_000_000)
        data = b"".join(request("INCR", "pipeline") for _ in range(count))
        step = 1 << 18
        replies = 0
        for start in range(0, len(data), step):
            honest.send(data[start:start + step])
            honest.read_what_came()
        for replies in range(1, count + 1):
            equal(honest.reply(), replies)
        honest.call("DEL", "pipeline")


def endless_transactions(suite):
    """MULTI without EXEC."""
    server = suite.server
    chunk = request("SET", "queued", b"q" * 10_000) * 100
    with many(server, 16) as connections:
        for connection in connections:
            connection.call("MULTI")
        closed = set()
        deadline = time.monotonic() + 8
        while len(closed) < len(connections) and time.monotonic() < deadline:
            for number, connection in enumerate(connections):
                if number not in closed and not feed(connection, chunk):
                    closed.add(number)
    expect(closed, "no queue was ever refused")
    with Connection(server) as connection:
        equal(connection.call("EXISTS", "queued"), 0, "nothing of a queue has run")
        # A long transaction within the limits runs.
        connection.call("MULTI")
        connection.send(request("INCR", "counted") * 100_000)
        for _ in range(100_000):
            equal(connection.reply(), b"QUEUED")
        equal(connection.call("EXEC")[-1], 100_000)
        connection.call("DEL", "counted")


def watches(suite):
    """WATCH without end: a request of many keys is quick, and what they hold is bounded."""
    server = suite.server
    with Connection(server) as connection:
        start = time.monotonic()
        equal(connection.call("WATCH", *[f"watched:{number}" for number in range(100_000)]), b"OK")
        seconds = time.monotonic() - start
        # A request as large that looks at every key and keeps none: a walk of the list for each would take minutes.
        start = time.monotonic()
        connection.call("EXISTS", *[f"watched:{number}" for number in range(100_000)])
        plain = time.monotonic() - start
        measure(seconds < bound(2, 10 * plain), f"WATCH of 100,000 keys takes {seconds:.1f} s, EXISTS {plain:.1f} s")
        equal(connection.call("UNWATCH"), b"OK")
    with many(server, 4) as connections:
        deadline = time.monotonic() + 1
        number = 0
        while time.monotonic() < deadline:
            for connection in connections:
                feed(connection, request("WATCH", *[b"%d" % (number + part) + b"w" * 10_000 for part in range(100)]))
                number += 100


def feed(connection, chunk):
    """Sends what fits and drops what comes; False when the server has closed."""
    return connection.send_what_fits(chunk) >= 0 and connection.read_what_came(keep=False)


def announced_sizes(suite):
    """Sizes that are announced and never sent cost nothing; those above the limits are refused."""
    server = suite.server
    for header, wanted in (
        (b"*1048577\r\n", "invalid multibulk length"),
        (b"*2147483648\r\n", "invalid multibulk length"),
        (b"*99999999999999999999\r\n", "invalid multibulk length"),
        (b"*2\r\n$3\r\nGET\r\n$536870913\r\n", "invalid bulk length"),
        (b"*2\r\n$3\r\nGET\r\n$-1\r\n", "invalid bulk length"),
        (b"*2\r\n$3\r\nGET\r\n$9223372036854775808\r\n", "invalid bulk length"),
        (b"*1\r\n" + b"$" + b"1" * 70_000, "too big bulk count string"),
        (b"*" + b"1" * 70_000, "too big mbulk count string"),
        (b"x" * 70_000, "too big inline request"),
    ):
        with Connection(server, seconds=5) as connection:
            connection.send(header)
            try:
                expect(False, f"{header[:40]!r} answered {connection.reply()!r}")
            except Error as error:
                expect(wanted in str(error), f"{header[:40]!r}: {error}")
            expect(connection.closed(), f"{header[:40]!r} leaves the connection open")
    before = server.resident()
    with many(server, 1000) as connections:
        for number, connection in enumerate(connections):
            connection.send(
                (
                    b"*1048576\r\n$536870912\r\n",
                    b"*1048576\r\n" + b"$1\r\na\r\n" * 10,
                    b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n" + b"x" * 1000,
                )[number % 3]
            )
        time.sleep(1)
        grown = server.resident() - before
        measure(grown < 48 * MB, f"a thousand announcements take {grown / MB:.1f} MB")


def query_limit(suite):
    """A request that grows beyond client-query-buffer-limit closes its connection, and is counted."""
    server = suite.server
    with Connection(server) as control, Connection(server, seconds=5) as greedy:
        field = ("stats", "client_query_buffer_limit_disconnections")
        before = int(server.info(*field))
        limit = control.call("CONFIG", "GET", "client-query-buffer-limit")[1]
        control.call("CONFIG", "SET", "client-query-buffer-limit", "1mb")
        try:
            greedy.send_what_fits(b"*1000\r\n" + request(*[b"x" * 20_000] * 100).split(b"\r\n", 1)[1])
            expect(greedy.closed(), "a client with 2 MB of a request stays")
        finally:
            control.call("CONFIG", "SET", "client-query-buffer-limit", limit)
        equal(int(server.info(*field)), before + 1)


def half_values(suite):
    """Large values that stop half-way are held only as far as they came."""
    server = suite.server
    with many(server, 8) as connections:
        for connection in connections:
            connection.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n" + b"x" * (16 * MB))
        time.sleep(0.5)


def slow_senders(suite):
    """Requests a byte at a time, on many connections at once."""
    server = suite.server
    with many(server, 200) as connections:
        data = [
            request("SET", f"slow:{number}", number) + b"GET slow:%d\r\n" % number for number in range(len(connections))
        ]
        for position in range(max(map(len, data))):
            for connection, whole in zip(connections, data):
                connection.send(whole[position:position + 1])
        for number, connection in enumerate(connections):
            equal(connection.reply(), b"OK")
            equal(connection.reply(), b"%d" % number)
        connections[0].call("DEL", *[f"slow:{number}" for number in range(len(connections))])


SPEECHES = [
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nSET a b\r\n",
    bytes.fromhex("1603010200010001fc0303") + b"\x5a" * 200,
    b"set k 0 0 5\r\nhello\r\nget k\r\nquit\r\n",
    bytes.fromhex("800000050000000000000005000000000000000068656c6c6f"),
    b"%1\r\n+HELLO\r\n:3\r\n", b"~2\r\n+GET\r\n+k\r\n", b"*1\r\n:1\r\n", b"*1\r\n*1\r\n$4\r\nPING\r\n",
    b"*-1\r\n*0\r\n*1\r\n$0\r\n\r\n",
    b'SET "unbalanced\r\n',
    b"\r\n" * 1000,
    b"\0" * 5000,
    b"SSH-2.0-OpenSSH_9.2\r\n", b"*3\r\n$3\r\nSET\r\n$-5\r\n", b"*2\r\n$4\r\nECHO\r\n$3\r\nabcdef\r\n",
]


def garbage(suite):
    """Random bytes, requests with flipped and missing bytes, and other protocols. Nothing of it may hurt."""
    server, rng = suite.server, suite.random("garbage")
    valid = [
        request("SET", "garbage", "x" * 50),
        request("GET", "garbage"),
        request("PING"),
        request("MGET", "garbage", "b"),
        b"PING\r\n",
        b"GET garbage\r\n",
        request("HELLO", 3),
        request("MULTI"),
        request("EXEC"),
    ]
    with Connection(server) as keeper:
        keeper.call("SET", "kept", "value")
        deadline = time.monotonic() + 6 * suite.times
        rounds = 0
        while time.monotonic() < deadline:
            with many(server, 20) as connections:
                for connection in connections:
                    connection.send_what_fits(speech(rng, valid))
                for connection in connections:
                    feed(connection, b"")
            rounds += 1
        equal(keeper.call("GET", "kept"), b"value")
        keeper.call("DEL", "kept", "garbage")
    expect(rounds > 0, "no round in the time")


def speech(rng, valid):
    """One client's bytes."""
    kind = rng.random()
    if kind < 0.25:
        return rng.randbytes(rng.randrange(1, 3000))
    if kind < 0.4:
        return rng.choice(SPEECHES) + rng.choice(valid)
    data = bytearray(b"".join(rng.choice(valid) for _ in range(rng.randrange(1, 12))))
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(data))
        if rng.random() < 0.5:
            data[at] = rng.choice(b"\r\n$*:+-0123456789 \0\xff\"'")
        else:
            del data[at:at + rng.randrange(1, 4)]
        if not data:
            return b"*"
    return bytes(data)


def run(suite):
    suite.attack("huge pipelines", lambda: huge_pipelines(suite))
    suite.attack("transactions without end", lambda: endless_transactions(suite))
    # Small allocations by the hundred thousand: the heaps keep a part of them for the next.
    suite.attack("watched keys without end", lambda: watches(suite), after=96 * MB)
    suite.attack("announced sizes", lambda: announced_sizes(suite))
    suite.check("requests beyond the query buffer", lambda: query_limit(suite))
    suite.attack("values that stop half-way", lambda: half_values(suite))
    suite.attack("slow senders", lambda: slow_senders(suite))
    suite.attack("garbage", lambda: garbage(suite))
