package onggi;

import static onggi.Harness.equal;
import static onggi.Harness.fails;

import java.util.ArrayList;
import java.util.List;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.exceptions.JedisDataException;

/** MULTI, EXEC, DISCARD and WATCH, with conflicts made on purpose and by contention. */
final class Transactions {
    private Transactions() {}

    static void run(Harness h) {
        try (Jedis jedis = h.connect(); Jedis other = h.connect()) {
            h.check("transactions: results come in order", () -> {
                Transaction transaction = jedis.multi();
                transaction.set("t", "1");
                transaction.incrBy("t", 9);
                transaction.get("t");
                equal(transaction.exec(), List.of("OK", 10L, "10"));
            });
            h.check("transactions: a change between WATCH and EXEC aborts", () -> {
                jedis.watch("t");
                other.set("t", "other");
                Transaction transaction = jedis.multi();
                transaction.set("t", "mine");
                equal(transaction.exec(), null);
                equal(jedis.get("t"), "other");
            });
            h.check("transactions: UNWATCH and reads do not abort", () -> {
                jedis.watch("t");
                other.get("t");
                Transaction transaction = jedis.multi();
                transaction.append("t", "!");
                equal(transaction.exec(), List.of(6L));
                jedis.watch("t");
                other.set("t", "again");
                jedis.unwatch();
                transaction = jedis.multi();
                transaction.get("t");
                equal(transaction.exec(), List.of("again"));
            });
            h.check("transactions: DISCARD forgets; a bad command aborts; a failing one does not", () -> {
                Transaction transaction = jedis.multi();
                transaction.set("t", "never");
                equal(transaction.discard(), "OK");
                equal(jedis.get("t"), "again");
                Transaction failing = jedis.multi();
                failing.incr("t");
                failing.set("t", "after");
                List<Object> replies = failing.exec();
                equal(replies.get(0) instanceof JedisDataException, true);
                equal(replies.get(1), "OK");
                fails("EXEC without MULTI", () -> jedis.sendCommand(redis.clients.jedis.Protocol.Command.EXEC));
            });
            h.check("transactions: 4 threads with retry loops lose no update", () -> {
                jedis.set("balance", "0");
                List<Thread> threads = new ArrayList<>();
                for (int number = 0; number < 4; number++) {
                    threads.add(new Thread(() -> addHundred(h)));
                }
                threads.forEach(Thread::start);
                for (Thread thread : threads) {
                    thread.join();
                }
                equal(jedis.getDel("balance"), "400");
            });
            h.check("transactions: 10000 commands in one", () -> {
                Transaction transaction = jedis.multi();
                for (int number = 0; number < 10_000; number++) {
                    transaction.incr("long");
                }
                List<Object> replies = transaction.exec();
                equal(replies.get(9_999), 10_000L);
            });
            jedis.del("t", "long");
        }
    }

    private static void addHundred(Harness h) {
        try (Jedis mine = h.connect()) {
            for (int step = 0; step < 100; step++) {
                List<Object> done;
                do {
                    mine.watch("balance");
                    long value = Long.parseLong(mine.get("balance"));
                    Transaction transaction = mine.multi();
                    transaction.set("balance", Long.toString(value + 1));
                    done = transaction.exec();
                } while (done == null);
            }
        }
    }
}
