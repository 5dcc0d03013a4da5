"""Celery with the server as broker and as result backend."""

import threading

from celery import Celery, chain, chord, group, signature
from celery.contrib.testing.worker import start_worker

SECONDS_MAX = 30


def run(h):
    url = f"redis://:{h.password}@{h.host}:{h.port}"
    app = Celery("onggi", broker=f"{url}/1", backend=f"{url}/2", set_as_current=False)
    app.conf.update(broker_transport_options={"visibility_timeout": 60, "priority_steps": list(range(10))},
                    worker_prefetch_multiplier=1, task_acks_late=True, worker_hijack_root_logger=False,
                    worker_enable_remote_control=True, broker_connection_retry_on_startup=True)
    client = h.client(db=3)
    gate = threading.Event()
    order = []

    @app.task(name="add")
    def add(left, right):
        return left + right

    @app.task(name="total")
    def total(numbers):
        return sum(numbers)

    @app.task(name="fail")
    def fail(text):
        raise ValueError(text)

    @app.task(name="shaky", bind=True, max_retries=5, default_retry_delay=0)
    def shaky(self):
        if self.request.retries < 2:
            raise self.retry(exc=ValueError("again"))
        return self.request.retries

    @app.task(name="locked")
    def locked():
        """Increments without an atomic command, under a lock."""
        with client.lock("balance-lock", timeout=60):
            client.set("balance", int(client.get("balance") or 0) + 1)

    @app.task(name="wait")
    def wait():
        gate.wait(SECONDS_MAX)

    @app.task(name="note")
    def note(name):
        order.append(name)

    def get(result):
        return result.get(timeout=SECONDS_MAX)

    # There is one worker: the first reply ends the wait.
    inspect = app.control.inspect(limit=1, timeout=SECONDS_MAX)

    def tasks():
        h.equal(get(add.delay(2, 3)), 5)
        h.equal(get(shaky.delay()), 2)
        h.raises(ValueError, "broken", lambda: get(fail.delay("broken")))
        h.equal(get(add.apply_async((1, 1), countdown=0.3)), 2)
        text = "한글 \x00\r\n" * 20_000
        h.equal(get(add.delay(text, "!")), text + "!")

    def canvas():
        h.equal(get(chain(add.s(1, 2), add.s(3), add.s(4))()), 10)
        h.equal(get(group(add.s(n, n) for n in range(50))()), [2 * n for n in range(50)])
        h.equal(get(chord((add.s(n, 1) for n in range(30)), total.s())()), 465)
        h.equal(get(chain(chord([add.s(1, 1), add.s(2, 2)], total.s()), add.s(10))()), 16)
        # As a ChordError of the body, or as the error of its part, whichever arrives first.
        h.raises(Exception, "broken", lambda: get(chord([add.s(1, 1), fail.s("broken")], total.s())()))

    def locks():
        get(group(locked.si() for _ in range(40))())
        h.equal(client.get("balance"), b"40")

    def priorities():
        """While both threads are busy, tasks of several priorities arrive."""
        blockers = [wait.delay() for _ in range(2)]
        h.eventually(lambda: sum(map(len, (inspect.active() or {}).values())) == 2, SECONDS_MAX)
        results = [note.apply_async((str(level),), priority=level) for level in (9, 5, 0, 5, 9)]
        gate.set()
        for result in blockers + results:
            get(result)
        # Which of them the worker had prefetched when the next came is not determined.
        h.equal(sorted(order), ["0", "5", "5", "9", "9"])

    def control():
        replies = app.control.ping(limit=1, timeout=SECONDS_MAX)
        h.equal([list(reply.values()) for reply in replies], [[{"ok": "pong"}]])
        later = add.apply_async((1, 1), countdown=3600)
        h.eventually(lambda: any((inspect.scheduled() or {}).values()), SECONDS_MAX)
        app.control.revoke(later.id)
        h.eventually(lambda: any(later.id in ids for ids in (inspect.revoked() or {}).values()), SECONDS_MAX)
        h.equal(signature("add", (2, 2), app=app).delay().get(timeout=SECONDS_MAX), 4)

    with start_worker(app, pool="threads", concurrency=2, perform_ping_check=False, loglevel="CRITICAL",
                      shutdown_timeout=SECONDS_MAX):
        h.check("celery: results, retries, failures and delays", tasks)
        h.check("celery: chains, groups and chords", canvas)
        h.check("celery: locks of redis-py lose no increment", locks)
        h.check("celery: remote control and revoked tasks", control)
        h.check("celery: tasks of all priorities run", priorities)
    app.close()
