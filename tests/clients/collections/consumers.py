"""A consumer group of five workers that crash: each is a process that ends at once in the middle of its work, and what
it had taken is claimed by the others (XAUTOCLAIM)."""

import multiprocessing
import os
import random
import time

import redis

ENTRIES = 1500
WORKERS = 5
STREAM, GROUP, DONE = "orders", "billing", "billed"


def connect(place):
    host, port, password = place
    return redis.Redis(host=host, port=port, password=password)


def work(place, name, seed):
    """Takes entries until there are none; crashes now and then, before it says what it has done."""
    r, rng = connect(place), random.Random(seed)
    while True:
        taken = r.xautoclaim(STREAM, GROUP, name, min_idle_time=200, start_id="0-0", count=10)[1]
        if not taken:
            found = r.xreadgroup(GROUP, name, {STREAM: ">"}, count=10, block=100)
            taken = found[0][1] if found else []
        if not taken and r.xpending(STREAM, GROUP)["pending"] == 0:
            return
        for entry, fields in taken:
            if rng.random() < 0.01:
                os._exit(1)
            pipe = r.pipeline()
            pipe.hincrby(DONE, fields[b"order"], 1)
            pipe.xack(STREAM, GROUP, entry)
            if rng.random() < 0.01:
                os._exit(1)
            pipe.execute()


def run(h):
    r, place = h.client(), (h.host, h.port, h.password)

    def crashes():
        r.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
        for number in range(ENTRIES):
            r.xadd(STREAM, {"order": number, "amount": number * 3}, maxlen=10_000)
        processes, crashed, seed = {}, 0, 0
        context = multiprocessing.get_context("spawn")
        for number in range(WORKERS):
            processes[number] = None
        deadline = time.monotonic() + 120
        while processes:
            for number, process in list(processes.items()):
                if process is not None and process.is_alive():
                    continue
                if process is not None and process.exitcode == 0:
                    del processes[number]
                    continue
                crashed += process is not None
                seed += 1
                processes[number] = context.Process(target=work, args=(place, f"worker:{number}", seed))
                processes[number].start()
            if time.monotonic() > deadline:
                raise AssertionError("the workers did not come to an end")
            time.sleep(0.01)
        if crashed < 5:
            raise AssertionError(f"only {crashed} workers crashed: the test shows nothing")
        billed = {int(order): int(times) for order, times in r.hgetall(DONE).items()}
        # Two workers may do an entry that one of them was slow with; none may be forgotten.
        h.equal(set(billed), set(range(ENTRIES)))
        group = r.xinfo_groups(STREAM)[0]
        h.equal((group["pending"], group["lag"], group["entries-read"]), (0, 0, ENTRIES))

    def history():
        h.equal(r.xlen(STREAM), ENTRIES)
        entries = r.xrange(STREAM)
        h.equal([int(fields[b"order"]) for _, fields in entries], list(range(ENTRIES)))
        h.equal(r.xrevrange(STREAM, count=3), entries[:-4:-1])
        r.xtrim(STREAM, maxlen=100, approximate=False)
        h.equal(r.xrange(STREAM), entries[-100:])

    h.check("consumers: workers crash, and every entry is done", crashes)
    h.check("consumers: the stream is still there, in order", history)
    r.flushall()
