package onggi;

import static onggi.Harness.equal;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Response;

/** Values of a megabyte and of 64, and pipelines of ten thousand commands and more. */
final class Large {
    private Large() {}

    static void run(Harness h) {
        try (Jedis jedis = h.connect()) {
            byte[] key = "large".getBytes(StandardCharsets.UTF_8);
            for (int megabytes : new int[] {1, 64}) {
                h.check("large: a value of " + megabytes + " MB", () -> {
                    byte[] value = new byte[megabytes << 20];
                    new Random(megabytes).nextBytes(value);
                    equal(jedis.set(key, value), "OK");
                    equal(jedis.strlen(key), (long) value.length);
                    equal(jedis.get(key), value);
                    equal(jedis.getrange(key, -100, -1), Arrays.copyOfRange(value, value.length - 100, value.length));
                    equal(jedis.unlink(key), 1L);
                });
            }
            h.check("pipelines: 20000 commands, replies in order", () -> {
                List<Response<String>> replies = new ArrayList<>();
                try (Pipeline pipeline = jedis.pipelined()) {
                    for (int number = 0; number < 10_000; number++) {
                        pipeline.set("p:" + number, "value " + number);
                        replies.add(pipeline.getDel("p:" + number));
                    }
                    pipeline.sync();
                }
                for (int number = 0; number < 10_000; number++) {
                    equal(replies.get(number).get(), "value " + number);
                }
            });
        }
    }
}
