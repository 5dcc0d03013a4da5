"""Append-only logs of real servers become data directories: Onggi has what the server that wrote them has after a start
with them."""

import shutil
import time

from directory import Client, digest
from imports import fill, same, state
from servers import Server as Peer

LOGGED = [("appendonly", "yes"), ("appendfsync", "always"), ("auto-aof-rewrite-percentage", "0"),
          ("enable-debug-command", "yes")]
STAMPED = ("aof-timestamp-enabled", "yes")


def change(client):
    """Edits of what is there, of which some are written into the log as other commands."""
    client.pipeline(
        [
            ("INCR", "number"),
            ("INCRBYFLOAT", "float", "0.5"),
            ("APPEND", "edited", " and more"),
            ("SETRANGE", "short", 5, "yz"),
            ("SETEX", "soon", 100_000, "v"),
            ("SET", "later", "v", "EX", 200_000),
            ("GETEX", "later", "PERSIST"),
            ("SPOP", "strings", 7),
            ("LMOVE", "list:300", "moved", "LEFT", "RIGHT"),
            ("LTRIM", "list:300", 5, 250),
            ("HINCRBYFLOAT", "fields", "a", "1.25"),
            ("HDEL", "fields", "empty"),
            ("ZPOPMIN", "scores"),
            ("ZINCRBY", "scores", 2, "zero"),
            ("SORT", "integers", "STORE", "sorted"),
            ("COPY", "set:300", "copied"),
            ("RENAME", "list of binary", "renamed"),
            ("XADD", "stream", "MAXLEN", "~", 900, "*", "name", "new"),
            ("XREADGROUP", "GROUP", "first", "carol", "COUNT", 3, "STREAMS", "stream", ">"),
            ("XTRIM", "stream", "MAXLEN", 800),
            ("DEL", "counter"),
            ("PFADD", "counter", *range(300)),
            ("PEXPIRE", "zset:300", 70_000_000),
            ("PSETEX", "gone", 1, "v"),
            ("MULTI",),
            ("SET", "in transaction", 1),
            ("SELECT", 5),
            ("RPUSH", "other", "a", "b"),
            ("SELECT", 0),
            ("EXEC",),
            ("MOVE", "moved", 6),
            ("SWAPDB", 5, 7),
        ]
    )
    time.sleep(0.01)
    # The key is gone by now, and the log says so before it continues.
    client.call("APPEND", "gone", "new")


def rewrite(client):
    client.call("BGREWRITEAOF")
    while (
        "aof_rewrite_in_progress:1" in (told := client.call("INFO", "persistence")) or "aof_rewrite_scheduled:1" in told
    ):
        time.sleep(0.02)


def write(kind, target, *options):
    """A log with a base and what was changed after it, copied to `target`; and the state it stands for."""
    with Peer(kind, options=[*LOGGED, *options]) as server, Client(server.port) as client:
        fill(client, kind)
        rewrite(client)
        if STAMPED in options:
            # A time is written once a second.
            time.sleep(1.1)
        change(client)
        before = state(client)
        shutil.copytree(server.directory / "appendonlydir", target)
    return before


def taken(tools, log, name, before):
    """Imports a log, serves it and compares; a kill and a start later it is all there."""
    data = tools.scratch / name
    assert "all of it can be imported" in tools.run("import", log, "--dry-run")
    assert not data.exists()
    tools.run("import", log, "--dir", data)
    tools.run("check", data)
    with tools.serve(data.name) as server:
        with Client(server.port) as client:
            same(state(client), before)
        server.kill()
    with tools.serve(data.name) as server, Client(server.port) as client:
        assert digest(client) == before[0]


def several_files(tools, kind, name, *options):
    """The manifest, by the directory and by its own name."""
    log = tools.scratch / f"{name}-log"
    before = write(kind, log, *options)
    taken(tools, log, f"{name}-data", before)
    told = tools.run("import", log / "appendonly.aof.manifest", "--dry-run")
    assert "append-only log: 2 files" in told and ("commands, from 2" in told) == (STAMPED in options), told


def one_file(tools, name, *options):
    """A log as Redis before 7.0 has written it: an RDB part or commands, and commands after it."""
    log, file = tools.scratch / f"{name}-log", tools.scratch / f"{name}.aof"
    before = write("redis", log, *options)
    base, = log.glob("*.base.*")
    increment, = log.glob("*.incr.aof")
    file.write_bytes(base.read_bytes() + increment.read_bytes())
    taken(tools, file, f"{name}-data", before)


