"""Damage to the only checkpoint of a directory whose log began on top of it: `repair` never empties it, and keeps what
is whole."""

import re
import shutil

from directory import Client, digest, load

KEYS = 20_000


def flipped(directory):
    """Changes one byte in the middle of the biggest snapshot file."""
    snapshot = max(directory.glob("prdb-*"), key=lambda path: path.stat().st_size)
    data = bytearray(snapshot.read_bytes())
    data[len(data) // 2] ^= 0xFF
    # A backup links the same file.
    snapshot.unlink()
    snapshot.write_bytes(data)


def run(t):
    keys = {}

    def source(name, server):
        with Client(server.port) as client:
            keys[name] = (client.call("DBSIZE"), digest(client))

    with t.serve("repair-live", "--appendonly", "no") as server, Client(server.port) as client:
        load(client, KEYS)
        client.call("CONFIG", "SET", "appendonly", "yes")
        while "aof_enabled:1" not in client.call("INFO", "persistence"):
            pass
        t.run("backup", "--from", f"127.0.0.1:{server.port}", "--into", t.scratch / "repair-backup")
        source("repair-live", server)
        keys["repair-backup"] = keys["repair-live"]
        server.shut_down()
    t.run("export", "--dir", t.scratch / "repair-backup", t.scratch / "repair.rdb")
    t.run("import", t.scratch / "repair.rdb", "--dir", t.scratch / "repair-import")
    keys["repair-import"] = keys["repair-live"]

    def damaged(name):
        count, before = keys[name]
        t.run("check", t.scratch / name)
        whole = t.scratch / f"{name}-whole"
        shutil.copytree(t.scratch / name, whole)
        flipped(t.scratch / name)
        said = t.run("check", t.scratch / name, status=1)
        assert "onggi repair" in said, said
        refused = t.run("repair", "--yes", t.scratch / name, statuses=(0, 2))
        if "nothing is lost" in refused:
            with t.serve(name) as server, Client(server.port) as client:
                assert digest(client) == before, refused
            return
        assert "--salvage" in refused and f"of {count} keys" in refused, refused
        said = t.run("repair", "--salvage", "--yes", t.scratch / name)
        kept, lost = (int(re.search(rf"{line} .*?(\d+) of {count} keys", said)[1]) for line in ("kept", "LOST"))
        assert kept + lost == count and lost < count // 2, said
        with t.serve(name) as server, Client(server.port) as client:
            assert client.call("DBSIZE") == kept, said
            some = [client.call("GET", f"string:{n}") for n in range(0, KEYS, 7)]
            assert all(value in (None, f"value {n * 7}") for n, value in enumerate(some)), "a wrong value"

    def a_start_names_the_remedy():
        shutil.copytree(t.scratch / "repair-import-whole", t.scratch / "repair-start")
        flipped(t.scratch / "repair-start")
        try:
            with t.serve("repair-start"):
                raise AssertionError("a server starts on damaged data")
        except AssertionError as refusal:
            assert "does not start" in str(refusal), refusal
        assert "onggi repair" in (t.scratch / "repair-start.output").read_text(), "no remedy is named"

    for name in ("repair-live", "repair-backup", "repair-import"):
        t.check(f"one byte of the only checkpoint is damaged: {name}", lambda name=name: damaged(name))
    t.check("a start on damaged data names the remedy", a_start_names_the_remedy)
