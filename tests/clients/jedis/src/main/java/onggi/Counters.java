package onggi;

import static onggi.Harness.equal;
import static onggi.Harness.fails;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.Pipeline;

/** Counters: exact sums over the catalogue and from many threads, and their limits. */
final class Counters {
    private Counters() {}

    static void run(Harness h) {
        try (Jedis jedis = h.connect()) {
            h.check("counters: words per lexicographer file", () -> {
                Map<String, Long> expected = new HashMap<>();
                List<String> keys = new ArrayList<>(Catalogue.meanings().keySet());
                for (List<String> batch : Catalogue.batches(keys, 10_000)) {
                    try (Pipeline pipeline = jedis.pipelined()) {
                        for (String key : batch) {
                            String[] fields = Catalogue.meanings().get(key).split(" ", 5);
                            long words = Long.parseLong(fields[3], 16);
                            pipeline.incrBy("words:" + fields[1], words);
                            expected.merge("words:" + fields[1], words, Long::sum);
                        }
                        pipeline.sync();
                    }
                }
                for (var count : expected.entrySet()) {
                    equal(Long.parseLong(jedis.getDel(count.getKey())), count.getValue());
                }
            });
            h.check("counters: INCR, DECR, INCRBYFLOAT and their limits", () -> {
                equal(jedis.incr("n"), 1L);
                equal(jedis.incrBy("n", 41), 42L);
                equal(jedis.decr("n"), 41L);
                equal(jedis.decrBy("n", 50), -9L);
                equal(jedis.incrByFloat("f", 2.5), 2.5);
                equal(jedis.incrByFloat("f", -0.25), 2.25);
                jedis.set("n", Long.toString(Long.MIN_VALUE));
                fails("overflow", () -> jedis.decr("n"));
                equal(jedis.get("n"), Long.toString(Long.MIN_VALUE));
                jedis.set("n", "1.5");
                fails("not an integer", () -> jedis.incr("n"));
            });
            h.check("counters: 8 threads on one pool lose no increment", () -> {
                try (JedisPooled pool = h.pool()) {
                    List<Thread> threads = new ArrayList<>();
                    for (int number = 0; number < 8; number++) {
                        threads.add(new Thread(() -> {
                            for (int step = 0; step < 1000; step++) {
                                pool.incr("together");
                            }
                        }));
                    }
                    threads.forEach(Thread::start);
                    for (Thread thread : threads) {
                        thread.join();
                    }
                }
                equal(jedis.get("together"), "8000");
            });
            jedis.del("n", "f", "together");
        }
    }
}
