"""A server as the replica of running servers: under load, with a link that is cut, with either side killed, through
promotions. At the end both have the same data."""

import random
import socket
import threading
import time

from directory import Client, ErrorReply, SECONDS_MAX, digest
from follows import OPTIONS, Load, Proxy, followed, send_a_copy, state_of
from imports import fill, same, state
from logs import change
from servers import Server as Peer
from servers import free_port

# Databases that the load changes.
DATABASES_OF_LOAD = (0, 5, 7)
CUTS = 4
KILLS = 2


def fields(client, section="replication"):
    """A section of INFO, as a dictionary."""
    lines = client.call("INFO", section).splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def wait_for(what, condition):
    deadline = time.monotonic() + SECONDS_MAX
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {SECONDS_MAX} s")
        time.sleep(0.02)
    return found


def answer(client, *words):
    """The reply, or the text of the error."""
    try:
        return client.call(*words)
    except ErrorReply as error:
        return str(error)


def wait_until_it_has_all(primary, ours):
    """The replica has applied what its primary has sent."""
    target = int(fields(primary)["master_repl_offset"])

    def has_all():
        # A primary takes another id when its first replica comes.
        mine, theirs = fields(ours), fields(primary)
        is_up = mine.get("master_link_status") == "up" and mine["master_replid"] == theirs["master_replid"]
        return is_up and int(mine["slave_repl_offset"]) >= target
    wait_for("the replica has all", has_all)


def wait_until_loaded(port):
    def is_loaded():
        try:
            with Client(port) as client:
                return client.call("PING") == "PONG"
        except (OSError, ErrorReply):
            return False
    wait_for("the server is loaded", is_loaded)


def agree(ours, primary, look=state):
    """Each removes what has expired, at times of its own."""
    deadline = time.monotonic() + SECONDS_MAX
    while (found := (look(ours), look(primary))) and found[0] != found[1] and time.monotonic() < deadline:
        # Without changes, a primary deletes what is due, and sends that.
        wait_until_it_has_all(primary, ours)
        time.sleep(0.1)
    same(*found)


def keep_what_is_left(client, kind):
    """What the load has left expires no more: two looks at the same data find the same."""
    for db in DATABASES_OF_LOAD:
        client.call("SELECT", db)
        keys = client.call("KEYS", "*load:*")
        client.pipeline([("PERSIST", key) for key in keys])
        if kind == "valkey":
            # What has expired meanwhile, or is no hash, is an error.
            fields = client.pipeline_of_any([("HKEYS", key) for key in keys])
            client.pipeline_of_any([
                ("HPERSIST", key, "FIELDS", len(names), *names)
                for key, names in zip(keys, fields) if isinstance(names, list) and names
            ])
    client.call("SELECT", 0)


def output(server):
    return (server.data.parent / f"{server.data.name}.output").read_text()


def replicate_under_load(tools, kind, *options):
    name = f"replica-{kind}{'-' + options[0][1] if options else ''}"
    with Peer(kind, options=[*OPTIONS, *options]) as server, Client(server.port) as client, Proxy(server.port) as proxy:
        fill(client, kind)
        load = Load(server.port, kind, name)
        words = ("--replicaof", f"127.0.0.1 {proxy.port}")
        ours = tools.serve(name, *words)
        try:
            for number in range(CUTS + KILLS):
                with Client(ours.port) as mine:
                    wait_until_it_has_all(client, mine)
                    assert answer(mine, "SET", "k", "v").startswith("READONLY"), "a replica refuses writes"
                if number % 3 == 2:
                    ours.kill()
                    ours = tools.serve(name, *words)
                else:
                    resumed = output(ours).count("Successful partial")
                    proxy.cut()
                    wait_for("it resumes", lambda: output(ours).count("Successful partial") > resumed)
            change(client)
            load.stop()
            keep_what_is_left(client, kind)
            with Client(ours.port) as mine:
                wait_until_it_has_all(client, mine)
                agree(mine, client, lambda server: state_of(server, kind))
            said = output(ours)
            copies, continued = said.count("Full resync from primary"), said.count("Successful partial")
            assert copies == 1 and continued >= CUTS + KILLS, f"{copies} copies, {continued} resumed: {said[-900:]}"
            stats = fields(client, "stats")
            assert stats["sync_full"] == "1" and int(stats["sync_partial_ok"]) >= CUTS + KILLS, stats
            # What the primary has sent is in the log and the checkpoint.
            before = None
            with Client(ours.port) as mine:
                assert mine.call("REPLICAOF", "NO", "ONE") == "OK"
                before = state(mine)
            ours.kill()
            with tools.serve(name) as again, Client(again.port) as mine:
                same(state(mine), before)
        finally:
            ours.kill()


