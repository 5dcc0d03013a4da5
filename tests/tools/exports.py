"""What Onggi has becomes an RDB file, which Redis and Valkey load: they have the same then."""

import shutil
import time

from directory import Client, ErrorReply, digest
from imports import fill, same, state
from servers import Server as Peer
from servers import others

# What an export says of the servers that load its file.
READERS = {
    "redis-7.0": "Redis 7.0 and later, and Valkey, load it",
    "redis-7.2": "Redis 7.2 and later, and Valkey, load it",
    "valkey-9": "Valkey 9.0 and later load it",
}


def killed(tools, name, content, *options):
    """A directory that a killed server leaves: a checkpoint and a log after it, and the state that it had."""
    with tools.serve(name, *options) as server:
        with Client(server.port) as client:
            fill(client, content)
            client.call("SAVE")
            client.pipeline(
                [
                    ("APPEND", "text", "more"),
                    ("LPUSH", "list:20000", "first"),
                    ("DEL", "huge"),
                    ("HSET", "hash:300", "field 2", "other"),
                    ("SWAPDB", 0, 3),
                    ("XADD", "stream", "5000-0", "a", "b"),
                ]
            )
            client.call("WAITAOF", 1, 0, 10_000)
            before = state(client)
        server.kill()
    return before


def loaded(kind, file):
    """The state of such a server once it has loaded the file."""
    with Peer(kind, options=[("enable-debug-command", "yes")]) as server, Client(server.port) as client:
        shutil.copy(file, server.directory / "dump.rdb")
        assert client.call("DEBUG", "RELOAD", "NOSAVE") == "OK"
        return state(client)


def export_of(tools, name, kind, target, *options):
    """A killed server's data is exported, loaded by the other server, and imported again."""
    data = tools.scratch / name
    # The other targets cannot say that fields expire.
    before = killed(tools, name, "valkey" if target == "valkey-9" else "redis", *options)
    file = tools.scratch / f"{name}.rdb"
    told = tools.run("export", "--dir", data, file, "--for", target)
    assert READERS[target] in told, told
    same(loaded(kind, file), before)
    again = tools.scratch / f"{name}-again"
    tools.run("import", file, "--dir", again)
    with tools.serve(again.name) as server, Client(server.port) as client:
        same(state(client), before)
    assert "is there already" in tools.run("export", "--dir", data, file, status=2)
    with tools.serve(name, *options) as server, Client(server.port) as client:
        assert digest(client) == before[0], "the export has changed the directory"
        assert "in use by" in tools.run("export", "--dir", data, tools.scratch / "no.rdb", status=2)
    assert not (tools.scratch / "no.rdb").exists()


def fields_that_expire(tools):
    """They are refused for servers that know no such thing, by the name of the hash, and leave no file."""
    data, file = tools.scratch / "fields", tools.scratch / "fields.rdb"
    with tools.serve(data.name) as server, Client(server.port) as client:
        client.call("HSET", "hash", "field", "value", "other", "value")
        client.call("HEXPIRE", "hash", 1000, "FIELDS", 1, "field")
        server.shut_down()
    told = tools.run("export", "--dir", data, file, status=2)
    assert '"hash"' in told and "--for valkey-9" in told, told
    assert not list(tools.scratch.glob("fields.rdb*"))
    assert "Valkey 9.0 and later load it" in tools.run("export", "--dir", data, file, "--for", "valkey-9")
    assert "no data" in tools.run("export", "--dir", tools.scratch, tools.scratch / "none.rdb", status=2)


def info(client):
    """INFO persistence as a dictionary."""
    return dict(line.split(":", 1) for line in client.call("INFO", "persistence").split("\r\n") if ":" in line)


def save_rdb(client, *words):
    """Has the server make an RDB file; gives what INFO says when it is over."""
    assert client.call("BGSAVE", "RDB", *words) == "Background saving started"
    deadline = time.monotonic() + 60
    while (found := info(client))["rdb_bgsave_in_progress"] == "1":
        assert time.monotonic() < deadline, "BGSAVE RDB does not end"
        time.sleep(0.02)
    return found


def saved_by_server(tools, name, kind, version, *options):
    """A running server makes a file of what it has, twice; the second one is loaded by the other server."""
    with tools.serve(name, *options) as server, Client(server.port) as client:
        fill(client, "valkey" if version == 80 else "redis")
        words = () if version == 11 else ("VERSION", version)
        save_rdb(client, *words)
        client.pipeline(
            [("APPEND", "text", "more"), ("LPUSH", "list:20000", "first"), ("DEL", "huge"), ("SWAPDB", 0, 3)]
        )
        before = state(client)
        found = save_rdb(client, *words)
        assert (found["rdb_file_saves"], found["rdb_file_last_status"]) == ("2", "ok"), found
        file = tools.scratch / name / "dump.rdb"
        assert file.stat().st_size == int(found["rdb_file_last_size"])
        same(loaded(kind, file), before)
        assert not file.with_name("dump.rdb.new").exists()
        server.shut_down()
    tools.run("check", tools.scratch / name)


LIBRARIES = [
    "#!lua name=shop\nredis.register_function('sell', function(keys, args) "
    "return redis.call('DECRBY', keys[1], args[1]) end)",
    "#!lua name=look\nredis.register_function{function_name='see', callback=function(keys) "
    "return redis.call('GET', keys[1]) end, description='reads', flags={'no-writes'}}",
]