def cut(tools, kind):
    """What a crash has left of the last command, or of a transaction, is dropped, as the server itself drops it."""
    log = tools.scratch / f"cut-{kind}-log"
    with Peer(kind, options=LOGGED) as server, Client(server.port) as client:
        client.call("SET", "first", 1)
        client.call("RPUSH", "list", "a", "b")
        client.pipeline([("MULTI",), ("SET", "second", 2), ("DEL", "first"), ("EXEC",)])
        shutil.copytree(server.directory / "appendonlydir", log)
    increment, = log.glob("*.incr.aof")
    whole = increment.read_bytes()
    for length in (
        len(whole) - 1,
        len(whole) - 14,
        whole.index(b"second"),
        whole.index(b"list") + 2,
        whole.index(b"SET") + 1,
    ):
        increment.write_bytes(whole[:length])
        data = tools.scratch / f"cut-{kind}-{length}"
        told = tools.run("import", log, "--dir", data)
        assert "not written to its end" in told, told
        # A server that loads it makes the file shorter, and a new increment.
        theirs = tools.scratch / f"cut-{kind}-{length}-theirs"
        shutil.copytree(log, theirs / "appendonlydir")
        with Peer(kind, options=[*LOGGED, ("dir", theirs)]) as server, Client(server.port) as client:
            while "loading:1" in client.call("INFO", "persistence"):
                time.sleep(0.02)
            expected = digest(client)
        with tools.serve(data.name) as server, Client(server.port) as client:
            assert digest(client) == expected, f"cut at {length} of {len(whole)}"


def damaged(tools):
    """A wrong byte is reported with its offset; a file of a log that is cut and has others after it is refused;
    nothing is written."""
    log, data = tools.scratch / "damaged-log", tools.scratch / "damaged-log-data"
    shutil.copytree(tools.scratch / "aof-log", log)
    increment, = log.glob("*.incr.aof")
    whole = increment.read_bytes()
    middle = whole.index(b"\r\n$", len(whole) // 2) + 2
    increment.write_bytes(whole[:middle] + b"%" + whole[middle + 1:])
    told = tools.run("import", log, "--dir", data, status=1)
    assert f"offset {middle}: expected the length of a word" in told and str(increment) in told, told
    increment.write_bytes(whole)
    base, = log.glob("*.base.aof")
    base.write_bytes(base.read_bytes()[:-3])
    told = tools.run("import", log, "--dir", data, status=1)
    assert "only the last file of a log may" in told and str(base) in told, told
    base.unlink()
    tools.run("import", log, "--dir", data, status=2)
    (log / "appendonly.aof.manifest").write_text("file a seq 1\n")
    assert "line 1" in tools.run("import", log, "--dir", data, status=1)
    assert not data.exists() or not any(data.iterdir())


def functions(tools):
    """Libraries of functions in the commands of a log are imported."""
    log, data = tools.scratch / "functions-log", tools.scratch / "functions-data"
    with Peer("redis", options=LOGGED) as server, Client(server.port) as client:
        client.call("SET", "key", "value")
        for name in ("mine", "other"):
            code = f"redis.register_function('{name}', function() return 1 end)"
            client.call("FUNCTION", "LOAD", f"#!lua name={name}\n{code}")
        client.call("FUNCTION", "DELETE", "other")
        shutil.copytree(server.directory / "appendonlydir", log)
    told = tools.run("import", log, "--dir", data)
    assert "1 library of functions: mine" in told, told
    with tools.serve(data.name) as server, Client(server.port) as client:
        assert client.call("GET", "key") == "value"
        assert client.call("FCALL", "mine", "0") == 1
        assert len(client.call("FUNCTION", "LIST")) == 1


def run(tools):
    tools.check("a log of Redis 7.0 is imported whole", lambda: several_files(tools, "redis", "redis-aof", STAMPED))
    tools.check("a log of Valkey 9.1 is imported whole", lambda: several_files(tools, "valkey", "valkey-aof", STAMPED))
    tools.check("a log without an RDB part is imported whole",
                lambda: several_files(tools, "redis", "aof", ("aof-use-rdb-preamble", "no")))
    tools.check("a log of Valkey 9.1 without an RDB part is imported whole",
                lambda: several_files(tools, "valkey", "valkey-plain", ("aof-use-rdb-preamble", "no")))
    tools.check("a log in one file is imported whole", lambda: one_file(tools, "one"))
    tools.check("a log in one file without an RDB part is imported whole",
                lambda: one_file(tools, "one-plain", ("aof-use-rdb-preamble", "no"), STAMPED))
    for kind in ("redis", "valkey"):
        tools.check(
            f"a log of {kind} that was cut is imported as far as the server loads it",
            lambda kind=kind: cut(tools, kind),
        )
    tools.check("a damaged log is refused", lambda: damaged(tools))
    tools.check("libraries of functions in a log are imported", lambda: functions(tools))
