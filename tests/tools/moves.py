"""MIGRATE: keys go from Onggi to real servers and back, and none is lost or doubled on the way."""

import socket
import threading
import time

from directory import Client, ErrorReply
from imports import DATABASES, fill, same, state
from servers import Server as Peer
from servers import others

HOST = "127.0.0.1"
# What an exchange may take of a key's life.
LIFE_MS = 60_000


def refused(client, *words):
    """The error that a request is answered with."""
    try:
        answer = client.call(*words)
    except ErrorReply as error:
        return str(error)
    raise AssertionError(f"{words} is answered {answer}")


def keys_of(client):
    """All keys of the database that is selected."""
    return client.call("KEYS", "*")


def there_and_back(tools, kind):
    """All types move to another server, which then has what Onggi had, and back, where nothing is missing."""
    with tools.serve(f"moves-{kind}") as server, Peer(kind, options=[("enable-debug-command", "yes")]) as peer, \
            Client(server.port) as here, Client(peer.port) as there:
        fill(here, "valkey" if kind == "valkey" else "redis")
        if kind == "redis":
            # One that was never active, which its format cannot say.
            for db in DATABASES:
                here.pipeline([("SELECT", db), ("XGROUP", "DELCONSUMER", "stream", "second", "idle")])
            here.call("SELECT", 0)
        before = state(here)
        for source, target, port in ((here, there, peer.port), (there, here, server.port)):
            for db in DATABASES:
                source.call("SELECT", db)
                names = keys_of(source)
                for start in range(0, len(names), 500):
                    some = names[start:start + 500]
                    answer = source.call("MIGRATE", HOST, port, "", db, 10_000, "KEYS", *some)
                    assert answer == "OK", answer
                assert source.call("DBSIZE") == 0
                assert not names or source.call("MIGRATE", HOST, port, names[0], db, 1000) == "NOKEY"
            source.call("SELECT", 0)
            agree(state(target), before)
        server.shut_down()


def agree(found, expected):
    """The same, but for the ends of lives, which are sent as what is left of them."""
    for one, other in zip(found[1:], expected[1:], strict=True):
        assert all(abs(at - was) < LIFE_MS for at, was in zip(one[1:3], other[1:3], strict=True)), (one, other)
    without = [[part[0], [(row[0], *row[3:]) for row in part[1:]]] for part in (found, expected)]
    same(*without)


def options(tools):
    """COPY, REPLACE, AUTH, and what the other server refuses."""
    with tools.serve("moves-options") as server, Peer("valkey", options=[("requirepass", "secret")]) as peer, \
            Client(server.port) as here, Client(peer.port) as there:
        there.call("AUTH", "secret")
        for number in range(3):
            here.call("SET", f"key:{number}", f"value {number}")
        target = (HOST, peer.port)
        assert "NOAUTH" in refused(here, "MIGRATE", *target, "key:0", 0, 1000)
        assert "WRONGPASS" in refused(here, "MIGRATE", *target, "key:0", 0, 1000, "AUTH", "other")
        assert here.call("MIGRATE", *target, "key:0", 0, 1000, "COPY", "AUTH", "secret") == "OK"
        assert (here.call("GET", "key:0"), there.call("GET", "key:0")) == ("value 0", "value 0")
        login = ("AUTH2", "default", "secret")
        told = refused(here, "MIGRATE", *target, "", 0, 1000, *login, "KEYS", "key:0", "key:1")
        assert told.startswith("ERR Target instance replied with error: BUSYKEY"), told
        assert keys_of(here) and here.call("EXISTS", "key:0", "key:1") == 1, "the one that was taken is gone here"
        assert here.call("MIGRATE", *target, "key:0", 0, 1000, "REPLACE", *login) == "OK"
        assert "DB index" in refused(here, "MIGRATE", *target, "key:2", 99, 1000, *login)
        assert here.call("EXISTS", "key:0", "key:1", "key:2") == 1
        here.call("PSETEX", "late", 60_000, "value")
        assert here.call("MIGRATE", *target, "late", 0, 1000, *login) == "OK"
        assert 0 < there.call("PTTL", "late") <= 60_000
        server.shut_down()


