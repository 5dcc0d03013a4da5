"""What Onggi has becomes an RDB file, which Redis and Valkey load: they have the same then."""

import shutil

from directory import Client, digest
from imports import fill, same, state
from servers import Server as Peer


def killed(tools, name, content, *options):
    """A directory that a killed server leaves: a checkpoint and a log after it, and the state that it had."""
    with tools.serve(name, *options) as server:
        with Client(server.port) as client:
            fill(client, content)
            client.call("SAVE")
            client.pipeline([("APPEND", "text", "more"), ("LPUSH", "list:20000", "first"), ("DEL", "huge"),
                             ("HSET", "hash:300", "field 2", "other"), ("SWAPDB", 0, 3), ("XADD", "stream", "5000-0", "a", "b")])
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
    tools.run("export", "--dir", data, file, "--for", target)
    same(loaded(kind, file), before)
    again = tools.scratch / f"{name}-again"
    tools.run("import", file, "--dir", again)
    with tools.serve(again.name) as server, Client(server.port) as client:
        same(state(client), before)
    assert "is there already" in tools.run("export", "--dir", data, file, status=2)
    with tools.serve(name) as server, Client(server.port) as client:
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
    tools.run("export", "--dir", data, file, "--for", "valkey-9")
    assert "no data" in tools.run("export", "--dir", tools.scratch, tools.scratch / "none.rdb", status=2)


def run(tools):
    tools.check("Redis 7.0 loads an export", lambda: export_of(tools, "to-redis", "redis", "redis-7.0"))
    tools.check("Redis 7.0 loads an export of compressed strings",
                lambda: export_of(tools, "to-redis-lzf", "redis", "redis-7.0", "--compression", "lzf",
                                  "--compression-when", "write"))
    tools.check("Valkey 9.1 loads an export in version 11",
                lambda: export_of(tools, "to-valkey-11", "valkey", "redis-7.2"))
    tools.check("Valkey 9.1 loads an export with fields that expire", lambda: export_of(tools, "to-valkey", "valkey", "valkey-9", "--compression",
                                                                "zstd", "--compression-when", "write"))
    tools.check("fields that expire are exported to who knows them", lambda: fields_that_expire(tools))
