package onggi;

import static onggi.Harness.between;
import static onggi.Harness.equal;
import static onggi.Harness.eventually;
import static onggi.Harness.fails;

import redis.clients.jedis.Jedis;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.args.ExpiryOption;
import redis.clients.jedis.params.GetExParams;
import redis.clients.jedis.params.SetParams;

/** Expirations in all their spellings. */
final class Expirations {
    private Expirations() {}

    static void run(Harness h) {
        try (Jedis jedis = h.connect(); Jedis other = h.connect()) {
            h.check("expirations: EX, PX, EXAT, PXAT, KEEPTTL", () -> {
                long now = Long.parseLong(jedis.time().get(0));
                jedis.set("ex", "v", SetParams.setParams().ex(100));
                jedis.set("px", "v", SetParams.setParams().px(100_000));
                jedis.set("exat", "v", SetParams.setParams().exAt(now + 100));
                jedis.set("pxat", "v", SetParams.setParams().pxAt((now + 100) * 1000));
                for (String key : new String[] {"ex", "px", "exat", "pxat"}) {
                    between(jedis.ttl(key), 95, 101);
                    between(jedis.pttl(key), 95_000, 101_000);
                    equal(jedis.set(key, "w", SetParams.setParams().keepTtl()), "OK");
                    between(jedis.ttl(key), 95, 101);
                }
                equal(jedis.expireTime("exat"), now + 100);
                equal(jedis.pexpireTime("pxat"), (now + 100) * 1000);
                equal(jedis.ttl("nothing"), -2L);
            });
            h.check("expirations: EXPIRE with NX, XX, GT, LT; PERSIST; GETEX", () -> {
                jedis.set("k", "v");
                equal(jedis.expire("k", 100, ExpiryOption.XX), 0L);
                equal(jedis.expire("k", 100, ExpiryOption.NX), 1L);
                equal(jedis.expire("k", 50, ExpiryOption.GT), 0L);
                equal(jedis.pexpire("k", 50_000, ExpiryOption.LT), 1L);
                between(jedis.pttl("k"), 45_000, 50_000);
                equal(jedis.persist("k"), 1L);
                equal(jedis.ttl("k"), -1L);
                equal(jedis.getEx("k", GetExParams.getExParams().ex(30)), "v");
                between(jedis.ttl("k"), 25, 30);
                equal(jedis.getEx("k", GetExParams.getExParams().persist()), "v");
                equal(jedis.ttl("k"), -1L);
                fails("invalid expire", () -> jedis.setex("k", 0, "v"));
                equal(jedis.expireAt("k", 1), 1L);
                equal(jedis.exists("k"), false);
            });
            h.check("expirations: a key is there until its time and gone after it", () -> {
                long started = System.nanoTime();
                jedis.psetex("soon", 120, "v");
                eventually(5000, () -> jedis.get("soon") == null);
                between((System.nanoTime() - started) / 1_000_000, 115, 5000);
            });
            h.check("expirations: 10000 keys leave without being read", () -> {
                other.select(6);
                try (Pipeline pipeline = other.pipelined()) {
                    for (int number = 0; number < 10_000; number++) {
                        pipeline.psetex("brief:" + number, 100 + number % 100, "v");
                    }
                    pipeline.sync();
                }
                eventually(20_000, () -> other.dbSize() == 0);
            });
            jedis.del("ex", "px", "exat", "pxat", "k");
        }
    }
}
