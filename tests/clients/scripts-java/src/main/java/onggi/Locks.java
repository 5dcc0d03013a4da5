package onggi;

import static onggi.Harness.SECONDS_MAX;
import static onggi.Harness.equal;
import static onggi.Harness.eventually;
import static onggi.Harness.fails;
import static onggi.Harness.holds;
import static onggi.Harness.inThreads;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** Redisson's locks: each change of them is a script, and waiters are woken by a message. */
final class Locks {
    private Locks() {}

    static void run(Harness h, RedissonClient redisson) {
        h.check("redisson: a lock is reentrant, and its owner's alone", () -> reentrant(redisson));
        h.check("redisson: a waiter is woken by the release", () -> wakes(redisson));
        h.check("redisson: a lease ends by itself", () -> lease(redisson));
        h.check("redisson: increments under a lock and a fair lock lose none", () -> {
            increments(redisson, redisson.getLock("plain"));
            increments(redisson, redisson.getFairLock("fair"));
            increments(redisson, redisson.getSpinLock("spin"));
        });
        h.check("redisson: a fair lock is given in order", () -> fair(redisson));
        h.check("redisson: readers share, a writer does not", () -> readWrite(redisson));
        h.check("redisson: a lock of several is all or nothing", () -> multi(redisson));
        h.check("redisson: a fenced lock numbers its owners", () -> {
            var lock = redisson.getFencedLock("fenced");
            long first = lock.lockAndGetToken();
            lock.unlock();
            holds(lock.lockAndGetToken() > first, "the token did not grow");
            lock.unlock();
        });
    }

    /** What another thread gets. */
    private static boolean elsewhere(RLock lock) throws Exception {
        var got = new AtomicBoolean();
        inThreads(1, () -> {
            got.set(lock.tryLock());
            if (got.get()) {
                lock.unlock();
            }
        });
        return got.get();
    }

    private static void reentrant(RedissonClient redisson) throws Exception {
        RLock lock = redisson.getLock("reentrant");
        lock.lock();
        lock.lock();
        equal(lock.getHoldCount(), 2);
        equal(elsewhere(lock), false);
        lock.unlock();
        equal(elsewhere(lock), false);
        inThreads(1, () -> fails(IllegalMonitorStateException.class, lock::unlock));
        lock.unlock();
        equal(List.of(lock.isLocked(), elsewhere(lock)), List.of(false, true));
        fails(IllegalMonitorStateException.class, lock::unlock);
        lock.lock();
        equal(List.of(lock.forceUnlock(), lock.isLocked()), List.of(true, false));
    }

    private static void wakes(RedissonClient redisson) throws Exception {
        RLock lock = redisson.getLock("woken");
        lock.lock();
        var waiting = new CountDownLatch(1);
        var got = new AtomicBoolean();
        var waiter = new Thread(() -> {
            waiting.countDown();
            try {
                got.set(lock.tryLock(SECONDS_MAX, 60, TimeUnit.SECONDS));
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
        });
        waiter.start();
        waiting.await();
        eventually(() -> waiter.getState() != Thread.State.RUNNABLE);
        equal(got.get(), false);
        lock.unlock();
        waiter.join();
        equal(List.of(got.get(), lock.isLocked()), List.of(true, true));
        lock.forceUnlock();
    }

    private static void lease(RedissonClient redisson) throws Exception {
        RLock lock = redisson.getLock("leased");
        lock.lock(200, TimeUnit.MILLISECONDS);
        eventually(() -> !lock.isLocked());
        equal(elsewhere(lock), true);
        lock.lock(60, TimeUnit.SECONDS);
        long left = lock.remainTimeToLive();
        holds(left > 30_000 && left <= 60_000, left + " ms left");
        lock.unlock();
    }

    private static void increments(RedissonClient redisson, RLock lock) throws Exception {
        var balance = redisson.getBucket("balance");
        balance.set(0);
        inThreads(4, () -> {
            for (int turn = 0; turn < 10; turn++) {
                lock.lock();
                try {
                    balance.set((Integer) balance.get() + 1);
                } finally {
                    lock.unlock();
                }
            }
        });
        equal(balance.get(), 40);
    }

    private static void fair(RedissonClient redisson) throws Exception {
        RLock lock = redisson.getFairLock("ordered");
        var queue = redisson.getList("redisson_lock_queue:{ordered}", org.redisson.client.codec.StringCodec.INSTANCE);
        var order = Collections.synchronizedList(new ArrayList<Integer>());
        lock.lock();
        var threads = new ArrayList<Thread>();
        for (int number = 0; number < 4; number++) {
            int own = number;
            var thread = new Thread(() -> {
                lock.lock();
                order.add(own);
                lock.unlock();
            });
            thread.start();
            threads.add(thread);
            eventually(() -> queue.size() == own + 1);
        }
        lock.unlock();
        for (Thread thread : threads) {
            thread.join();
        }
        equal(order, List.of(0, 1, 2, 3));
    }

    private static void readWrite(RedissonClient redisson) throws Exception {
        var lock = redisson.getReadWriteLock("shared");
        lock.readLock().lock();
        equal(List.of(elsewhere(lock.readLock()), elsewhere(lock.writeLock())), List.of(true, false));
        lock.readLock().unlock();
        lock.writeLock().lock();
        equal(List.of(elsewhere(lock.readLock()), elsewhere(lock.writeLock())), List.of(false, false));
        // The writer may read, too.
        lock.readLock().lock();
        lock.writeLock().unlock();
        equal(List.of(elsewhere(lock.readLock()), elsewhere(lock.writeLock())), List.of(true, false));
        lock.readLock().unlock();
        var readers = new AtomicInteger();
        var both = new CountDownLatch(3);
        inThreads(3, () -> {
            lock.readLock().lock();
            both.countDown();
            holds(both.await(SECONDS_MAX, TimeUnit.SECONDS), "readers exclude each other");
            readers.incrementAndGet();
            lock.readLock().unlock();
        });
        equal(readers.get(), 3);
    }

    private static void multi(RedissonClient redisson) throws Exception {
        RLock[] parts = {redisson.getLock("part1"), redisson.getLock("part2"), redisson.getLock("part3")};
        RLock all = redisson.getMultiLock(parts);
        parts[2].lock();
        equal(elsewhere(all), false);
        equal(List.of(parts[0].isLocked(), parts[1].isLocked()), List.of(false, false));
        parts[2].unlock();
        all.lock();
        equal(List.of(parts[0].isLocked(), parts[1].isLocked(), parts[2].isLocked()), List.of(true, true, true));
        all.unlock();
        equal(List.of(parts[0].isLocked(), parts[1].isLocked(), parts[2].isLocked()), List.of(false, false, false));
    }
}
