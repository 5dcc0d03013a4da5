"""`onggi import --follow` of running servers: under load, with a connection that is cut and a follower that is killed,
the directory has in the end what the server has."""

import random
import signal
import socket
import subprocess
import threading
import time

from directory import Client, SECONDS_MAX, digest
from imports import fill, same, state
from job import ROOT
from logs import change
from servers import OLD, free_port, others
from servers import Server as Peer

# Enough for all that is written here, so that a follower that comes back finds its place.
OPTIONS = [("enable-debug-command", "yes"), ("repl-diskless-sync-delay", "0"), ("repl-backlog-size", "256mb")]
CUTS = 4
KILLS = 3
# Exit status of an import that is refused for what the data has.
UNTAKEN = 1
# Between two pipelines of the load, in seconds.
PAUSE = 0.002


class Proxy:
    """Passes connections on to a port, cuts them on request, and refuses them during a pause."""

    def __init__(self, port):
        self.target, self.open, self.is_closed, self.is_paused = port, [], False, False
        # Bytes that the port may still send before a cut; None for any number.
        self.left = None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.is_closed = True
        self.listener.close()
        self.cut()

    def _accept(self):
        while not self.is_closed:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                # The server is away.
                client.close()
                continue
            self.open += [client, server]
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=(source, target, source is server), daemon=True).start()
            if self.is_paused:
                self.cut()

    def _pass(self, source, target, is_counted):
        try:
            while data := source.recv(1 << 16):
                left = self.left if is_counted else None
                if left is not None:
                    self.left = left - len(data)
                target.sendall(data if left is None else data[:left])
                if left is not None and len(data) >= left:
                    self.left = None
                    self.cut()
        except OSError:
            # One side is gone, or was cut.
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                # It is closed already.
                pass

    def pause(self):
        self.is_paused = True
        self.cut()

    def go_on(self):
        self.is_paused = False

    def cut_after(self, count):
        """Cuts when the port has sent so many bytes more, which may be in the middle of a command."""
        self.left = count

    def cut_never(self):
        self.left = None

    def cut(self):
        for end in self.open:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                # It is closed already.
                pass
        self.open = []


