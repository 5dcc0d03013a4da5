"""A replica under a load of all types whose link is cut anywhere, and of which either side is killed: the data is equal
at the end, and a copy is taken only where the primary no longer has the stream.

`main.py ONGGI cuts CUTS KILLS` runs it with other counts, and with FLOOD more commands a second; ONGGI_TEST_SEED is the
seed.
"""

import random
import subprocess
import sys
import time
from pathlib import Path

import seeds
from directory import Client, ErrorReply, digest
from follows import OPTIONS, Load, Proxy
from imports import fill
from replicas import (
    DATABASES_OF_LOAD, agree, fields, keep_what_is_left, library, output, wait_for, wait_until_it_has_all,
)
from servers import Server as Peer

CUTS = 10
KILLS = 2
# Longest time between two events, in seconds, and how often the next one waits for a replica with a link.
PAUSE_MAX = 0.25
CALM = 0.7
# Commands a second of the long form, on top of the load.
FLOOD = 22_000
# A primary that is killed comes back with its data, and under another id.
KEPT = [("appendonly", "yes"), ("appendfsync", "always")]


class WildLoad(Load):
    """Also changes libraries of functions, calls them, and empties everything now and then."""

    def some(self):
        draw = self.random.random()
        name = f"load{self.random.randrange(4)}"
        key = f"load:{self.random.randrange(40)}:n"
        if draw < 0.0001:
            return [("FLUSHALL",)]
        if draw < 0.001:
            return [("SWAPDB", 0, 5)]
        if draw < 0.01:
            return [("FUNCTION", "LOAD", "REPLACE", writer(name, self.random.randrange(100)))]
        if draw < 0.013:
            return [("FUNCTION", "DELETE", name)]
        if draw < 0.05:
            return [("FCALL", name, 1, key)]
        return super().some()


def writer(name, number):
    """The text of a library whose one function adds a number to a key."""
    run = f"redis.call('INCRBY', keys[1], {number}) return redis.call('RPUSH', keys[1] .. ':l', {number})"
    return f"#!lua name={name}\nredis.register_function('{name}', function(keys) {run} end)"


def everything(client):
    """What both sides must agree about: all data, and what the digest leaves out of it."""
    found = [digest(client), sorted(map(str, client.call("FUNCTION", "LIST", "WITHCODE")))]
    for db in DATABASES_OF_LOAD:
        client.call("SELECT", db)
        keys = sorted(client.call("KEYS", "*"))
        times = client.pipeline([("PEXPIRETIME", key) for key in keys])
        groups = client.pipeline_of_any([("XINFO", "GROUPS", name) for name in ("stream", "load:stream")])
        found += [list(zip(keys, times)), list(map(str, groups))]
    client.call("SELECT", 0)
    return found


class Trial:
    """The two sides, and how many copies are right."""

    def __init__(self, tools, server, proxy, draw, flood):
        self.tools, self.server, self.proxy, self.draw, self.rate = tools, server, proxy, draw, flood
        self.copies_max, self.is_up, self.commands, self.seconds = 1, False, 0, 0
        self.ours = self.serve()
        self.load = self.begin_load()

    def serve(self):
        return self.tools.serve("cuts", "--replicaof", f"127.0.0.1 {self.proxy.port}")

    def begin_load(self):
        self.begun, self.counted, self.flood = time.monotonic(), self.processed(), None
        if self.rate:
            argv = [sys.executable, Path(__file__).parent / "flood.py", str(self.server.port), str(self.rate)]
            self.flood = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
        return WildLoad(self.server.port, "valkey", self.draw.random())

    def is_settled(self):
        """Whether the replica has a copy of this primary, as data that survives a kill."""
        try:
            with Client(self.ours.port) as mine, Client(self.server.port) as client:
                found = {**fields(mine), **fields(mine, "persistence")}
                is_of_it = found["master_replid"] == fields(client)["master_replid"]
                self.is_up = found["master_link_status"] == "up"
                return is_of_it and found["loading"] == "0" and found["aof_enabled"] == "1"
        except (OSError, ErrorReply):
            return False

    def disturb(self, event):
        """Cuts the link, or kills a side. What comes before the copy is complete is the reason for another one."""
        if not self.is_settled():
            self.copies_max += 1
        if event == "cut":
            self.proxy.cut_after(self.draw.randrange(20_000))
        elif event == "replica":
            self.ours.kill()
            self.ours = self.serve()
        else:
            self.end_load()
            self.proxy.cut_never()
            self.server.process.kill()
            self.server.process.wait()
            copies = self.copies()
            self.server.start()
            self.copies_max = copies + 1
            self.load = self.begin_load()

    def processed(self):
        with Client(self.server.port) as client:
            return int(fields(client, "stats")["total_commands_processed"])

    def end_flood(self):
        self.load.is_stopped = True
        if self.flood:
            self.flood.kill()
            self.flood.wait()

    def end_load(self):
        self.end_flood()
        self.load.stop()
        self.commands += self.processed() - self.counted
        self.seconds += time.monotonic() - self.begun

    def figures(self):
        copies, resumed = self.copies(), output(self.ours).count("Successful partial")
        rate = self.commands / self.seconds
        return f"{copies} copies where {self.copies_max} are right, {resumed} resumed, {rate:.0f} commands/s"

    def copies(self):
        return output(self.ours).count("Full resync from primary")


def cut_and_kill(tools, cuts=CUTS, kills=KILLS, flood=0):
    seed = seeds.fixed()
    print(f"# cuts and kills: seed {seed}", flush=True)
    draw = random.Random(seed)
    events = ["cut"] * cuts + ["replica"] * kills + ["primary"] * kills
    draw.shuffle(events)
    with Peer("valkey", options=[*OPTIONS, *KEPT]) as server, Client(server.port) as client:
        fill(client, "valkey")
        client.call("FUNCTION", "LOAD", library("stays", 1))
        with Proxy(server.port) as proxy:
            trial = Trial(tools, server, proxy, draw, flood)
            try:
                for event in events:
                    if draw.random() < CALM:
                        wait_for("a link", lambda: trial.is_settled() and trial.is_up)
                    time.sleep(draw.random() * PAUSE_MAX)
                    trial.disturb(event)
                trial.end_load()
                figures = trial.figures()
                with Client(server.port) as client, Client(trial.ours.port) as mine:
                    proxy.cut_never()
                    keep_what_is_left(client, "valkey")
                    wait_until_it_has_all(client, mine)
                    agree(mine, client, everything)
                    copies = trial.copies()
                    assert copies <= trial.copies_max, f"{copies} copies, where {trial.copies_max} are right"
                    assert "Successful partial" in output(trial.ours)
                wait_for("the log is on again", trial.is_settled)
                trial.ours.kill()
                trial.ours = trial.serve()
                with Client(server.port) as client, Client(trial.ours.port) as mine:
                    wait_until_it_has_all(client, mine)
                    agree(mine, client, everything)
                    assert trial.copies() == copies, "the last kill led to a copy"
                print(f"# {cuts} cuts and {kills} kills of each side: {figures}", flush=True)
            finally:
                trial.end_flood()
                trial.ours.kill()


def run(tools):
    tools.check("a replica whose link is cut anywhere, and either side killed", lambda: cut_and_kill(tools))