def commands_of_a_replica(tools):
    """REPLICAOF, ROLE, INFO, CONFIG REWRITE, and what a replica refuses; then a promotion."""
    file = tools.scratch / "replica.conf"
    file.write_text("")
    with Peer("valkey", password="secret", options=OPTIONS) as server:
        with Client(server.port) as client, tools.serve("commands", file=file) as ours, Client(ours.port) as mine:
            client.call("AUTH", "secret")
            client.pipeline([("SET", "k", "v"), ("SET", "soon", "v", "PX", 50_000), ("SELECT", 3), ("SADD", "s", 1)])
            assert mine.call("ROLE") == ["master", 0, []] and fields(mine)["role"] == "master"
            assert answer(mine, "REPLICAOF", "127.0.0.1", "x") == "ERR Invalid master port"
            mine.call("CONFIG", "SET", "primaryauth", "secret")
            with Client(ours.port) as waiting:
                waiting._send([("BLPOP", "list", 0)])
                wait_for("it waits", lambda: "blocked_clients:1" in mine.call("INFO", "clients"))
                assert mine.call("REPLICAOF", "127.0.0.1", server.port) == "OK"
                assert str(waiting._reply_or_error()).startswith("UNBLOCKED")
            assert mine.call("REPLICAOF", "127.0.0.1", server.port) == "OK Already connected to specified master"
            wait_until_it_has_all(client, mine)
            found = fields(mine)
            for field, value in {
                "role": "slave", "master_host": "127.0.0.1", "master_port": str(server.port), "slave_priority": "0",
                "master_link_status": "up", "master_sync_in_progress": "0", "slave_read_only": "1",
                "replica_announced": "1", "connected_slaves": "0",
            }.items():
                assert found[field] == value, f"{field} is {found[field]}"
            assert mine.call("ROLE")[:4] == ["slave", "127.0.0.1", server.port, "connected"]
            # The primary says so when the first acknowledgement has come.
            wait_for("the primary lists it", lambda: f"port={ours.port},state=online" in fields(client)["slave0"])
            assert mine.call("CONFIG", "GET", "replicaof") == ["replicaof", f"127.0.0.1 {server.port}"]
            for words in (("SET", "k", 1), ("FLUSHALL",), ("EVAL", "return redis.call('SET', KEYS[1], 1)", 1, "k")):
                assert "READONLY" in answer(mine, *words), words
            mine.pipeline([("MULTI",), ("GET", "k")])
            assert "READONLY" in answer(mine, "SET", "k", 1) and "EXECABORT" in answer(mine, "EXEC")
            # Readers that wait are served by what the primary sends.
            with Client(ours.port) as waiting, Client(ours.port) as listening:
                waiting._send([("XREAD", "BLOCK", 0, "STREAMS", "stream", "$")])
                listening.call("SUBSCRIBE", "news")
                wait_for("it waits", lambda: "blocked_clients:1" in mine.call("INFO", "clients"))
                client.pipeline([("SELECT", 0), ("XADD", "stream", "1-1", "f", "v"), ("PUBLISH", "news", "text")])
                assert waiting._reply_or_error() == [["stream", [["1-1", ["f", "v"]]]]]
                assert listening._reply_or_error() == ["message", "news", "text"]
            mine.call("CONFIG", "SET", "replica-read-only", "no")
            assert mine.call("SET", "mine", 1) == "OK"
            mine.pipeline([("DEL", "mine"), ("CONFIG", "SET", "replica-read-only", "yes"), ("CONFIG", "REWRITE")])
            assert f"replicaof 127.0.0.1 {server.port}" in file.read_text()
            wait_for("the digests are equal", lambda: digest(mine) == digest(client))
            # In MULTI a promotion cannot wait for the log, which is off until a checkpoint has the copy.
            wait_for("its log is on", lambda: fields(mine, "persistence")["aof_enabled"] == "1")
            mine.pipeline([("MULTI",), ("SLAVEOF", "NO", "ONE"), ("CONFIG", "REWRITE"), ("EXEC",)])
            assert mine.pipeline([("SET", "k", "new"), ("GET", "k"), ("ROLE",)])[1] == "new"
            found = fields(mine)
            assert found["role"] == "master" and found["master_replid2"] == fields(client)["master_replid"], found
            assert "replicaof 127" not in file.read_text() and "PRIMARY MODE enabled" in output(ours)
            client.call("SET", "not for us", 1)
            assert mine.call("EXISTS", "not for us") == 0