class Load(threading.Thread):
    """Random changes of all types until it is stopped."""

    def __init__(self, port, kind, seed):
        super().__init__(daemon=True)
        self.port, self.kind, self.random = port, kind, random.Random(seed)
        self.is_stopped, self.commands, self.failure = False, 0, None
        self.start()

    def run(self):
        try:
            with Client(self.port) as client:
                # An earlier load may have made it.
                client.pipeline_of_any([("XGROUP", "CREATE", "load:stream", "group", "$", "MKSTREAM")])
                while not self.is_stopped:
                    commands = [command for _ in range(20) for command in self.some()]
                    self.commands += len(commands)
                    client.pipeline_of_any(commands)
                    time.sleep(PAUSE)
        except Exception as problem:
            self.failure = problem

    def some(self):
        """A command, or a transaction."""
        draw = self.random
        key = f"load:{draw.randrange(40)}"
        number, member = draw.randrange(1000), f"m{draw.randrange(200)}"
        choices = [
            ("SET", f"{key}:s", "v" * draw.randrange(300)),
            ("SET", f"{key}:s", number, "PX", draw.randrange(1, 200)),
            ("INCRBY", f"{key}:n", number),
            ("INCRBYFLOAT", f"{key}:f", "0.5"),
            ("APPEND", f"{key}:s", number),
            ("SETBIT", f"{key}:b", number, 1),
            ("LPUSH", f"{key}:l", number, member),
            ("RPOP", f"{key}:l"),
            ("LMOVE", f"{key}:l", "load:moved", "LEFT", "RIGHT"),
            ("LTRIM", "load:moved", 0, 50),
            ("LINSERT", f"{key}:l", "BEFORE", number, member),
            ("LREM", f"{key}:l", 1, member),
            ("SADD", f"{key}:e", member, number),
            ("SPOP", f"{key}:e", 2),
            ("SUNIONSTORE", "load:union", f"{key}:e", "load:1:e"),
            ("HSET", f"{key}:h", member, number),
            ("HDEL", f"{key}:h", member),
            ("HINCRBYFLOAT", f"{key}:h", "sum", "1.5"),
            ("ZADD", f"{key}:z", number, member),
            ("ZPOPMIN", f"{key}:z"),
            ("ZRANGESTORE", "load:range", f"{key}:z", 0, 5),
            ("GEOADD", f"{key}:g", number / 10, 40, member),
            ("PFADD", f"{key}:p", number),
            ("BITFIELD", f"{key}:b", "SET", "u8", number, 7),
            ("XADD", "load:stream", "MAXLEN", "~", 500, "*", "f", number),
            ("XREADGROUP", "GROUP", "group", member, "COUNT", 2, "STREAMS", "load:stream", ">"),
            ("XAUTOCLAIM", "load:stream", "group", "other", 0, 0, "COUNT", 2),
            ("XTRIM", "load:stream", "MAXLEN", 400),
            ("EXPIRE", f"{key}:h", draw.choice([1, 1000])),
            ("PEXPIRE", f"{key}:z", draw.randrange(1, 500)),
            ("PERSIST", f"{key}:h"),
            ("RENAME", f"{key}:s", "load:renamed"),
            ("COPY", f"{key}:l", "load:copy", "REPLACE"),
            ("DEL", f"{key}:e"),
            ("UNLINK", f"{key}:g"),
            ("GETEX", f"{key}:s", "EX", 2),
            ("GETDEL", f"{key}:n"),
            ("SORT", f"{key}:l", "ALPHA", "STORE", "load:sorted"),
            ("MOVE", f"{key}:p", 5),
            (
                "EVAL", "redis.call('INCR', KEYS[1]) redis.call('RPUSH', KEYS[2], ARGV[1]) return 1", 2, f"{key}:n",
                f"{key}:l", number,
            ),
        ]
        if self.kind == "valkey":
            choices += [("HPEXPIRE", f"{key}:h", draw.randrange(1, 400), "FIELDS", 1, member),
                        ("HSETEX", f"{key}:h", "PX", draw.randrange(1, 400), "FIELDS", 1, member, number)]
        if draw.random() < 0.1:
            return [("MULTI",), *draw.choices(choices, k=4), ("EXEC",)]
        if draw.random() < 0.01:
            return [
                ("SELECT", 5),
                ("SET", "other", number),
                *draw.choices(choices, k=2),
                ("SELECT", 0),
                ("SWAPDB", 5, 7),
            ]
        if draw.random() < 0.002:
            return [("SELECT", 7), ("FLUSHDB",), ("SELECT", 0)]
        return [draw.choice(choices)]

    def stop(self):
        self.is_stopped = True
        self.join(SECONDS_MAX)
        if self.failure:
            raise self.failure


class Import:
    """`onggi import`, with what it has said."""

    def __init__(self, tools, name, *words):
        self.said = tools.scratch / f"{name}.said"
        self.output = open(self.said, "ab")
        self.process = subprocess.Popen([tools.onggi, "import", *words], stdin=subprocess.DEVNULL, stdout=self.output,
                                        stderr=subprocess.STDOUT)

    def text(self):
        return self.said.read_text()

    def wait_for(self, wanted, count=1):
        deadline = time.monotonic() + SECONDS_MAX
        while self.text().count(wanted) < count:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"it does not say {wanted!r} {count} times: {self.text()[-600:]}")
            time.sleep(0.02)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.output.close()

    def end(self):
        """Ends it in order."""
        self.process.send_signal(signal.SIGINT)
        status = self.process.wait(timeout=SECONDS_MAX)
        self.output.close()
        if status != 0:
            raise AssertionError(f"it ended with status {status}: {self.text()[-600:]}")


