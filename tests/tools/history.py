"""Back to an earlier moment, what the files show, and what becomes of damaged ones."""

import json
import shutil
import time

from directory import Client, digest, load


def run(t):
    with t.serve("history", "--appendfsync", "always") as server, Client(server.port) as client:
        load(client, 2_000)
        before = digest(client)
        # Records are dated by marks: at least one a second while there are writes.
        time.sleep(1.5)
        client.call("SET", "between", 1)
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time()))
        time.sleep(1.5)
        client.call("FLUSHALL")
        client.call("SET", "after", 1)
        time.sleep(1.2)
        client.call("SET", "later", 1)
        server.shut_down()

    def back_before_a_flush():
        t.run("restore", "--from", t.scratch / "history", "--to", moment, "--into", t.scratch / "restored")
        t.run("check", t.scratch / "restored")
        with t.serve("restored") as server, Client(server.port) as client:
            client.call("DEL", "between")
            assert digest(client) == before, "the restored data differ"

    def everything_is_shown():
        shown = 0
        for path in sorted((t.scratch / "history").iterdir()):
            if path.name.startswith(("log-", "prdb-", "MANIFEST")):
                lines = t.run("inspect", "--json", path).splitlines()
                shown += sum("item" in json.loads(line) for line in lines)
        assert shown > 2_000, f"only {shown} items are shown"

    def damage_is_named_and_repaired():
        damaged = t.scratch / "damaged"
        with t.serve("damaged", "--appendfsync", "always") as server, Client(server.port) as client:
            load(client, 2_000)
        log = max(damaged.glob("log-*"), key=lambda path: path.stat().st_size)
        data = bytearray(log.read_bytes())
        place = data.index(b"value 1500")
        data[place] ^= 0xFF
        log.write_bytes(data)
        assert "DAMAGED" in t.run("check", damaged, status=1)
        try:
            with t.serve("damaged"):
                raise AssertionError("a server starts on damaged data")
        except AssertionError as refusal:
            assert "does not start" in str(refusal), refusal
        t.run("repair", "--yes", damaged)
        t.run("check", damaged)
        with t.serve("damaged") as server, Client(server.port) as client:
            kept = client.call("DBSIZE")
            assert 1 <= kept <= 1_500, f"{kept} keys are kept"
            assert client.call("GET", "string:0") == "value 0"

    def a_damaged_checkpoint_loses_nothing():
        damaged = t.scratch / "damaged-set"
        shutil.copytree(t.scratch / "history", damaged)
        snapshot = max(damaged.glob("prdb-*"), key=lambda path: path.stat().st_size)
        data = bytearray(snapshot.read_bytes())
        data[len(data) // 2] ^= 0xFF
        snapshot.write_bytes(data)
        assert "DAMAGED" in t.run("check", damaged, status=1)
        t.run("repair", "--yes", damaged)
        with t.serve("damaged-set") as server, Client(server.port) as client:
            assert client.call("MGET", "after", "later") == ["1", "1"]

    t.check("restore to a moment before a FLUSHALL", back_before_a_flush)
    t.check("inspect shows every file as JSON", everything_is_shown)
    t.check("damage before the last mark: named, refused, repaired", damage_is_named_and_repaired)
    t.check("a damaged checkpoint is made up for by the log", a_damaged_checkpoint_loses_nothing)