def codes(client):
    """The texts of all libraries of functions."""
    return sorted(library[library.index("library_code") + 1] for library in client.call("FUNCTION", "LIST", "WITHCODE"))


def libraries(tools, kind, version, target):
    """Libraries of functions go to the other server by BGSAVE RDB and by an export, and come back by an import."""
    name = f"libraries-{kind}"
    data, exported, back = tools.scratch / name, tools.scratch / f"{name}.rdb", tools.scratch / f"{name}-back.rdb"
    with tools.serve(name) as server, Client(server.port) as client:
        client.pipeline([("FUNCTION", "LOAD", text) for text in LIBRARIES])
        client.call("SET", "stock", 100)
        save_rdb(client, "VERSION", version)
        server.shut_down()
    tools.run("export", "--dir", data, exported, "--for", target)
    for file in (data / "dump.rdb", exported):
        with Peer(kind, options=[("enable-debug-command", "yes")]) as server, Client(server.port) as client:
            shutil.copy(file, server.directory / "dump.rdb")
            assert client.call("DEBUG", "RELOAD", "NOSAVE") == "OK"
            assert codes(client) == sorted(LIBRARIES), codes(client)
            assert client.call("FCALL", "sell", 1, "stock", 5) == 95
            client.call("SAVE")
            shutil.copy(server.directory / "dump.rdb", back)
    told = tools.run("import", back, "--dir", tools.scratch / f"{name}-again")
    assert "2 libraries of functions: look, shop" in told, told
    with tools.serve(f"{name}-again") as server, Client(server.port) as client:
        assert codes(client) == sorted(LIBRARIES), codes(client)
        assert client.call("FCALL_RO", "see", 1, "stock") == "95"


def not_saved_by_server(tools):
    """What a version cannot say is named; the file before stays, and the checkpoint counts, so that writes work."""
    with tools.serve("unsaved", "--dbfilename", "other.rdb") as server, Client(server.port) as client:
        client.call("SET", "key", "value")
        save_rdb(client)
        file = tools.scratch / "unsaved" / "other.rdb"
        first = file.read_bytes()
        client.call("HSET", "hash", "field", "value", "other", "value")
        client.call("HEXPIRE", "hash", 1000, "FIELDS", 1, "field")
        found = save_rdb(client)
        assert (found["rdb_file_last_status"], found["rdb_last_bgsave_status"]) == ("err", "ok"), found
        assert '"hash"' in found["rdb_file_last_error"], found
        assert file.read_bytes() == first
        assert client.call("SET", "key", "later") == "OK"
        for words in (("VERSION", 12), ("VERSION", "x"), ("VERSION",), ("NOW",)):
            try:
                client.call("BGSAVE", "RDB", *words)
            except ErrorReply as refused:
                assert str(refused).startswith("ERR"), refused
            else:
                raise AssertionError(f"BGSAVE RDB {words} is taken")
        assert save_rdb(client, "VERSION", 80)["rdb_file_last_status"] == "ok"
        server.shut_down()
    for name in ("prdb-00000001-00", "MANIFEST", "../dump.rdb", "a/b"):
        told = tools.run("serve", "--dir", tools.scratch / "unsaved", "--port", 1, "--dbfilename", name, status=1)
        assert "dbfilename" in told, told


def run(tools):
    tools.check("Redis 7.0 loads an export", lambda: export_of(tools, "to-redis", "redis", "redis-7.0"))
    tools.check("Redis 7.0 loads an export of compressed strings",
                lambda: export_of(tools, "to-redis-lzf", "redis", "redis-7.0", "--compression", "lzf",
                                  "--compression-when", "write"))
    tools.check("Valkey 9.1 loads an export in version 11",
                lambda: export_of(tools, "to-valkey-11", "valkey", "redis-7.2"))
    tools.check(
        "Valkey 9.1 loads an export with fields that expire",
        lambda: export_of(
            tools, "to-valkey", "valkey", "valkey-9", "--compression", "zstd", "--compression-when", "write"
        ),
    )
    tools.check("Redis 7.0 loads what BGSAVE RDB makes", lambda: saved_by_server(tools, "saved", "redis", 10))
    tools.check(
        "Valkey 9.1 loads what BGSAVE RDB makes of compressed values",
        lambda: saved_by_server(
            tools, "saved-zstd", "valkey", 11, "--compression", "zstd", "--compression-when", "write"
        ),
    )
    tools.check(
        "Valkey 9.1 loads fields that expire from BGSAVE RDB",
        lambda: saved_by_server(tools, "saved-fields", "valkey", 80),
    )
    for kind, title in others():
        tools.check(
            f"{title} loads an export in version 11",
            lambda kind=kind: export_of(
                tools, f"to-{kind}", kind, "redis-7.2", "--compression", "lzf", "--compression-when", "write"
            ),
        )
        tools.check(
            f"{title} loads what BGSAVE RDB makes", lambda kind=kind: saved_by_server(tools, f"saved-{kind}", kind, 11)
        )
    for kind, title, version, target in (
        ("redis", "Redis 7.0", 10, "redis-7.0"),
        ("valkey", "Valkey 9.1", 80, "valkey-9"),
    ):
        tools.check(f"{title} loads libraries of functions, and gives them back",
                    lambda kind=kind, version=version, target=target: libraries(tools, kind, version, target))
    tools.check("BGSAVE RDB that cannot be made loses nothing", lambda: not_saved_by_server(tools))
    tools.check("fields that expire are exported to who knows them", lambda: fields_that_expire(tools))