def follow(tools, address, name):
    """An import that follows a server into a directory of that name."""
    return Import(tools, name, address, "--dir", str(tools.scratch / name), "--follow")


def wait_until_it_has_all(client, follower):
    """The server has an acknowledgement of everything."""
    deadline = time.monotonic() + SECONDS_MAX
    while client.call("WAIT", 1, 1000) != 1:
        if time.monotonic() > deadline or follower.process.poll() is not None:
            raise AssertionError(f"nothing is acknowledged; the follower has said: {follower.text()[-600:]}")


def followed():
    """Kinds of servers that are followed under load."""
    return ["redis", "valkey", *(kind for kind, _ in others() + others(OLD))]


def state_of(client, kind):
    """What a server of this kind can say of its data: the digest alone if it is old."""
    return [digest(client)] if kind in OLD else state(client)


def follow_under_load(tools, kind, *options):
    name = f"follow-{kind}{'-' + options[0][1] if options else ''}"
    with Peer(kind, options=[*OPTIONS, *options]) as server, Client(server.port) as client, Proxy(server.port) as proxy:
        fill(client, kind)
        load = Load(server.port, kind, name)
        address = f"redis://127.0.0.1:{proxy.port}"
        follower = follow(tools, address, name)
        try:
            follower.wait_for("behind")
            for number in range(CUTS + KILLS):
                time.sleep(0.3)
                if number % 2 == 0:
                    proxy.cut()
                else:
                    follower.kill()
                    follower = follow(tools, address, name)
                wait_until_it_has_all(client, follower)
            change(client)
            load.stop()
            wait_until_it_has_all(client, follower)
            follower.end()
        finally:
            follower.process.kill()
        copies = follower.text().count("copies all data")
        if copies != 1:
            raise AssertionError(f"{copies} copies, where the server had all of its stream: {follower.text()[-2000:]}")
        with tools.serve(name) as ours, Client(ours.port) as mine:
            # Each removes what has expired, at times of its own.
            deadline = time.monotonic() + SECONDS_MAX
            while True:
                found = state_of(mine, kind), state_of(client, kind)
                if found[0] == found[1] or time.monotonic() > deadline:
                    break
                time.sleep(0.1)
            same(*found)


def a_new_copy_replaces_the_old(tools):
    """The server no longer has what the follower has missed."""
    small = [(name, "16kb" if name == "repl-backlog-size" else value) for name, value in OPTIONS]
    with Peer("valkey", options=small) as server, Client(server.port) as client:
        fill(client, "valkey")
        address = f"redis://127.0.0.1:{server.port}"
        follower = follow(tools, address, "twice")
        follower.wait_for("behind")
        follower.kill()
        # What is not finished is not served by mistake.
        words = ("--port", "0", "--unixsocket", tools.scratch / "twice.sock", "--dir", tools.scratch / "twice")
        told = tools.run("serve", *words, status=1)
        assert "17 databases" in told, told
        client.pipeline(
            [("FLUSHALL",), *(("SET", f"new:{n}", "v" * 100) for n in range(5000)), ("SELECT", 3), ("SADD", "s", 1)]
        )
        follower = follow(tools, address, "twice")
        wait_until_it_has_all(client, follower)
        client.pipeline([("SELECT", 3), ("SADD", "s", 2)])
        wait_until_it_has_all(client, follower)
        follower.end()
        assert follower.text().count("copies all data") == 2, follower.text()
        with tools.serve("twice") as ours, Client(ours.port) as mine:
            assert digest(mine) == digest(client) and mine.call("DBSIZE") == 5000