def a_primary_that_is_gone(tools):
    """Old data is served meanwhile, unless that is switched off; a copy that is cut leaves the old data."""
    with Peer("redis", options=OPTIONS) as server, Client(server.port) as client:
        client.pipeline([("SET", "k", "v"), ("SET", "other", "w")])
        with tools.serve("gone", "--replicaof", f"127.0.0.1 {server.port}") as ours, Client(ours.port) as mine:
            wait_until_it_has_all(client, mine)
            server.process.terminate()
            server.process.wait()
            wait_for("the link is down", lambda: fields(mine)["master_link_status"] == "down")
            assert mine.call("GET", "k") == "v" and int(fields(mine)["master_link_down_since_seconds"]) >= 0
            mine.call("CONFIG", "SET", "replica-serve-stale-data", "no")
            assert answer(mine, "GET", "k").startswith("MASTERDOWN") and fields(mine)["role"] == "slave"
            mine.call("CONFIG", "SET", "replica-serve-stale-data", "yes")
            # The server comes back without its data, and under another id.
            server.start()
            with Client(server.port) as again:
                again.call("SET", "k", "new")
                wait_until_it_has_all(again, mine)
                assert mine.call("GET", "k") == "new" and mine.call("EXISTS", "other") == 0
                mine.call("CONFIG", "SET", "replica-serve-stale-data", "no")
                assert mine.call("GET", "k") == "new"


def a_restart_without_the_primary(tools):
    """A killed replica serves its data while the primary does not answer, and then continues where it was."""
    with Peer("valkey", options=OPTIONS) as server, Client(server.port) as client, Proxy(server.port) as proxy:
        client.pipeline([("SET", "k", "v"), ("SELECT", 3), ("SADD", "s", 1)])
        words = ("--replicaof", f"127.0.0.1 {proxy.port}")
        with tools.serve("alone", *words) as ours, Client(ours.port) as mine:
            wait_until_it_has_all(client, mine)
            wait_for("a checkpoint begins", lambda: answer(mine, "BGSAVE").startswith("Background"))
            wait_for("it ends", lambda: fields(mine, "persistence")["rdb_bgsave_in_progress"] == "0")
            client.call("SADD", "s", 2)
            wait_until_it_has_all(client, mine)
            id_before = fields(mine)["master_replid"]
            proxy.pause()
            ours.kill()
        client.call("SADD", "s", 3)
        with tools.serve("alone", *words) as ours, Client(ours.port) as mine:
            assert mine.call("GET", "k") == "v" and fields(mine)["master_link_status"] == "down"
            wait_for("it knows its history", lambda: fields(mine)["master_replid"] == id_before)
            proxy.go_on()
            wait_until_it_has_all(client, mine)
            assert digest(mine) == digest(client)
            assert fields(client, "stats")["sync_full"] == "1" and output(ours).count("Full resync") == 1
            # Clients write what the primary has not. So a replica begins anew.
            mine.pipeline([("REPLICAOF", "NO", "ONE"), ("SET", "mine", 1), ("WAITAOF", 1, 0, 0)])
            ours.kill()
        with tools.serve("alone", *words) as ours, Client(ours.port) as mine:
            wait_for("a copy", lambda: fields(client, "stats")["sync_full"] == "2")
            wait_until_it_has_all(client, mine)
            assert digest(mine) == digest(client)
            ours.kill()
        # Without a primary, clients may write at once.
        with tools.serve("alone") as ours, Client(ours.port) as mine:
            mine.pipeline([("SET", "mine", 1), ("WAITAOF", 1, 0, 0)])
            ours.kill()
        with tools.serve("alone", *words) as ours, Client(ours.port) as mine:
            wait_for("a copy", lambda: fields(client, "stats")["sync_full"] == "3")
            wait_until_it_has_all(client, mine)
            assert digest(mine) == digest(client)


