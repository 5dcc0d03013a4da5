"""Many connections: idle ones, ones that come and go, and more than there may be."""

import multiprocessing
import re
import socket
import time

from resp import Connection, Error, request
from suite import equal, eventually, expect, many, raise_descriptor_limit

IDLE = 10_000
STORM_PER_SECOND = 5000
STORM_SECONDS = 4
CONTROL_SECONDS = 1
STORM_SHARE_MIN = 0.3


def idle(suite):
    """Ten thousand connections that have said hello and are silent."""
    server = suite.server
    expect(raise_descriptor_limit(IDLE + 200), f"this process may not open {IDLE} connections (ulimit -n)")
    before = server.resident()
    with many(server, IDLE) as connections:
        for connection in connections:
            connection.send(request("PING"))
        for connection in connections:
            equal(connection.reply(), b"PONG")
        time.sleep(1)
        grown = server.resident() - before
        print(f"   {IDLE} idle connections: {grown / IDLE:.0f} bytes each", flush=True)
        expect(int(server.info("clients", "connected_clients")) > IDLE, "connections are missing")
        for connection in suite.random("idle").sample(connections, 500):
            equal(connection.call("PING"), b"PONG")
        with Connection(server) as control:
            equal(control.call("CLIENT", "LIST").count(b"\n") > IDLE, True)


def storm(suite):
    """Connections that come and go, some with a request and some without, at a steady rate."""
    accepted = int(suite.server.info("stats", "total_connections_received"))
    seconds = churns(suite.server, STORM_SECONDS)
    rate = (int(suite.server.info("stats", "total_connections_received")) - accepted) / seconds
    # What this machine can do at all: the same storm on the peer that does nothing, as many connections or fewer.
    possible = STORM_PER_SECOND * CONTROL_SECONDS / churns(suite.peer, CONTROL_SECONDS)
    print(f"   connection storm: {rate:.0f} a second (control {possible:.0f})", flush=True)
    expect(
        rate > min(possible, STORM_PER_SECOND) * STORM_SHARE_MIN, f"only {rate:.0f} connections a second came through"
    )


def churns(server, seconds):
    """Two processes that connect and close; how long they took for what `seconds` are meant for, or gave up after."""
    processes = [
        multiprocessing.Process(target=churn, args=(server, STORM_PER_SECOND // 2, seconds, number))
        for number in range(2)
    ]
    start = time.monotonic()
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    expect(all(process.exitcode == 0 for process in processes), "a connection was refused")
    return time.monotonic() - start


def churn(server, per_second, seconds, seed):
    """Connects and closes this many times a second."""
    start = time.monotonic()
    for number in range(int(per_second * seconds)):
        wait = start + number / per_second - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        elif wait < -seconds:
            return
        with socket.create_connection((server.host, server.port)) as connection:
            if (number + seed) % 3 == 0:
                connection.sendall(b"PING\r\n")
                connection.recv(16)
            if number % 7 == 0:
                # Closed with a reset: what is unread is thrown away.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def too_many(suite):
    """Beyond maxclients a connection gets an error and is closed; when one goes, the next is taken."""
    server = suite.server
    with Connection(server) as control:
        control.call("CONFIG", "SET", "maxclients", 50)
        try:
            with many(server, 40) as connections:
                for connection in connections:
                    connection.call("PING")
                rejected = 0
                extra = []
                for _ in range(20):
                    connection = Connection(server)
                    extra.append(connection)
                    try:
                        connection.send(request("PING"))
                        connection.reply()
                    except Error as error:
                        equal(str(error), "ERR max number of clients reached")
                        rejected += 1
                    except ConnectionError:
                        rejected += 1
                expect(8 <= rejected <= 12, f"{rejected} of 20 were turned away")
                for connection in extra:
                    connection.close()
            # Over the connection that is there: a new one is turned away as long as they are counted.
            counted = re.compile(rb"connected_clients:(\d+)")
            eventually(
                lambda: int(counted.search(control.call("INFO", "clients"))[1]) < 10,
                "closed connections are still counted",
            )
            with Connection(server) as connection:
                equal(connection.call("PING"), b"PONG")
        finally:
            control.call("CONFIG", "SET", "maxclients", 12000)


def silent(suite):
    """A connection that never says anything is closed after login-timeout; with `timeout`, a silent one too."""
    server = suite.server
    with Connection(server) as control:
        control.call("CONFIG", "SET", "login-timeout", 1, "timeout", 0)
        with Connection(server, seconds=20) as mute, Connection(server) as talker:
            talker.call("PING")
            expect(mute.closed(), "a connection without a first command stays")
            equal(talker.call("PING"), b"PONG")
            control.call("CONFIG", "SET", "timeout", 1)
            talker.socket.settimeout(10)
            eventually(lambda: control.call("CLIENT", "LIST").count(b"\n") == 1, "a silent connection stays")
            expect(talker.closed(), "a silent connection stays")
        control.call("CONFIG", "SET", "login-timeout", 10, "timeout", 0)


def run(suite):
    suite.attack("ten thousand idle connections", lambda: idle(suite))
    suite.attack("connection storm", lambda: storm(suite), p99_ms=50)
    suite.check("more connections than maxclients", lambda: too_many(suite))
    suite.check("silent connections", lambda: silent(suite))
