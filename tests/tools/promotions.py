"""Promotions: by REPLICAOF NO ONE while the stream flows, and by Sentinel, which must not choose a server without
replicas of its own. `redis-cli --replica` receives the stream that the replica applies."""

import subprocess
import threading
import time

import need
from directory import Client
from follows import OPTIONS, Load
from replicas import answer, fields, output, wait_for, wait_until_it_has_all
from servers import Server as Peer
from servers import free_port

PROMOTIONS = 3


class Counting(threading.Thread):
    """Transactions that count in two ways, until it is stopped."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.is_stopped, self.count, self.failure = port, False, 0, None
        self.start()

    def run(self):
        try:
            with Client(self.port) as client:
                while not self.is_stopped:
                    client.pipeline([("MULTI",), ("INCR", "count"), ("RPUSH", "numbers", self.count + 1), ("EXEC",)])
                    self.count += 1
        except Exception as problem:
            self.failure = problem

    def stop(self):
        self.is_stopped = True
        self.join()
        if self.failure:
            raise self.failure


def counted(client):
    """The count, which the list agrees with: no transaction is there by half or twice. Both are read at one moment."""
    count, numbers = client.pipeline([("MULTI",), ("GET", "count"), ("LRANGE", "numbers", 0, -1), ("EXEC",)])[-1]
    assert numbers == [str(number) for number in range(1, int(count) + 1)], f"{count}, {numbers[-9:]}"
    return int(count)


def promoted_under_load(tools):
    """What was applied stays, a write in the same packet is accepted, and both survive a kill."""
    with Peer("valkey", options=OPTIONS) as server, Client(server.port) as client:
        load, counting = Load(server.port, "valkey", "promotions"), Counting(server.port)
        ours = tools.serve("promoted")
        try:
            for number in range(PROMOTIONS):
                with Client(ours.port) as mine:
                    mine.call("REPLICAOF", "127.0.0.1", server.port)
                    wait_for("it follows", lambda: fields(mine)["master_link_status"] == "up")
                    at_first = counted(mine)
                    wait_for("the stream flows", lambda: counted(mine) > at_first)
                    replies = mine.pipeline([
                        ("REPLICAOF", "NO", "ONE"), ("SET", f"mine:{number}", "v"), ("GET", "count"), ("ROLE",),
                    ])
                    assert replies[:2] == ["OK", "OK"] and replies[3][0] == "master", replies
                    assert mine.call("WAITAOF", 1, 0, 0) == [1, 0]
                    count = counted(mine)
                    assert count == int(replies[2]) <= counting.count + 1, f"{replies} and then {count}"
                ours.kill()
                ours = tools.serve("promoted")
                with Client(ours.port) as mine:
                    assert counted(mine) == count and mine.call("GET", f"mine:{number}") == "v"
            load.stop()
            counting.stop()
            with Client(ours.port) as mine:
                mine.call("REPLICAOF", "127.0.0.1", server.port)
                wait_until_it_has_all(client, mine)
                assert counted(mine) == counting.count and mine.call("EXISTS", "mine:0") == 0
        finally:
            load.is_stopped = counting.is_stopped = True
            ours.kill()


def promoted_after_a_copy(tools):
    """A promotion waits for the log, which is off after a copy until a checkpoint has the data: a write that is
    acknowledged after it survives a kill. Other clients see a replica until then."""
    with Peer("valkey", options=OPTIONS) as server, Client(server.port) as client:
        client.call("DEBUG", "POPULATE", 400_000, "key", 100)
        ours = tools.serve("fresh")
        try:
            with Client(ours.port) as mine:
                mine.call("REPLICAOF", "127.0.0.1", server.port)

                def is_copied():
                    # It answers LOADING at first.
                    found = answer(mine, "INFO", "replication")
                    return "master_link_status:up" in found
                wait_for("it follows", is_copied)
                before = mine.pipeline_of_any([
                    ("INFO", "persistence"), ("MULTI",), ("REPLICAOF", "NO", "ONE"), ("EXEC",),
                ])
                assert "aof_enabled:0" in before[0], "the checkpoint of the copy was too fast for this test"
                assert "a transaction cannot wait for it" in str(before[3]), before
                assert mine.call("ROLE")[0] == "slave"
                replies = mine.pipeline([
                    ("REPLICAOF", "NO", "ONE"), ("SET", "mine", "v"), ("WAITAOF", 1, 0, 0), ("ROLE",),
                ])
                assert replies[:3] == ["OK", "OK", [1, 0]] and replies[3][0] == "master", replies
                assert "PRIMARY MODE waits for the log" in output(ours)
            ours.kill()
            ours = tools.serve("fresh")
            with Client(ours.port) as mine:
                assert mine.call("GET", "mine") == "v" and mine.call("DBSIZE") == 400_001
        finally:
            ours.kill()


class Sentinel:
    """Sentinel on a free port, which watches one primary under the name `watched`."""

    def __init__(self, tools, primary):
        self.port, file = free_port(), tools.scratch / "sentinel.conf"
        file.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {tools.scratch}\n"
            f"sentinel monitor watched 127.0.0.1 {primary} 1\n"
            "sentinel down-after-milliseconds watched 500\nsentinel failover-timeout watched 2000\n"
        )
        self.said = tools.scratch / "sentinel.output"
        with open(self.said, "wb") as output:
            argv = [need.program("redis-server", "redis-server"), str(file), "--sentinel"]
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def ask(self, *words):
        try:
            with Client(self.port) as client:
                return answer(client, "SENTINEL", *words)
        except OSError as error:
            return str(error)

    def replica(self):
        """The fields of the only replica; none before it is known."""
        found = self.ask("REPLICAS", "watched")
        if not isinstance(found, list) or len(found) != 1:
            return {}
        return dict(zip(found[0][::2], found[0][1::2]))


def watched_by_sentinel(tools):
    with Peer("redis", options=OPTIONS) as server, Client(server.port) as client:
        words = ("--replicaof", f"127.0.0.1 {server.port}", "--replica-priority", "100")
        with (
            tools.serve("watched", *words) as ours, Client(ours.port) as mine,
            Sentinel(tools, server.port) as sentinel,
        ):
            wait_until_it_has_all(client, mine)
            expected = {
                "ip": "127.0.0.1", "port": str(ours.port), "flags": "slave", "role-reported": "slave",
                "master-link-status": "ok", "master-host": "127.0.0.1", "master-port": str(server.port),
                "slave-priority": "0", "replica-announced": "1",
            }
            wait_for("Sentinel knows the replica", lambda: expected.items() <= sentinel.replica().items())
            assert sentinel.ask("FAILOVER", "watched").startswith("NOGOODSLAVE")
            server.process.kill()
            server.process.wait()
            wait_for("Sentinel gives up", lambda: "-failover-abort-no-good-slave" in sentinel.said.read_text())
            assert mine.call("ROLE")[0] == "slave" and answer(mine, "SET", "k", "v").startswith("READONLY")
            refusal = answer(mine, "FAILOVER")
            assert "has no replicas of its own yet" in refusal, refusal


def both_are_online(client):
    """The primary has sent the copies of two replicas."""
    found = fields(client)
    return all("state=online" in found.get(name, "") for name in ("slave0", "slave1"))


def beside_redis_cli(tools):
    """`redis-cli --replica` of the same primary: every command that it shows is in the data of the replica."""
    need.apt("redis-tools")
    with Peer("redis", options=OPTIONS) as server, Client(server.port) as client:
        shown = tools.scratch / "stream"
        with open(shown, "wb") as output, tools.serve("follower", "--replicaof", f"127.0.0.1 {server.port}") as ours:
            argv = ["redis-cli", "-p", str(server.port), "--replica"]
            cli = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
            try:
                # A write before the copy of redis-cli begins would be in the copy, which redis-cli does not show.
                wait_for("both have their copies", lambda: both_are_online(client))
                with Client(ours.port) as mine:
                    wait_until_it_has_all(client, mine)
                    client.pipeline([("RPUSH", "list", f"element {number}") for number in range(500)])
                    wait_until_it_has_all(client, mine)
                    wait_for("redis-cli has the end", lambda: "element 499" in shown.read_text(errors="replace"))
                    lines = shown.read_text(errors="replace").splitlines()
                    pushed = [line for line in lines if "RPUSH" in line.upper()]
                    assert pushed == [f'"RPUSH","list","{element}"' for element in mine.call("LRANGE", "list", 0, -1)]
            finally:
                cli.kill()
                cli.wait()


def run(tools):
    tools.check("promotions while the stream flows", lambda: promoted_under_load(tools))
    tools.check("a promotion right after a copy", lambda: promoted_after_a_copy(tools))
    tools.check("Sentinel lists a replica and does not promote it", lambda: watched_by_sentinel(tools))
    tools.check("redis-cli --replica shows what a replica applies", lambda: beside_redis_cli(tools))