def what_cannot_be_followed_is_said(tools):
    nothing = f"redis://127.0.0.1:{free_port()}"
    assert "Connection refused" in tools.run(
        "import", nothing, "--dir", tools.scratch / "nothing", "--follow", status=2
    )
    assert "is a path" in tools.run(
        "import", tools.scratch / "file", "--dir", tools.scratch / "nothing", "--follow", status=2
    )
    with Peer("redis", options=[("requirepass", "secret"), *OPTIONS]) as server:
        address = f"127.0.0.1:{server.port}"
        assert "NOAUTH" in tools.run("import", f"redis://{address}", "--dry-run", status=2)
        assert "WRONGPASS" in tools.run("import", f"redis://:wrong@{address}", "--dry-run", status=2)
        assert "0 keys" in tools.run("import", f"redis://:secret@{address}", "--dir", tools.scratch / "with-login")
    with tools.serve("not-a-copy") as ours, Client(ours.port) as mine:
        mine.call("SET", "k", "v")
        ours.shut_down()
    told = tools.run("import", f"redis://{address}", "--dir", tools.scratch / "not-a-copy", "--follow", status=2)
    assert "has files already" in told, told


def send_a_copy(listener, head, sent):
    """Answers the handshake of one replica, and sends this head of a copy and these bytes of it."""
    connection, _ = listener.accept()
    with connection, connection.makefile("rb") as requests:
        while True:
            count = int(requests.readline()[1:])
            words = [requests.read(int(requests.readline()[1:]) + 2)[:-2] for _ in range(count)]
            if words[0].upper() == b"PSYNC":
                break
            connection.sendall(b"+PONG\r\n" if words[0].upper() == b"PING" else b"+OK\r\n")
        connection.sendall(b"+FULLRESYNC " + b"a" * 40 + b" 7\r\n" + head + b"\r\n" + sent)
        # The replica ends the connection.
        requests.read(1)


def what_a_server_has_that_cannot_be_taken(tools):
    """A server with values of a module. Neither a dry run nor a refused import leaves a file; with --partial the rest
    is taken."""
    file = (ROOT / "crates/keyspace/rdb/testdata/redis74-fields.rdb").read_bytes()

    def run(*options, status):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            threading.Thread(target=send_a_copy, args=(listener, b"$%d" % len(file), file), daemon=True).start()
            address = f"redis://127.0.0.1:{listener.getsockname()[1]}"
            return tools.run("import", address, *options, status=status)
    target = tools.scratch / "with-modules"
    for options in (["--dry-run"], ["--dir", target]):
        told = run(*options, status=UNTAKEN)
        assert "1 key has a value of the module type tree-type" in told, told
        assert 'these keys are "module" in database 0' in told, told
        assert not target.exists() and not list(tools.scratch.glob("*.copy.rdb")), told
    assert "imported 2 keys" in run("--dir", target, "--partial", status=0)


def a_copy_is_examined_first(tools):
    """The examination names a library of functions, and the copy has it."""
    with Peer("redis", options=OPTIONS) as server, Client(server.port) as client:
        client.call("SET", "k", "v")
        client.call("FUNCTION", "LOAD", "#!lua name=mine\nredis.register_function('f', function() return 1 end)")
        address = f"redis://127.0.0.1:{server.port}"
        told = tools.run("import", address, "--dir", tools.scratch / "with-functions")
        assert "1 library of functions: mine" in told, told
    with tools.serve("with-functions") as ours, Client(ours.port) as mine:
        assert mine.call("FCALL", "f", "0") == 1


def run(tools):
    for kind in followed():
        tools.check(
            f"{kind} is followed under load, with cuts and kills", lambda kind=kind: follow_under_load(tools, kind)
        )
    tools.check("a copy through a file of the server is followed as well",
                lambda: follow_under_load(tools, "valkey", ("repl-diskless-sync", "no")))
    tools.check("a follower that has missed too much gets a new copy", lambda: a_new_copy_replaces_the_old(tools))
    tools.check("what cannot be followed is said", lambda: what_cannot_be_followed_is_said(tools))
    tools.check("what a server has that cannot be taken is said", lambda: what_a_server_has_that_cannot_be_taken(tools))
    tools.check("a copy is examined before it is taken", lambda: a_copy_is_examined_first(tools))
