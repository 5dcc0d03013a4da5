"""MULTI, EXEC, DISCARD and WATCH, with conflicts made on purpose and by contention."""

import threading

import redis


def run(h):
    r = h.client()

    def results_in_order():
        pipe = r.pipeline(transaction=True)
        pipe.set("t", "1").incr("t").get("t").ttl("t").delete("t")
        h.equal(pipe.execute(), [True, 2, b"2", -1, 1])

    def conflict():
        other = h.client()
        r.set("seat", "free")
        pipe = r.pipeline()
        pipe.watch("seat")
        h.equal(pipe.get("seat"), b"free")
        other.set("seat", "taken")
        pipe.multi()
        pipe.set("seat", "mine")
        h.raises(redis.WatchError, "", pipe.execute)
        h.equal(r.get("seat"), b"taken")

    def conflict_kinds():
        other = h.client(db=7)
        for change in (
            lambda: other.delete("w"),
            lambda: other.expire("w", 100),
            lambda: other.rename("w", "w2"),
            lambda: other.append("w", "x"),
            lambda: other.setbit("w", 0, 1),
            lambda: other.copy("n", "w", replace=True),
            lambda: other.flushdb(),
        ):
            pipe = h.client(db=7).pipeline()
            other.mset({"w": "v", "n": "1"})
            pipe.watch("w")
            change()
            pipe.multi()
            pipe.ping()
            h.raises(redis.WatchError, "", pipe.execute)
        other.flushdb()

    def expired_while_watched():
        r.set("w", "v", px=30)
        pipe = r.pipeline()
        pipe.watch("w")
        other = h.client()
        h.eventually(lambda: other.exists("w") == 0, 5)
        pipe.multi()
        pipe.set("w", "again")
        h.raises(redis.WatchError, "", pipe.execute)

    def no_conflict():
        other = h.client()
        r.set("w", "v")
        pipe = r.pipeline()
        pipe.watch("w")
        other.get("w")
        other.set("unrelated", "x")
        pipe.multi()
        pipe.append("w", "!")
        h.equal(pipe.execute(), [2])
        pipe.watch("w")
        other.set("w", "changed")
        pipe.unwatch()
        pipe.multi()
        pipe.get("w")
        h.equal(pipe.execute(), [b"changed"])

    def retry_loops():
        r.set("balance", 0)

        def work():
            mine = h.client()
            for _ in range(100):
                mine.transaction(lambda pipe: add_one(pipe), "balance")

        def add_one(pipe):
            value = int(pipe.get("balance"))
            pipe.multi()
            pipe.set("balance", value + 1)

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        h.equal(r.get("balance"), b"400")

    def discard_and_abort():
        connection = h.client(single_connection_client=True)
        run = connection.execute_command
        h.equal(run("MULTI"), b"OK")
        h.equal(run("APPEND", "d", "1"), b"QUEUED")
        h.equal(run("DISCARD"), b"OK")
        h.equal(run("EXISTS", "d"), 0)
        h.raises(redis.ResponseError, "DISCARD without MULTI", lambda: run("DISCARD"))
        h.raises(redis.ResponseError, "EXEC without MULTI", lambda: run("EXEC"))
        run("MULTI")
        run("APPEND", "d", "1")
        h.raises(redis.ResponseError, "unknown command", lambda: run("NOSUCH"))
        h.raises(redis.exceptions.ExecAbortError, "discarded because of previous errors", lambda: run("EXEC"))
        h.equal(run("EXISTS", "d"), 0)

    def failed_command_inside():
        pipe = r.pipeline(transaction=True)
        pipe.set("text", "abc").incr("text").set("after", "yes")
        replies = pipe.execute(raise_on_error=False)
        h.equal((replies[0], type(replies[1]), replies[2]), (True, redis.ResponseError, True))
        h.equal(r.get("after"), b"yes")

    def long_transaction():
        pipe = r.pipeline(transaction=True)
        for number in range(10_000):
            pipe.set(f"tx:{number}", number)
        h.equal(pipe.execute(), [True] * 10_000)
        h.equal(r.delete(*[f"tx:{number}" for number in range(10_000)]), 10_000)

    for name, body in (
        ("results come in order", results_in_order),
        ("a change by another client aborts EXEC", conflict),
        ("each kind of change aborts EXEC", conflict_kinds),
        ("expiration of a watched key aborts EXEC", expired_while_watched),
        ("reads, other keys and UNWATCH do not abort", no_conflict),
        ("4 clients with retry loops lose no update", retry_loops),
        ("DISCARD, and EXECABORT after a bad command", discard_and_abort),
        ("a command that fails inside leaves the others", failed_command_inside),
        ("10000 commands in one transaction", long_transaction),
    ):
        h.check(f"transactions: {name}", body)
