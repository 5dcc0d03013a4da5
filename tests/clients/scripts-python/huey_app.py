"""huey: tasks, priorities, schedules, retries, locks and semaphores."""

import threading
from datetime import timedelta

from huey import PriorityRedisExpireHuey, RedisHuey
from huey.contrib.helpers import RedisSemaphore
from huey.exceptions import TaskException, TaskLockedException

SECONDS_MAX = 30


def run(h):
    client = h.client(db=5)
    order = []
    tries = []

    def consumer(app, **options):
        return app.create_consumer(workers=2, worker_type="thread", scheduler_interval=1, initial_delay=0.01,
                                   max_delay=0.05, check_worker_health=False, **options)

    def schedules():
        # Without the errors of tries that another one follows: a client that looks early would take them for the end.
        app = RedisHuey("plain", connection_pool=client.connection_pool, blocking=True, read_timeout=1,
                        store_intermediate_errors=False)

        @app.task()
        def add(left, right):
            return left + right

        @app.task(retries=3)
        def shaky():
            tries.append(1)
            if len(tries) < 3:
                raise ValueError("again")
            return len(tries)

        @app.task()
        def broken():
            raise ValueError("broken")

        def get(result):
            return result.get(blocking=True, timeout=SECONDS_MAX)

        running = consumer(app)
        running.start()
        try:
            h.equal(get(add(2, 3)), 5)
            h.equal(get(shaky()), 3)
            h.raises(TaskException, "broken", lambda: get(broken()))
            later = add.schedule((20, 1), delay=1)
            h.equal(get(later), 21)
            kept = add.schedule((1, 1), delay=timedelta(hours=1))
            h.eventually(lambda: app.scheduled_count() == 1, SECONDS_MAX)
            kept.revoke()
            h.equal(kept.is_revoked(), True)
            chained = app.enqueue(add.s(1, 2).then(add, 3).then(add, 4))
            h.equal(chained.get(blocking=True, timeout=SECONDS_MAX), [3, 6, 10])
            h.equal([get(result) for result in add.map([(n, n) for n in range(100)])], [2 * n for n in range(100)])
        finally:
            running.stop(graceful=True)

    def priorities():
        app = PriorityRedisExpireHuey("priorities", connection_pool=client.connection_pool)

        @app.task()
        def note(name):
            order.append(name)
            return name

        for name, priority in (("c", 1), ("a", 9), ("b", 5), ("d", 0)):
            note(name, priority=priority)
        h.equal(app.pending_count(), 4)
        while app.pending_count():
            app.execute(app.dequeue())
        h.equal(order, ["a", "b", "c", "d"])
        h.equal(app.result_count(), 4)

    def locks():
        app = RedisHuey("locks", connection_pool=client.connection_pool)
        with app.lock_task("one"):
            h.raises(TaskLockedException, "one", lambda: app.lock_task("one").__enter__())
            h.equal(app.is_locked("one"), True)
        h.equal(app.is_locked("one"), False)
        semaphore = RedisSemaphore(app, "three", value=3, timeout=600)
        names = [semaphore.acquire() for _ in range(5)]
        h.equal([name is not None for name in names], [True] * 3 + [False] * 2)
        h.equal((semaphore.renew(names[0]), semaphore.renew("stranger")), (True, False))
        semaphore.release(names[0])
        passed = []
        threads = [threading.Thread(target=lambda: passed.append(semaphore.acquire())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        h.equal(sum(name is not None for name in passed), 1)

    h.check("huey: results, retries, schedules and chains", schedules)
    h.check("huey: priorities, and results that expire", priorities)
    h.check("huey: locks and semaphores", locks)
