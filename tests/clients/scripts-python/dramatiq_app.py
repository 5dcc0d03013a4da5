"""dramatiq: its broker is a script; results, groups, delays, dead letters and rate limits."""

import threading

import dramatiq
from dramatiq import Worker, group, pipeline
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import AgeLimit, Callbacks, GroupCallbacks, Pipelines, Retries
from dramatiq.rate_limits import BucketRateLimiter, ConcurrentRateLimiter, WindowRateLimiter
from dramatiq.rate_limits.backends import RedisBackend as LimitBackend
from dramatiq.rate_limits.barrier import Barrier
from dramatiq.errors import RateLimitExceeded
from dramatiq.results import Results, ResultFailure
from dramatiq.results.backends import RedisBackend as ResultBackend

MILLIS_MAX = 30_000


def run(h):
    client = h.client(db=4)
    limits = LimitBackend(client=client)

    def broker_of(heartbeat_timeout=60_000, maintenance_chance=1_000):
        broker = RedisBroker(client=client, heartbeat_timeout=heartbeat_timeout, maintenance_chance=maintenance_chance,
                             middleware=[AgeLimit(), Callbacks(), Pipelines(), Retries(min_backoff=10, max_backoff=50),
                                         GroupCallbacks(limits), Results(backend=ResultBackend(client=client))])
        return broker

    broker = broker_of()
    dramatiq.set_broker(broker)
    done = threading.Event()
    tries = []

    @dramatiq.actor(broker=broker, store_results=True)
    def add(left, right):
        return left + right

    @dramatiq.actor(broker=broker, store_results=True, max_retries=5)
    def shaky():
        tries.append(1)
        if len(tries) < 3:
            raise ValueError("again")
        return len(tries)

    @dramatiq.actor(broker=broker, max_retries=0, store_results=True, queue_name="broken")
    def broken():
        raise ValueError("broken")

    @dramatiq.actor(broker=broker)
    def finished():
        done.set()

    @dramatiq.actor(broker=broker, queue_name="lost", store_results=True)
    def lost():
        return "rescued"

    def get(message):
        return message.get_result(block=True, timeout=MILLIS_MAX)

    def messages():
        h.equal(get(add.send(2, 3)), 5)
        h.equal(get(add.send_with_options(args=(1, 1), delay=200)), 2)
        h.equal(get(shaky.send()), 3)
        numbers = [add.send(n, n) for n in range(300)]
        h.equal([get(message) for message in numbers], [2 * n for n in range(300)])
        broker.join(add.queue_name, timeout=MILLIS_MAX)

    def composition():
        h.equal(get(pipeline([add.message(1, 2), add.message(3), add.message(4)]).run()), 10)
        many = group([add.message(n, 1) for n in range(20)])
        many.add_completion_callback(finished.message())
        h.equal(sorted(many.run().get_results(block=True, timeout=MILLIS_MAX)), list(range(1, 21)))
        h.equal(done.wait(MILLIS_MAX / 1000), True)

    def dead_letters():
        message = broken.send()
        h.raises(ResultFailure, "broken", lambda: get(message))
        h.eventually(lambda: client.zcard("dramatiq:broken.XQ") == 1, MILLIS_MAX / 1000)
        h.equal(client.hlen("dramatiq:broken.XQ.msgs"), 1)
        broker.flush_all()
        h.equal((client.zcard("dramatiq:broken.XQ"), client.llen("dramatiq:broken")), (0, 0))

    def rate_limits():
        window = WindowRateLimiter(limits, "window", limit=5, window=600)
        h.equal([passes(window) for _ in range(7)], [True] * 5 + [False] * 2)
        bucket = BucketRateLimiter(limits, "bucket", limit=2, bucket=3_600_000)
        # A bucket may end meanwhile, and another begin.
        h.equal(sum(passes(bucket) for _ in range(6)) in (2, 4), True)
        mutex = ConcurrentRateLimiter(limits, "mutex", limit=1)
        with mutex.acquire():
            h.equal(passes(mutex), False)
        h.equal(passes(mutex), True)
        barrier = Barrier(limits, "barrier", ttl=MILLIS_MAX)
        barrier.create(parties=3)
        h.equal([barrier.wait(block=False) for _ in range(3)], [False, False, True])

    def messages_of_lost_workers():
        """A consumer that took a message and never answers again; maintenance returns the message to its queue."""
        gone = broker_of(heartbeat_timeout=100, maintenance_chance=0)
        gone.declare_queue("lost")
        message = lost.send()
        taken = next(gone.consume("lost", prefetch=1, timeout=1000))
        h.equal((taken.message_id, client.llen("dramatiq:lost")), (message.message_id, 0))
        rescue = broker_of(heartbeat_timeout=100, maintenance_chance=1_000_000)
        rescue.declare_actor(lost)
        second = Worker(rescue, worker_threads=1, worker_timeout=50, queues={"lost"})
        second.start()
        try:
            h.equal(get(message), "rescued")
        finally:
            second.stop()

    worker = Worker(broker, worker_threads=4, worker_timeout=100, queues={"default", "broken"})
    worker.start()
    try:
        h.check("dramatiq: results, delays and retries", messages)
        h.check("dramatiq: pipelines and groups", composition)
        h.check("dramatiq: dead letters", dead_letters)
        h.check("dramatiq: rate limits and barriers", rate_limits)
        h.check("dramatiq: messages of lost workers return", messages_of_lost_workers)
    finally:
        worker.stop()
        broker.close()


def passes(limiter):
    """Whether the limiter lets one through."""
    try:
        with limiter.acquire():
            return True
    except RateLimitExceeded:
        return False