def progress_of_a_copy(tools):
    """INFO has the figures of Valkey, with a length of the copy and without."""
    with tools.serve("progress") as ours, Client(ours.port) as mine:
        for head, sent, expected in (
            (b"$1000", 250, {"total_bytes": "1000", "read_bytes": "250", "left_bytes": "750", "perc": "25.00"}),
            # The last 40 bytes may be the mark.
            (b"$EOF:" + b"m" * 40, 250,
             {"total_bytes": "0", "read_bytes": "210", "left_bytes": "-210", "perc": "0.00"}),
        ):
            with socket.create_server(("127.0.0.1", 0)) as listener:
                threading.Thread(target=send_a_copy, args=(listener, head, b"x" * sent), daemon=True).start()
                mine.call("REPLICAOF", "127.0.0.1", listener.getsockname()[1])

                def is_shown():
                    found = fields(mine)
                    return all(found.get(f"master_sync_{name}") == value for name, value in expected.items()) and found
                found = wait_for(f"INFO shows {expected}", is_shown)
                assert found["master_sync_in_progress"] == "1" and found["master_link_status"] == "down", found
                assert found["master_sync_last_io_seconds_ago"] == found["master_last_io_seconds_ago"], found
                mine.call("REPLICAOF", "NO", "ONE")
        assert not any(field.startswith("master_sync") for field in fields(mine))


def while_a_copy_loads(tools, way):
    """What clients get while a copy is loaded, in place or aside, and INFO's figures meanwhile; then its data alone is
    there, and survives a kill."""
    name, is_aside = f"loads-{way}", way == "swapdb"
    with Peer("valkey", options=OPTIONS) as server, Client(server.port) as client:
        client.call("DEBUG", "POPULATE", 300_000, "key", 100)
        client.pipeline([
            ("SET", "soon", "v", "PX", 500_000), ("FUNCTION", "LOAD", library("theirs", 1)), ("SELECT", 3),
            ("SADD", "s", 1), ("HSET", "h", "f", "v"),
        ])
        ours = tools.serve(name, "--repl-diskless-load", way)
        try:
            with Client(ours.port) as mine, Client(ours.port) as watching:
                mine.pipeline([
                    ("SET", "old", "v"), ("SWAPDB", 0, 3), ("SET", "in-0", "v"), ("SELECT", 3), ("SET", "s", "old"),
                    ("FUNCTION", "LOAD", library("ours", 2)),
                ])
                # One key that is only in the copy.
                watching.pipeline([("SELECT", 3), ("WATCH", "h"), ("MULTI",), ("PING",)])
                mine.call("REPLICAOF", "127.0.0.1", server.port)
                seen = []

                def is_loaded():
                    before = fields(mine, "persistence")
                    if "loading_total_bytes" not in before:
                        return fields(mine)["master_link_status"] == "up"
                    *replies, after = mine.pipeline_of_any([
                        ("GET", "old"), ("DBSIZE",), ("FCALL_RO", "ours", 0), ("BGSAVE",), ("INFO", "persistence"),
                    ])
                    if "loading_total_bytes" in after:
                        seen.append((before, [str(reply) for reply in replies]))
                    return False
                wait_for("it is loaded", is_loaded)
                assert len(seen) > 2, f"only {len(seen)} looks while it loaded"
                total = {found["loading_total_bytes"] for found, _ in seen} - {"0"}
                loaded = [int(found["loading_loaded_bytes"]) for found, _ in seen]
                assert len(total) == 1 and loaded == sorted(loaded) and 0 < loaded[-1] <= int(*total), (total, loaded)
                for found, replies in seen:
                    assert (found["loading"], found["async_loading"]) == (("0", "1") if is_aside else ("1", "0")), found
                    share = 100 * int(found["loading_loaded_bytes"]) / max(int(found["loading_total_bytes"]), 1)
                    assert abs(float(found["loading_loaded_perc"]) - share) < 0.01, found
                    assert 0 <= time.time() - int(found["loading_start_time"]) < SECONDS_MAX, found
                    assert int(found["loading_eta_seconds"]) >= 0, found
                    kept, loading = (["v", "2", "2"], replies[3:]) if is_aside else (replies[:3], replies)
                    assert replies[:3] == kept and all(text.startswith("LOADING") for text in loading), replies
                assert not any(field.startswith("loading_") for field in fields(mine, "persistence"))
                wait_until_it_has_all(client, mine)
                if is_aside:
                    assert watching.call("EXEC") == [], "the watched key has come"
                same(everything_of(mine), everything_of(client))
                wait_for("the log is on", lambda: fields(mine, "persistence")["aof_enabled"] == "1")
            ours.kill()
            ours = tools.serve(name)
            with Client(ours.port) as mine:
                same(everything_of(mine), everything_of(client))
        finally:
            ours.kill()