def nobody_there(tools):
    """A target that is not there, does not answer, or is no server of this kind: an error in time, and others are
    answered."""
    with tools.serve("moves-nowhere") as server, Client(server.port) as here, Client(server.port) as other, \
            socket.socket() as silent:
        silent.bind((HOST, 0))
        silent.listen(1)
        here.call("SET", "key", "value")
        told = refused(here, "MIGRATE", HOST, 1, "key", 0, 1000)
        assert told.startswith("IOERR") and "127.0.0.1:1" in told, told
        for port in ("port", 70_000):
            assert refused(here, "MIGRATE", HOST, port, "key", 0, 1000).startswith("IOERR")
        assert refused(here, "MIGRATE", "no.such.host.invalid", 1, "key", 0, 1000).startswith("IOERR")
        began, errors = time.monotonic(), []
        waiting = threading.Thread(target=lambda: errors.append(
            refused(here, "MIGRATE", HOST, silent.getsockname()[1], "key", 0, 1500)))
        waiting.start()
        worst = 0
        while waiting.is_alive():
            asked = time.monotonic()
            assert other.call("GET", "key") == "value"
            worst = max(worst, time.monotonic() - asked)
            assert time.monotonic() - began < 30, "MIGRATE does not end"
            time.sleep(0.01)
        waiting.join()
        assert errors[0].startswith("IOERR") and "time" in errors[0], errors
        assert time.monotonic() - began >= 1.5 and worst < 1, f"others waited {worst:.3f} s"
        assert here.call("GET", "key") == "value"
        server.shut_down()


def under_writes(tools):
    """Counters are moved to and fro while others count: each increment is on one side or the other, none on both."""
    rounds, names = 20, [f"counter:{number}" for number in range(50)]
    with tools.serve("moves-one") as one, tools.serve("moves-two") as two, \
            Client(one.port) as here, Client(two.port) as there:
        over, counted, failed = threading.Event(), [], []

        def count():
            try:
                with Client(one.port) as client:
                    while not over.is_set():
                        for name in names:
                            client.call("INCR", name)
                            counted.append(name)
            except Exception as error:  # Told by the check, with the counts.
                failed.append(error)

        counting = threading.Thread(target=count)
        counting.start()
        tried_again = 0
        for name in names * rounds:
            try:
                here.call("MIGRATE", HOST, two.port, name, 0, 5000, "REPLACE")
            except ErrorReply as error:
                assert str(error).startswith("TRYAGAIN"), error
                tried_again += 1
                continue
            # What was counted before it left is there, and it began anew here.
            there.call("INCRBY", f"sum:{name}", int(there.call("GETDEL", name) or 0))
        over.set()
        counting.join(30)
        assert not counting.is_alive()
        assert not failed, failed
        moved = sum(int(there.call("GET", f"sum:{name}") or 0) for name in names)
        left = sum(int(here.call("GET", name) or 0) for name in names)
        assert moved + left == len(
            counted
        ), f"{moved} moved, {left} left, {len(counted)} counted, {tried_again} tried again"
        assert moved > 0
        one.shut_down()
        two.shut_down()


def run(tools):
    tools.check("keys of all types move to Redis 7.0 and back", lambda: there_and_back(tools, "redis"))
    tools.check("keys of all types move to Valkey 9.1 and back", lambda: there_and_back(tools, "valkey"))
    for kind, title in others():
        tools.check(f"keys of all types move to {title} and back", lambda kind=kind: there_and_back(tools, kind))
    tools.check("MIGRATE says what the other server refuses", lambda: options(tools))
    tools.check("MIGRATE to nowhere ends in time and holds nobody up", lambda: nobody_there(tools))
    tools.check("no increment is lost or doubled while its key moves", lambda: under_writes(tools))
