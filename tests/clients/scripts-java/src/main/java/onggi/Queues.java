package onggi;

import static onggi.Harness.SECONDS_MAX;
import static onggi.Harness.equal;
import static onggi.Harness.holds;
import static onggi.Harness.inThreads;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.redisson.api.BatchOptions;
import org.redisson.api.BatchResult;
import org.redisson.api.RedissonClient;
import org.redisson.api.TransactionOptions;
import org.redisson.client.codec.StringCodec;

/** Redisson's queues, batches, transactions and scripts of the user. */
final class Queues {
    private static final int MANY = 500;

    private Queues() {}

    static void run(Harness h, RedissonClient redisson) {
        h.check("redisson: a bounded queue blocks and gives each element once", () -> bounded(redisson));
        h.check("redisson: a delayed element arrives at its time", () -> delayed(redisson));
        h.check("redisson: priorities, rings and lists", () -> ordered(redisson));
        h.check("redisson: batches and transactions", () -> batches(redisson));
        h.check("redisson: scripts of the user", () -> scripts(redisson));
    }

    private static void bounded(RedissonClient redisson) throws Exception {
        var queue = redisson.<Integer>getBoundedBlockingQueue("bounded-queue");
        equal(queue.trySetCapacity(10), true);
        var taken = Collections.synchronizedList(new ArrayList<Integer>());
        var next = new java.util.concurrent.atomic.AtomicInteger();
        var producers = new Thread(() -> {
            try {
                for (int number = 0; number < MANY; number++) {
                    queue.put(next.getAndIncrement());
                }
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
        });
        producers.start();
        inThreads(2, () -> {
            while (taken.size() < MANY) {
                Integer number = queue.poll(1, TimeUnit.SECONDS);
                if (number != null) {
                    taken.add(number);
                }
            }
        });
        producers.join();
        equal(taken.stream().sorted().toList(), IntStream.range(0, MANY).boxed().toList());
        equal(List.of(queue.remainingCapacity(), queue.size()), List.of(10, 0));
    }

    private static void delayed(RedissonClient redisson) throws Exception {
        var queue = redisson.<String>getBlockingQueue("arrivals");
        var delayed = redisson.getDelayedQueue(queue);
        long begin = System.nanoTime();
        delayed.offer("late", 400, TimeUnit.MILLISECONDS);
        delayed.offer("early", 100, TimeUnit.MILLISECONDS);
        delayed.offer("never", 1, TimeUnit.HOURS);
        equal(delayed.size(), 3);
        equal(queue.poll(SECONDS_MAX, TimeUnit.SECONDS), "early");
        equal(queue.poll(SECONDS_MAX, TimeUnit.SECONDS), "late");
        long millis = (System.nanoTime() - begin) / 1_000_000;
        holds(millis >= 395, "after " + millis + " ms");
        equal(List.of(delayed.remove("never"), delayed.size()), List.of(true, 0));
        delayed.destroy();
    }

    private static void ordered(RedissonClient redisson) throws Exception {
        var priorities = redisson.<Integer>getPriorityQueue("priorities");
        for (int number : new int[] {5, 1, 4, 2, 3}) {
            priorities.add(number);
        }
        equal(List.of(priorities.poll(), priorities.poll(), priorities.peek(), priorities.size()), List.of(1, 2, 3, 3));
        var ring = redisson.<Integer>getRingBuffer("ring");
        ring.trySetCapacity(3);
        ring.addAll(List.of(1, 2, 3, 4, 5));
        equal(ring.readAll(), List.of(3, 4, 5));
        var list = redisson.<Integer>getList("list");
        list.addAll(IntStream.range(0, 20).boxed().toList());
        equal(List.of(list.remove(3), list.indexOf(10), list.addAfter(10, 99), list.get(10)), List.of(3, 9, 20, 99));
        list.add(0, -1);
        list.trim(0, 4);
        equal(list.readAll(), List.of(-1, 0, 1, 2, 4));
        list.fastRemove(0);
        list.fastRemove(1);
        equal(list.readAll(), List.of(0, 2, 4));
        var scores = redisson.<String>getScoredSortedSet("scores");
        scores.add(1.5, "a");
        scores.add(2.5, "b");
        equal(List.of(scores.addScoreAndGetRank("a", 2), scores.tryAdd(9, "b"), scores.first(), scores.revRank("a")),
                List.of(1, false, "b", 0));
    }

    private static void batches(RedissonClient redisson) throws Exception {
        var batch = redisson.createBatch(BatchOptions.defaults().executionMode(BatchOptions.ExecutionMode.IN_MEMORY_ATOMIC));
        for (int number = 0; number < 2000; number++) {
            batch.getBucket("batch:" + number).setAsync(number);
        }
        batch.getMapCache("batch-cache").fastPutAsync("a", 1, 60, TimeUnit.SECONDS);
        batch.getAtomicLong("batch-number").compareAndSetAsync(0, 7);
        BatchResult<?> result = batch.execute();
        equal(List.of(result.getResponses().size(), redisson.getBucket("batch:1999").get()), List.of(2002, 1999));
        equal(List.of(redisson.getMapCache("batch-cache").get("a"), redisson.getAtomicLong("batch-number").get()), List.of(1, 7L));
        redisson.getBucket("account").set(100);
        var transaction = redisson.createTransaction(TransactionOptions.defaults());
        var account = transaction.<Integer>getBucket("account");
        account.set(account.get() - 30);
        transaction.<String, Integer>getMap("entries").put("rent", 30);
        equal(redisson.getBucket("account").get(), 100);
        transaction.commit();
        equal(List.of(redisson.getBucket("account").get(), redisson.getMap("entries").get("rent")), List.of(70, 30));
        var undone = redisson.createTransaction(TransactionOptions.defaults());
        undone.getBucket("account").set(0);
        undone.rollback();
        equal(redisson.getBucket("account").get(), 70);
    }

    private static void scripts(RedissonClient redisson) throws Exception {
        var script = redisson.getScript(StringCodec.INSTANCE);
        String text = "redis.call('hset', KEYS[1], ARGV[1], ARGV[2]) return {redis.call('hgetall', KEYS[1]), #KEYS, true, false}";
        String digest = script.scriptLoad(text);
        equal(script.scriptExists(digest, "0".repeat(40)), List.of(true, false));
        List<?> reply = script.evalSha(org.redisson.api.RScript.Mode.READ_WRITE, digest, org.redisson.api.RScript.ReturnType.LIST,
                List.of("user-hash"), "field", "한글");
        equal(reply.get(0), List.of("field", "한글"));
        equal(List.of(reply.get(1), reply.get(2)), List.of(1L, 1L));
    }
}