def everything_of(client):
    found = [digest(client), client.call("FUNCTION", "LIST")]
    for db in (0, 3):
        client.call("SELECT", db)
        found.append(client.pipeline([("DBSIZE",), ("PEXPIRETIME", "soon"), ("GET", "key:7")]))
    return found


def a_copy_that_cannot_be_taken(tools):
    """With `repl-diskless-load swapdb` that is found while the copy loads: what was loaded goes, the old data stays,
    and the log is on again."""
    with Peer("valkey", options=[*OPTIONS, ("databases", 20)]) as server, Client(server.port) as client:
        client.call("DEBUG", "POPULATE", 20_000, "key", 10)
        client.pipeline([("SELECT", 18), ("SET", "k", "v")])
        options = ("--repl-diskless-load", "swapdb")
        with tools.serve("untaken", *options) as ours, Client(ours.port) as mine:
            mine.call("SET", "old", "v")
            mine.call("REPLICAOF", "127.0.0.1", server.port)
            wait_for("it says so", lambda: "start this server with more `databases`" in output(ours))
            wait_for("it is over", lambda: "loading_total_bytes" not in fields(mine, "persistence"))
            assert mine.pipeline([("GET", "old"), ("DBSIZE",), ("EXISTS", "key:7")]) == ["v", 1, 0]
            replies = mine.pipeline([("REPLICAOF", "NO", "ONE"), ("SET", "mine", "v"), ("WAITAOF", 1, 0, 0)])
            assert replies == ["OK", "OK", [1, 0]], replies
            ours.kill()
        with tools.serve("untaken", *options) as ours, Client(ours.port) as mine:
            assert mine.pipeline([("DBSIZE",), ("MGET", "old", "mine")]) == [2, ["v", "v"]]


def expired_keys(tools):
    """The primary decides when a key ends; reads of the replica hide what is due."""
    with Peer("valkey", options=OPTIONS) as server, Client(server.port) as client:
        with tools.serve("expiry", "--replicaof", f"127.0.0.1 {server.port}") as ours, Client(ours.port) as mine:
            client.call("DEBUG", "SET-ACTIVE-EXPIRE", 0)
            client.call("SET", "k", "v", "PX", 1)
            wait_until_it_has_all(client, mine)
            wait_for("reads hide it", lambda: mine.call("GET", "k") is None)
            assert mine.call("DBSIZE") == 1, "it stays until the primary deletes it"
            client.call("DEBUG", "SET-ACTIVE-EXPIRE", 1)
            wait_for("the primary has deleted it", lambda: mine.call("DBSIZE") == 0)


def library(name, result):
    """The text of a library whose one function has its name."""
    register = f"redis.register_function{{function_name='{name}', callback=function() return {result} end"
    return f"#!lua name={name}\n{register}, flags={{'no-writes'}}}}"


def functions(tools):
    """Libraries come with the copy and with the stream, and those from before go."""
    with Peer("redis", options=OPTIONS) as server, Client(server.port) as client:
        client.pipeline([("FUNCTION", "LOAD", library("copied", 1)), ("FUNCTION", "LOAD", library("gone", 2))])
        with tools.serve("functions") as ours, Client(ours.port) as mine:
            mine.call("FUNCTION", "LOAD", library("old", 3))
            mine.call("REPLICAOF", "127.0.0.1", server.port)
            wait_until_it_has_all(client, mine)
            assert mine.pipeline_of_any([("FCALL_RO", "copied", 0), ("FCALL", "gone", 0)]) == [1, 2]
            assert "ERR Function not found" in answer(mine, "FCALL_RO", "old", 0)
            assert "READONLY" in answer(mine, "FUNCTION", "DELETE", "copied")
            client.pipeline([
                ("FUNCTION", "LOAD", "REPLACE", library("copied", 4)), ("FUNCTION", "DELETE", "gone"),
                ("FUNCTION", "LOAD", library("streamed", 5)),
            ])
            wait_until_it_has_all(client, mine)
            assert mine.pipeline([("FCALL_RO", "copied", 0), ("FCALL_RO", "streamed", 0)]) == [4, 5]
            assert "ERR Function not found" in answer(mine, "FCALL_RO", "gone", 0)


