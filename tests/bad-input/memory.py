"""Resident memory under a budget, whatever clients do."""

import multiprocessing
import random
import threading
import time

from resp import Connection, Error, request
from suite import MB, Watch, expect, mb, measure

BUDGET = 100 * MB
RESIDENT_MAX = BUDGET * 115 // 100 + 64 * MB
SECONDS = 8


def load(server, seconds, seed):
    """Writes of all sizes, values that shrink and grow, deletions, expirations, pipelines and readers that do not
    read."""
    rng = random.Random(seed)
    end = time.monotonic() + seconds
    deaf = []
    connection = None
    while time.monotonic() < end:
        try:
            connection = connection or Connection(server)
            phase = rng.choice([0, 0, 0, 1, 1, 1, 1, 2, 3, 4, 5])
            if phase == 0:
                words = [
                    ("SET", f"m:{rng.randrange(200_000)}", b"x" * rng.choice([10, 100, 1000])) for _ in range(2000)
                ]
            elif phase == 1:
                words = [("SET", f"m:{rng.randrange(20_000)}", b"x" * rng.randrange(4000, 9000)) for _ in range(500)]
            elif phase == 2:
                words = [("SETRANGE", f"m:{rng.randrange(20_000)}", 0, "shrunk") for _ in range(500)]
                words += [("SET", f"m:{rng.randrange(20_000)}", "small") for _ in range(3000)]
            elif phase == 3:
                words = [
                    ("SET", f"large:{rng.randrange(20)}", b"y" * rng.randrange(100_000, 3_000_000)) for _ in range(6)
                ]
            elif phase == 4:
                words = [
                    ("SET", f"e:{rng.randrange(100_000)}", b"z" * 200, "PX", rng.randrange(1, 1000))
                    for _ in range(2000)
                ]
            else:
                words = [("DEL", *[f"m:{rng.randrange(200_000)}" for _ in range(100)]) for _ in range(50)]
                reader = Connection(server, receive_bytes=4096)
                reader.send_what_fits(
                    b"".join(request("GET", f"{rng.choice(['m', 'large'])}:{rng.randrange(20)}") for _ in range(3000))
                )
                deaf.append(reader)
                if len(deaf) > 30:
                    deaf.pop(0).close()
            connection.send(b"".join(request(*each) for each in words))
            for _ in words:
                try:
                    connection.reply()
                except Error as error:
                    if not str(error).startswith("OOM"):
                        raise
        except (ConnectionError, BrokenPipeError):
            # Closed for what it held: that is what the server may do.
            connection = None
    raise SystemExit(0)


def checkpoints(server, stop):
    """Asks for a checkpoint again and again. One that cannot be had now is no failure."""
    with Connection(server) as connection:
        while not stop.wait(0.3):
            connection.error("BGREWRITEAOF")


def budget(suite, policy):
    """The resident memory stays within 1.15 times the budget and 64 MiB; with a log, while checkpoints are taken
    too."""
    server = suite.server
    with Connection(server) as control:
        keeps = control.call("CONFIG", "GET", "appendonly")[1] == b"yes"
        stop = threading.Event()
        keeper = threading.Thread(target=checkpoints, args=(server, stop), daemon=True)
        control.call("CONFIG", "SET", "maxmemory-policy", policy, "maxmemory", BUDGET)
        processes = [
            multiprocessing.Process(
                target=load, args=(server, SECONDS * suite.times, f"{suite.seed}/{policy}/{number}")
            )
            for number in range(3)
        ]
        with Watch(server) as watch:
            for process in processes:
                process.start()
            if keeps:
                keeper.start()
            for process in processes:
                process.join()
            stop.set()
        used = server.info("memory", "used_memory_human")
        print(
            f"   {policy}: at most {mb(watch.peak)} resident of {mb(RESIDENT_MAX)}; used at the end {used}", flush=True
        )
        expect(all(process.exitcode == 0 for process in processes), "a generator failed")
        expect(watch.peak > BUDGET // 2, f"the load filled only {mb(watch.peak)}")
        measure(watch.peak <= RESIDENT_MAX, f"{mb(watch.peak)} resident")
        control.call("FLUSHALL", "SYNC")


def run(suite):
    for policy in ("allkeys-lru", "noeviction"):
        suite.attack(
            f"a budget with {policy}", lambda: budget(suite, policy), growth=None, after=None, full_is_fine=True
        )
