"""Locks: redis-py's own, and Redlock by majority of three databases."""

import threading

from redis.exceptions import LockError, LockNotOwnedError
from redlock import Redlock

MILLIS = 60_000


def run(h):
    client = h.client(db=6)

    def own_locks():
        lock = client.lock("lock", timeout=60, thread_local=False)
        h.equal((lock.acquire(blocking=False), lock.locked(), lock.owned()), (True, True, True))
        h.equal(client.lock("lock", timeout=60).acquire(blocking=False), False)
        h.equal(lock.extend(60), True)
        h.equal(client.pttl("lock") > 100_000, True)
        h.equal(lock.reacquire(), True)
        h.equal(client.pttl("lock") <= 60_000, True)
        lock.release()
        h.equal(client.exists("lock"), 0)
        h.raises(LockError, "unlocked", lock.release)
        lock.acquire()
        client.set("lock", "another")
        h.raises(LockNotOwnedError, "", lambda: lock.extend(1))
        h.raises(LockNotOwnedError, "", lock.release)
        h.equal(client.get("lock"), b"another")

    def majority():
        servers = [h.client(db=number) for number in (6, 7, 8)]
        redlock = Redlock(servers, retry_count=1, retry_delay=0.001)
        servers[0].set("shared", "another")
        lock = redlock.lock("shared", MILLIS)
        h.equal([server.get("shared") for server in servers], [b"another", lock.key, lock.key])
        h.equal(redlock.lock("shared", MILLIS), False)
        h.equal([server.get("shared") for server in servers], [b"another", lock.key, lock.key])
        redlock.unlock(lock)
        h.equal([server.exists("shared") for server in servers], [1, 0, 0])
        servers[1].set("shared", "another")
        h.equal(redlock.lock("shared", MILLIS), False)
        h.equal(servers[2].exists("shared"), 0)

    def increments():
        redlock = Redlock([client], retry_count=100_000, retry_delay=0.001)

        def increment():
            for _ in range(20):
                lock = redlock.lock("lock:balance", MILLIS)
                client.set("balance", int(client.get("balance") or 0) + 1)
                redlock.unlock(lock)

        threads = [threading.Thread(target=increment) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        h.equal(client.get("balance"), b"120")

    h.check("redis-py: locks are extended, acquired anew and released by their owner only", own_locks)
    h.check("redlock-py: a majority of three decides", majority)
    h.check("redlock-py: 120 increments under the lock lose none", increments)