def on_a_tier(tools):
    """A copy and a stream larger than the memory of a replica with a tier; what was on the tier before goes."""
    draw = random.Random("tier")
    values = [(f"key:{number}", draw.randbytes(6000).hex()) for number in range(3000)]
    options = ("--tier-dir", str(tools.scratch / "tier"), "--maxmemory", "24mb", "--maxmemory-policy", "noeviction")

    def all_of(client):
        return client.pipeline([("GET", key) for key, _ in values])
    with Peer("valkey", options=OPTIONS) as server, Client(server.port) as client:
        with tools.serve("with-tier", *options) as ours, Client(ours.port) as mine:
            mine.pipeline([("SET", f"old:{key}", value) for key, value in values])
            client.pipeline([("SET", *pair) for pair in values[:2000]])
            mine.call("REPLICAOF", "127.0.0.1", server.port)
            wait_until_it_has_all(client, mine)
            client.pipeline([("SET", *pair) for pair in values[2000:]])
            # What is edited is on the tier.
            client.pipeline([("APPEND", key, "more") for key, _ in values[::7]])
            wait_until_it_has_all(client, mine)
            assert mine.call("DBSIZE") == len(values)
            same(all_of(mine), all_of(client))
            assert int(fields(mine, "tier")["tier_demoted_values"]) > 0, fields(mine, "tier")
            mine.call("REPLICAOF", "NO", "ONE")
            ours.shut_down()
        with tools.serve("with-tier", *options) as ours, Client(ours.port) as mine:
            same(all_of(mine), all_of(client))


def databases_on_disk(tools):
    """A database on disk cannot be replaced by a copy yet, so both ways into it are refused."""
    with tools.serve("disk", "--database", "0 engine disk") as ours, Client(ours.port) as mine:
        assert answer(mine, "REPLICAOF", "127.0.0.1", 1) == (
            "ERR database 0 has engine disk, and a replica cannot have databases on disk yet: restart with database 0 "
            "engine memory"
        )
        assert mine.call("ROLE") == ["master", 0, []] and mine.call("SET", "k", "v") == "OK"


def nobody_there(tools):
    """A server whose primary does not answer starts, serves what it has, and ends in order."""
    with tools.serve("nobody", "--replicaof", f"127.0.0.1 {free_port()}") as ours, Client(ours.port) as mine:
        wait_for("it tries", lambda: "Connection refused" in output(ours))
        assert fields(mine)["master_link_status"] == "down" and mine.call("ROLE")[4] == -1
        ours.shut_down()


def run(tools):
    for kind in followed():
        tools.check(
            f"a replica of {kind} under load, with cuts and kills", lambda kind=kind: replicate_under_load(tools, kind)
        )
    tools.check("commands of a replica, and a promotion", lambda: commands_of_a_replica(tools))
    tools.check("a primary that is gone and comes back", lambda: a_primary_that_is_gone(tools))
    tools.check("a killed replica serves its data and goes on", lambda: a_restart_without_the_primary(tools))
    tools.check("INFO shows how far a copy is", lambda: progress_of_a_copy(tools))
    for way in ("disabled", "swapdb"):
        tools.check(
            f"clients of a replica that loads a copy, {way}", lambda way=way: while_a_copy_loads(tools, way)
        )
    tools.check("a copy that cannot be taken, swapdb", lambda: a_copy_that_cannot_be_taken(tools))
    tools.check("a replica expires nothing by itself", lambda: expired_keys(tools))
    tools.check("a replica has its primary's functions", lambda: functions(tools))
    tools.check("a replica with a tier", lambda: on_a_tier(tools))
    tools.check("a server with a database on disk is no replica", lambda: databases_on_disk(tools))
    tools.check("a primary that does not answer", lambda: nobody_there(tools))
