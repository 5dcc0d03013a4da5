"""Before login, and guessing passwords. The server has a password."""

import time
from pathlib import Path

from control import bound
from resp import Connection, Error, request
from suite import equal, eventually, expect, many, measure

FREE = {"auth", "hello", "quit", "reset"}


def nothing_runs(suite):
    """Every command is refused before login, with any arguments, and nothing has changed after."""
    server = suite.server
    with Connection(server) as control, Connection(server, password="") as stranger:
        control.call("SET", "kept", "value")
        names = [row[0].decode() for row in control.call("COMMAND")]
        expect(len(names) > 80, f"only {len(names)} commands")
        for name in names:
            for count in (0, 1, 2, 3, 5):
                if name in FREE:
                    continue
                text = stranger.error(name, *["kept"] * count)
                expect("NOAUTH" in text, f"{name} with {count} arguments: {text!r}")
        for words in (
            ["MULTI"],
            ["EXEC"],
            ["GET", "kept"],
            ["HELLO", 3],
            ["HELLO"],
            ["NOSUCH"],
            ["AUTH"],
            ["SHUTDOWN", "NOSAVE"],
        ):
            expect(stranger.error(*words), f"{words} ran")
        equal(control.call("GET", "kept"), b"value")
        control.call("DEL", "kept")


def small_requests_only(suite):
    """What a stranger may send is small: few arguments, short ones, and no reply that piles up."""
    server = suite.server
    for data in (b"*11\r\n", b"*1000\r\n", b"*2\r\n$4\r\nAUTH\r\n$16385\r\n", b"*2\r\n$4\r\nAUTH\r\n$536870912\r\n"):
        with Connection(server, password="", seconds=5) as stranger:
            stranger.send(data)
            try:
                expect(False, f"{data!r} answered {stranger.reply()!r}")
            except Error as error:
                expect("unauthenticated" in str(error), f"{data!r}: {error}")
            expect(stranger.closed(), f"{data!r} leaves the connection open")
    with many(server, 40, password="", receive_bytes=4096) as strangers:
        for stranger in strangers:
            stranger.send_what_fits(request("GET", "x" * 1000) * 100_000)
        time.sleep(0.5)


def strangers(suite):
    """The number of connections without a login is limited: the oldest makes room, and others log in meanwhile."""
    server = suite.server
    with Connection(server) as control:
        limit = 100
        control.call("CONFIG", "SET", "login-max-clients", limit, "login-timeout", 10)
        members = [Connection(server) for _ in range(20)]
        with many(server, 500, password="") as crowd:
            late = Connection(server)
            equal(late.call("PING"), b"PONG")
            clients = lambda: control.call("CLIENT", "LIST").count(b"\n")
            eventually(
                lambda: clients() <= limit + len(members) + 4,
                f"more connections than a limit of {limit} strangers allows",
            )
            expect(crowd[-1].error("PING").startswith("NOAUTH"), "the newest stranger is gone")
            late.close()
        for member in members:
            equal(member.call("PING"), b"PONG")
            member.close()
        control.call("CONFIG", "SET", "login-max-clients", 1024)


def guessing(suite):
    """A million wrong passwords in a flood of requests: few are tried, none is right, and others log in at once."""
    server = suite.server
    flood = b"".join(request("AUTH", f"guess-{number}") for number in range(1000))
    with Connection(server) as control:
        with many(server, 100, password="", source="127.0.0.1") as guessers:
            sent = 0
            began = time.monotonic()
            deadline = began + 6
            for _ in range(10):
                for guesser in guessers:
                    sent += max(guesser.send_what_fits(flood), 0) / len(flood) * 1000
            waits, control_waits = [], []
            while time.monotonic() < deadline or not waits:
                for address, found in ((server, waits), (suite.peer, control_waits)):
                    start = time.monotonic()
                    with Connection(address, source="127.0.0.2") as other:
                        equal(other.call("PING"), b"PONG")
                    found.append(time.monotonic() - start)
                time.sleep(0.05)
            answered = 0
            for guesser in guessers:
                guesser.read_what_came()
                answered += guesser.buffer.count(b"WRONGPASS")
                expect(b"+OK" not in guesser.buffer, "a wrong password was taken")
            seconds = time.monotonic() - began
            print(
                f"   guessing: {sent:.0f} passwords sent, {answered} answered in {seconds:.1f} s; a login from "
                f"elsewhere took at most "
                f"{max(waits) * 1000:.0f} ms (control {max(control_waits) * 1000:.0f})",
                flush=True,
            )
            expect(sent > 50_000, f"only {sent:.0f} were sent")
            # 100 connections, at most one answer a second each once the delay has grown.
            expect(answered <= 100 * (seconds + 3), f"{answered} guesses were answered")
            measure(max(waits) < bound(0.5, max(control_waits)), f"a login from elsewhere took {max(waits):.2f} s")
        equal(control.call("PING"), b"PONG")


def redaction(suite):
    """No password is shown by SLOWLOG, COMMANDLOG, MONITOR, CLIENT LIST or the log."""
    server = suite.server
    secret = "s3cret-that-nobody-may-see"
    with Connection(server) as control, Connection(server) as monitor, Connection(
        server, password="", source="127.0.0.3"
    ) as stranger:
        control.call("CONFIG", "SET", "slowlog-log-slower-than", 0, "commandlog-request-larger-than", 0)
        monitor.call("MONITOR")
        for words in (
            ["AUTH", secret],
            ["AUTH", "default", secret],
            ["HELLO", 3, "AUTH", "default", secret],
            ["HELLO", 2, "auth", secret, secret, "SETNAME", "n"],
        ):
            stranger.error(*words)
            control.error(*words)
        before = server.password
        control.call("CONFIG", "SET", "requirepass", secret)
        control.call("CONFIG", "SET", "requirepass", before)
        control.call("ACL", "SETUSER", "x", ">" + secret)
        control.call("ACL", "DELUSER", "x")
        control.error("CONFIG", "SET", "masterauth", secret)
        equal(control.call("MIGRATE", "h", 1, "no such key", 0, 10, "AUTH", secret), b"NOKEY")
        equal(control.call("MIGRATE", "h", 1, "no such key", 0, 10, "AUTH2", "user", secret), b"NOKEY")
        shown = [
            str(control.call("SLOWLOG", "GET", -1)),
            str(control.call("COMMANDLOG", "GET", -1, "large-request")),
            str(control.call("CLIENT", "LIST")),
        ]
        control.call("CONFIG", "SET", "slowlog-log-slower-than", 10000, "commandlog-request-larger-than", 1 << 20)
        # What MONITOR was to show stands before this.
        control.call("ECHO", "the end of redaction")
        eventually(
            lambda: monitor.read_what_came() and b"the end of redaction" in monitor.buffer, "MONITOR shows nothing"
        )
        shown.append(monitor.buffer.decode("utf-8", "replace"))
        expect("redacted" in shown[0] and "redacted" in shown[3], "nothing was redacted, so nothing was shown")
        for text in shown:
            expect(secret not in text, f"a password is shown: ...{text[max(0, text.find(secret) - 200):][:260]}")
    shown = Path(f"/proc/{server.pid}/fd/1")
    try:
        log = shown.read_bytes()
    except OSError:
        log = b""
    expect(secret.encode() not in log, "the log has a password")


def run(suite):
    suite.attack("commands before login", lambda: nothing_runs(suite))
    suite.attack("large requests before login", lambda: small_requests_only(suite))
    suite.attack("strangers without end", lambda: strangers(suite))
    suite.attack("guessing passwords", lambda: guessing(suite))
    suite.check("redaction of passwords", lambda: redaction(suite))
