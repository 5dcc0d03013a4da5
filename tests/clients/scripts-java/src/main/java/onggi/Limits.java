package onggi;

import static onggi.Harness.SECONDS_MAX;
import static onggi.Harness.equal;
import static onggi.Harness.fails;
import static onggi.Harness.holds;
import static onggi.Harness.inThreads;

import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;

/** Redisson's semaphores, latches, rate limiters and numbers. */
final class Limits {
    private Limits() {}

    static void run(Harness h, RedissonClient redisson) {
        h.check("redisson: a semaphore has exactly its permits", () -> semaphore(redisson));
        h.check("redisson: a permit with a lease expires", () -> expirable(redisson));
        h.check("redisson: a latch opens at zero", () -> latch(redisson));
        h.check("redisson: a rate limiter gives exactly its rate", () -> rate(redisson));
        h.check("redisson: numbers, identifiers and a Bloom filter", () -> numbers(redisson));
    }

    private static void semaphore(RedissonClient redisson) throws Exception {
        var semaphore = redisson.getSemaphore("semaphore");
        equal(List.of(semaphore.trySetPermits(3), semaphore.trySetPermits(5)), List.of(true, false));
        var got = new AtomicInteger();
        inThreads(8, () -> got.addAndGet(semaphore.tryAcquire() ? 1 : 0));
        equal(List.of(got.get(), semaphore.availablePermits()), List.of(3, 0));
        var woken = new Thread(() -> {
            try {
                semaphore.acquire(2);
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
        });
        woken.start();
        semaphore.release();
        semaphore.release();
        woken.join(SECONDS_MAX * 1000L);
        equal(List.of(woken.isAlive(), semaphore.availablePermits(), semaphore.drainPermits()), List.of(false, 0, 0));
        semaphore.addPermits(4);
        equal(semaphore.drainPermits(), 4);
    }

    private static void expirable(RedissonClient redisson) throws Exception {
        var semaphore = redisson.getPermitExpirableSemaphore("expirable");
        semaphore.trySetPermits(1);
        String brief = semaphore.acquire(300, TimeUnit.MILLISECONDS);
        holds(brief != null, "no permit");
        String next = semaphore.tryAcquire(SECONDS_MAX, 60, TimeUnit.SECONDS);
        holds(next != null && !next.equals(brief), "the first permit never expired");
        equal(List.of(semaphore.tryRelease(brief), semaphore.updateLeaseTime(next, 90, TimeUnit.SECONDS)), List.of(false, true));
        semaphore.release(next);
        equal(semaphore.availablePermits(), 1);
    }

    private static void latch(RedissonClient redisson) throws Exception {
        var latch = redisson.getCountDownLatch("latch");
        equal(List.of(latch.trySetCount(4), latch.trySetCount(2)), List.of(true, false));
        var passed = new AtomicInteger();
        inThreads(4, () -> {
            latch.countDown();
            holds(latch.await(SECONDS_MAX, TimeUnit.SECONDS), "the latch stays shut");
            passed.incrementAndGet();
        });
        equal(List.of(passed.get(), latch.getCount()), List.of(4, 0L));
    }

    private static void rate(RedissonClient redisson) throws Exception {
        var limiter = redisson.getRateLimiter("limiter");
        fails(Exception.class, limiter::tryAcquire);
        equal(limiter.trySetRate(RateType.OVERALL, 5, Duration.ofMinutes(10)), true);
        equal(limiter.trySetRate(RateType.OVERALL, 9, Duration.ofMinutes(10)), false);
        var got = new AtomicInteger();
        inThreads(10, () -> got.addAndGet(limiter.tryAcquire() ? 1 : 0));
        equal(List.of(got.get(), limiter.availablePermits()), List.of(5, 0L));
        equal(limiter.getConfig().getRate(), 5L);
        var window = redisson.getRateLimiter("window");
        window.trySetRate(RateType.OVERALL, 2, Duration.ofMillis(300));
        long begin = System.nanoTime();
        for (int call = 0; call < 6; call++) {
            holds(window.tryAcquire(1, Duration.ofSeconds(SECONDS_MAX)), "refused");
        }
        long millis = (System.nanoTime() - begin) / 1_000_000;
        holds(millis >= 550, "six permits of two a window of 300 ms in " + millis + " ms");
    }

    private static void numbers(RedissonClient redisson) throws Exception {
        var number = redisson.getAtomicLong("number");
        equal(List.of(number.incrementAndGet(), number.compareAndSet(1, 40), number.compareAndSet(1, 41), number.addAndGet(2)),
                List.of(1L, true, false, 42L));
        var fraction = redisson.getAtomicDouble("fraction");
        equal(List.of(fraction.addAndGet(0.5), fraction.getAndSet(2.25), fraction.get()), List.of(0.5, 0.5, 2.25));
        var identifiers = redisson.getIdGenerator("identifiers");
        identifiers.tryInit(100, 10);
        Set<Long> seen = ConcurrentHashMap.newKeySet();
        inThreads(4, () -> {
            for (int turn = 0; turn < 25; turn++) {
                holds(seen.add(identifiers.nextId()), "an identifier twice");
            }
        });
        equal(List.of(seen.size(), seen.stream().min(Long::compare).get()), List.of(100, 100L));
        var filter = redisson.<String>getBloomFilter("filter");
        equal(List.of(filter.tryInit(1000, 0.01), redisson.getBloomFilter("filter").tryInit(10, 0.1)), List.of(true, false));
        for (int word = 0; word < 200; word++) {
            filter.add("word" + word);
        }
        holds(filter.contains("word7") && filter.contains("word199"), "a word is missing");
        holds(Math.abs(filter.count() - 200) < 20, filter.count() + " words");
    }
}
