"""Dumps of real servers become data directories: Onggi starts with them and has what the other server had."""

import os
import shutil
import subprocess
import time

from directory import Client, digest
from servers import Server as Peer
from servers import others

DATABASES = (0, 3, 9)

# What waits for the disk at most, keys that are compared, and the program.
MEMORY_MAX = 160 << 20


def fill(client, kind):
    """Every type, small and big, in every encoding that the server has; expirations; several databases."""
    binary = bytes(range(256)) * 40
    for db in DATABASES:
        client.call("SELECT", db)
        client.pipeline([
            ("SET", "empty", ""), ("SET", "number", 12345), ("SET", "negative", -9223372036854775808),
            ("SET", b"binary \xff\x00", binary), ("SET", "text", "some words, " * 3000), ("SET", "short", "x" * 21),
            ("SET", "huge", "0123456789abcdef" * 200_000), ("SET", "expires", "v", "PX", 90_000_000 + db),
            ("APPEND", "edited", "raw"), ("SETBIT", "bits", 100_000, 1), ("PFADD", "counter", *range(1000)),
            ("SADD", "integers", *range(-300, 100)), ("SADD", "strings", *(f"member {n}" for n in range(60))),
            ("RPUSH", "list of binary", binary, "", binary[:300], -5, 2**40),
            ("RPUSH", "list of long", "y" * 100_000, "short", "z" * 9000),
            ("ZADD", "scores", "-inf", "low", "inf", "high", 0.125, "eighth", -3, "minus", 0, "zero"),
            ("HSET", "fields", "a", 1, b"\xfe", binary, "", "empty"), ("EXPIRE", "fields", 100_000),
            ("GEOADD", "places", 13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania"),
        ])
        for count in (300, 20_000):
            some = range(count)
            client.call("RPUSH", f"list:{count}", *some)
            client.call("SADD", f"set:{count}", *(f"member {n}" for n in some))
            client.call("HSET", f"hash:{count}", *(word for n in some for word in (f"field {n}", n)))
            client.call("ZADD", f"zset:{count}", *(word for n in some for word in (n / 8, f"member {n}")))
        streams(client)
        if kind in ("valkey", "redis-8"):
            # Redis 7.0 writes such scores in other words into its digest.
            client.call("ZADD", "decimals", 0.1, "tenth", 1e300, "far", 2 / 3, "thirds")
        if kind == "valkey":
            # The digest of Redis 8 has a mark of its own for such fields.
            client.call("HPEXPIRE", "hash:300", 80_000_000, "FIELDS", 2, "field 1", "field 299")
            client.call("HEXPIRE", "hash:20000", 80_000, "FIELDS", 1, "field 7")
    client.call("SELECT", 0)


def streams(client):
    """One with entries of the same and of other fields, deleted ones, groups and what is pending; one without
    entries."""
    client.pipeline([("XADD", "stream", f"{n + 1}-{n % 3}", "name", n, *(("more", "x") if n % 5 == 0 else ()))
                     for n in range(1000)])
    client.pipeline([
        ("XDEL", "stream", "5-1", "700-0"), ("XGROUP", "CREATE", "stream", "first", 0),
        ("XGROUP", "CREATE", "stream", "second", "$"), ("XGROUP", "CREATECONSUMER", "stream", "second", "idle"),
        ("XREADGROUP", "GROUP", "first", "alice", "COUNT", 10, "STREAMS", "stream", ">"),
        ("XREADGROUP", "GROUP", "first", "bob", "COUNT", 5, "STREAMS", "stream", ">"),
        ("XACK", "stream", "first", "2-1"), ("XGROUP", "CREATE", "bare", "group", "$", "MKSTREAM"),
    ])


def state(client):
    """What two servers must agree about."""
    found = [digest(client)]
    for db in DATABASES:
        client.call("SELECT", db)
        found.append(
            (
                client.call("DBSIZE"),
                client.call("PEXPIRETIME", "expires"),
                client.call("PEXPIRETIME", "fields"),
                client.call("XPENDING", "stream", "first"),
                client.call("XINFO", "GROUPS", "stream"),
                client.call("OBJECT", "ENCODING", "integers"),
                client.call("OBJECT", "ENCODING", "set:20000"),
            )
        )
    client.call("SELECT", 0)
    return found


def dump(kind, target, *options):
    """A file that such a server has written, at `target`, and the state that it holds."""
    debug = ("enable-debug-command", "yes")
    with Peer(kind, options=[debug, *options]) as server, Client(server.port) as client:
        fill(client, kind)
        before = state(client)
        # These are in the file, and no import takes them.
        client.call("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        client.pipeline([("PSETEX", f"gone:{n}", 1, "v") for n in range(7)])
        client.call("SAVE")
        shutil.copy(server.directory / "dump.rdb", target)
    time.sleep(0.01)
    return before


def same(left, right):
    """Fails at the first part in which two states differ."""
    for ours, theirs in zip(left, right, strict=True):
        assert ours == theirs, f"{ours} instead of {theirs}"


def import_of(tools, kind, name, *options):
    """A dump is examined, imported and served; after more writes and a kill it is still there."""
    file, data = tools.scratch / f"{name}.rdb", tools.scratch / f"{name}-data"
    before = dump(kind, file, *options)
    told = tools.run("import", file, "--dry-run")
    assert "7 keys are dropped" in told and "all of it can be imported" in told, told
    assert not data.exists()
    tools.run("import", file, "--dir", data)
    tools.run("check", data)
    with tools.serve(data.name) as server:
        with Client(server.port) as client:
            same(state(client), before)
            client.call("SET", "later", "value")
            client.call("LPUSH", "list:20000", "later")
            client.call("HSET", "hash:300", "later", "value")
            client.call("BGSAVE", "SCHEDULE")
            while "rdb_bgsave_in_progress:1" in client.call("INFO", "persistence"):
                time.sleep(0.02)
            after = digest(client)
        server.kill()
    with tools.serve(data.name) as server, Client(server.port) as client:
        assert digest(client) == after
    assert "has files already" in tools.run("import", file, "--dir", data, status=2)


def compressed(tools):
    """Strings that are compressed in the file are compressed in the server, without any work."""
    file, data = tools.scratch / "compressed.rdb", tools.scratch / "compressed-data"
    with Peer("redis") as server, Client(server.port) as client:
        client.pipeline([("SET", f"key:{n}", f"a text of number {n}, " * 20) for n in range(500)])
        client.call("SAVE")
        shutil.copy(server.directory / "dump.rdb", file)
    assert "500 strings are compressed" in tools.run("import", file, "--dir", data)
    with tools.serve(data.name, "--compression", "lzf") as server, Client(server.port) as client:
        info = dict(line.split(":", 1) for line in client.call("INFO", "compression").splitlines() if ":" in line)
        assert info["compression_values"] == "500" and info["compression_compressed_by_writes"] == "0", info
        assert client.call("GET", "key:77") == "a text of number 77, " * 20


def fields_that_expire(tools):
    """Fields keep their times, in hashes of both forms, from a server whose digest has something of its own for
    them."""
    file, data = tools.scratch / "times.rdb", tools.scratch / "times"

    def times(client):
        return [
            (client.call("HPEXPIRETIME", name, "FIELDS", 3, "1", "2", "3"), sorted(client.call("HGETALL", name)))
            for name in ("few", "many")
        ]

    with Peer("redis-8") as server, Client(server.port) as client:
        for name, count in (("few", 5), ("many", 5000)):
            client.call("HSET", name, *(word for n in range(count) for word in (n, f"value {n}")))
            client.call("HPEXPIRE", name, 80_000_000, "FIELDS", 1, "1")
            client.call("HEXPIRE", name, 90_000, "FIELDS", 1, "3")
        before = times(client)
        client.call("SAVE")
        shutil.copy(server.directory / "dump.rdb", file)
    tools.run("import", file, "--dir", data)
    with tools.serve(data.name) as server, Client(server.port) as client:
        assert times(client) == before, f"{times(client)} instead of {before}"
        assert before[0][0][0] > 0 and before[0][0][1] == -1, before


def damaged(tools):
    """A file that is cut or changed is refused with its offset, and no server finds data in the directory."""
    whole = (tools.scratch / "redis.rdb").read_bytes()
    file, data = tools.scratch / "damaged.rdb", tools.scratch / "damaged-data"
    middle = len(whole) // 2
    changed = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1:]
    for content in (whole[:middle], changed, whole[:-1], b"", b"REDIS0099" + whole[9:]):
        file.write_bytes(content)
        told = tools.run("import", file, "--dir", data, status=1)
        assert str(file) in told and ("offset" in told or "version 99" in told), told
        assert not data.exists() or not any(data.iterdir()), list(data.iterdir())


def memory(tools):
    """An import takes far less memory than its file is long; more keys than are compared in memory, and a key that is
    big."""
    file, data = tools.scratch / "long.rdb", tools.scratch / "long-data"
    options = [("enable-debug-command", "yes"), ("rdbcompression", "no")]
    with Peer("redis", options=options) as server, Client(server.port) as client:
        client.call("DEBUG", "POPULATE", 2_200_000, "key", 150)
        client.call("RPUSH", "list", *range(100_000))
        client.call("SAVE")
        shutil.copy(server.directory / "dump.rdb", file)
    argv = [tools.onggi, "import", str(file), "--dir", str(data)]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"the import ended with status {process.returncode}"
    peak, length = usage.ru_maxrss * 1024, file.stat().st_size
    assert length > 300 << 20 and peak < MEMORY_MAX, f"{peak >> 20} MiB of memory for a file of {length >> 20} MiB"
    tools.run("check", data)
    shutil.rmtree(data)
    file.unlink()


def run(tools):
    tools.check("a dump of Redis 7.0 is imported whole", lambda: import_of(tools, "redis", "redis"))
    tools.check("a dump of Redis 7.0 without compression and checksum is imported whole",
                lambda: import_of(tools, "redis", "bare", ("rdbcompression", "no"), ("rdbchecksum", "no")))
    tools.check("a dump of Valkey 9.1 is imported whole", lambda: import_of(tools, "valkey", "valkey"))
    for kind, title in others():
        tools.check(f"a dump of {title} is imported whole", lambda kind=kind: import_of(tools, kind, kind))
    if any(kind == "redis-8" for kind, _ in others()):
        tools.check("fields of a dump of Redis 8 keep their times", lambda: fields_that_expire(tools))
    tools.check("compressed strings are imported as they are", lambda: compressed(tools))
    tools.check("a long dump is imported in little memory", lambda: memory(tools))
    tools.check("a damaged dump is refused", lambda: damaged(tools))
