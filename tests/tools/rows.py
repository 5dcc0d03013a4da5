"""A server with databases on disk: backup, a moment before a FLUSHALL, check, repair, export and BGSAVE RDB."""

import shutil
import time

from directory import Client, digest
from exports import export_of, save_rdb
from servers import Server as Peer

KEYS = 20_000
OPTIONS = ("--database", "0 engine disk", "--maxmemory", "32mb", "--workers", "1", "--appendfsync", "always")
# What is swapped has one engine.
BOTH = ("--database", "0 engine disk", "--database", "3 engine disk")


def value(number):
    return f"{number * 7919:012d}" * 60


def fill(client):
    for start in range(0, KEYS, 100):
        client.pipeline([("SET", f"key:{n}", value(n)) for n in range(start, start + 100)])
    client.pipeline([("HSET", f"hash:{n}", "field", n, "other", n) for n in range(500)])
    client.pipeline([("SELECT", 1), ("SET", "in memory", "yes"), ("SELECT", 0)])


def disk(client):
    lines = client.call("INFO", "disk").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def run(t):
    data, copy, undone = t.scratch / "rows", t.scratch / "rows-copy", t.scratch / "rows-undone"
    states = {}

    def kept():
        with t.serve("rows", *OPTIONS) as server, Client(server.port) as client:
            at = f"127.0.0.1:{server.port}"
            fill(client)
            assert int(disk(client)["disk_flushes"]) > 0, disk(client)
            client.call("SAVE")
            client.call("SET", "after", "the checkpoint")
            states["before"] = digest(client)
            told = t.run("backup", "--from", at, "--into", copy)
            assert f"linked {copy}/lsm-00000001: " in told, told
            bytes_before = int(disk(client)["disk_table_bytes"])
            client.call("FLUSHALL")
            client.call("SAVE")
            # Marks give the log its times.
            time.sleep(1.1)
            client.call("SET", "later", "value")
            told = t.run("restore", "--from", at, "--time", "before-last-flush", "--into", undone)
            assert "lsm-00000001: " in told, told
            client.call("DEBUG", "DISK", "FLUSH")
            deadline = time.monotonic() + 60
            while int(disk(client)["disk_table_bytes"]) > bytes_before / 2:
                assert time.monotonic() < deadline, "the tables of what FLUSHALL has removed stay"
                time.sleep(0.05)
            client.call("SAVE")
            assert int(disk(client)["disk_retained_bytes"]) > 0, "checkpoints keep what FLUSHALL has removed"
            server.shut_down()
        told = t.run("check", data)
        assert "good     lsm-00000001: " in told and "good     lsm: " in told and "DAMAGED" not in told, told
        for name in ("rows-copy", "rows-undone"):
            t.run("check", t.scratch / name)
            with t.serve(name, *OPTIONS) as server, Client(server.port) as client:
                assert digest(client) == states["before"], f"{name} differs"
                assert client.call("GET", "after") == "the checkpoint"
                client.call("SELECT", 1)
                assert client.call("GET", "in memory") == "yes"
                server.shut_down()

    def damaged():
        manifest = next(path for path in (copy / "lsm").glob("MANIFEST-*"))
        whole = manifest.read_bytes()
        manifest.write_bytes(whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
        assert "DAMAGED" in t.run("check", copy, status=1)
        told = t.run("repair", "--yes", copy)
        assert "lsm" in told, told
        t.run("check", copy)
        with t.serve("rows-copy", *OPTIONS) as server, Client(server.port) as client:
            assert digest(client) == states["before"], "the repair has lost something"

    def saved():
        with t.serve("rows-undone", *OPTIONS) as server, Client(server.port) as client:
            found = save_rdb(client, "VERSION", 10)
            file = {name: found[name] for name in ("rdb_file_last_status", "rdb_file_last_error", "rdb_file_last_keys")}
            assert file["rdb_file_last_status"] == "ok", file
            # Hashes, the key after the checkpoint, and one in memory.
            keys = KEYS + 500 + 1
            assert int(file["rdb_file_last_keys"]) == keys + 1, (file, keys)
            some = client.call("GET", f"key:{KEYS - 1}")
        with Peer("redis", options=[("enable-debug-command", "yes")]) as server, Client(server.port) as client:
            shutil.copy(undone / "dump.rdb", server.directory / "dump.rdb")
            assert client.call("DEBUG", "RELOAD", "NOSAVE") == "OK"
            assert (client.call("DBSIZE"), client.call("GET", f"key:{KEYS - 1}")) == (keys, some)
            assert digest(client) == states["before"]

    t.check("backup, and a restore to before a FLUSHALL, of databases on disk", kept)
    t.check("repair takes rows on disk from the copy of a checkpoint", damaged)
    t.check("Redis 7.0 loads what BGSAVE RDB makes of databases on disk", saved)
    t.check("Redis 7.0 loads an export of databases on disk",
            lambda: export_of(t, "rows-to-redis", "redis", "redis-7.0", *BOTH))
