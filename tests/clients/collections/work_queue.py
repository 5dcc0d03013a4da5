"""Work queues: redis-work-queue 0.1.5, which registers no script, and the reliable queue of the BLMOVE
documentation."""

import threading
from collections import Counter

from redis_work_queue import Item, KeyPrefix, WorkQueue

ITEMS = 600
WORKERS = 5


def run(h):
    r = h.client()

    def library():
        queue = WorkQueue(KeyPrefix("jobs"))
        for number in range(ITEMS):
            queue.add_item(r, Item(str(number).encode()))
        done, lock = Counter(), threading.Lock()

        def work(number):
            mine = h.client()
            for turn in range(10 * ITEMS):
                item = queue.lease(mine, 60, block=True, timeout=1)
                if item is None:
                    return
                # Every hundredth turn a worker forgets its item, as one that crashes does.
                if turn % 100 == 99:
                    mine.delete(queue._lease_key.of(item.id()))
                    continue
                with lock:
                    done[int(item.data())] += queue.complete(mine, item)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(WORKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # What was forgotten comes back, and is done once.
        queue.light_clean(r)
        while (item := queue.lease(r, 60, block=False)) is not None:
            done[int(item.data())] += queue.complete(r, item)
        h.equal(done, Counter(range(ITEMS)))
        h.equal((queue.queue_len(r), queue.processing(r)), (0, 0))

    def blmove():
        done, lock = Counter(), threading.Lock()

        def work(number):
            mine, own = h.client(), f"own:{number}"
            while (item := mine.blmove("todo", own, 10, "LEFT", "RIGHT")) != b"stop":
                with lock:
                    done[item] += 1
                h.equal(mine.lrem(own, 1, item), 1)
            mine.delete(own)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(WORKERS)]
        for thread in threads:
            thread.start()
        for number in range(ITEMS):
            r.rpush("todo", f"item:{number}")
        r.rpush("todo", *["stop"] * WORKERS)
        for thread in threads:
            thread.join()
        h.equal(done, Counter(f"item:{number}".encode() for number in range(ITEMS)))
        h.equal(r.exists("todo", *[f"own:{number}" for number in range(WORKERS)]), 0)

    def order():
        """The client that has waited longest is served first."""
        served, threads = [], []

        def wait(number):
            served.append((number, h.client().blpop(["first"], 10)))

        for number in range(8):
            thread = threading.Thread(target=wait, args=(number,))
            thread.start()
            threads.append(thread)
            h.eventually(lambda number=number: r.info("clients")["blocked_clients"] == number + 1, 10)
        r.rpush("first", *range(8))
        for thread in threads:
            thread.join()
        h.equal(sorted(served), [(number, (b"first", str(number).encode())) for number in range(8)])

    for name, body in (("redis-work-queue loses nothing", library), ("BLMOVE hands every item to one worker", blmove),
                       ("waiters are served in their order", order)):
        h.check(f"work queue: {name}", body)
    r.flushall()
