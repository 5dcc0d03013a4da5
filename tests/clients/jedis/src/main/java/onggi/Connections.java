package onggi;

import static onggi.Harness.equal;
import static onggi.Harness.fails;

import java.util.Map;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.params.ClientKillParams;

/** Login, protocol versions, and coming back after the server has closed a connection. */
final class Connections {
    private Connections() {}

    static void run(Harness h) {
        h.check("connections: login is needed, wrong passwords are refused", () -> {
            fails("NOAUTH", () -> {
                try (Jedis jedis = h.connect(RedisProtocol.RESP2, null)) {
                    jedis.get("k");
                }
            });
            fails("WRONGPASS", () -> {
                try (Jedis jedis = h.connect(RedisProtocol.RESP3, "wrong")) {
                    jedis.get("k");
                }
            });
        });
        h.check("connections: RESP2 and RESP3 give the same", () -> {
            for (RedisProtocol protocol : RedisProtocol.values()) {
                try (Jedis jedis = h.connect(protocol)) {
                    equal(jedis.set("p", "v"), "OK");
                    equal(jedis.get("p"), "v");
                    equal(jedis.get("nothing"), null);
                    equal(jedis.mget("p", "nothing"), java.util.Arrays.asList("v", null));
                    equal(jedis.configGet("maxmemory"), Map.of("maxmemory", "0"));
                }
            }
        });
        h.check("connections: CLIENT GETNAME, CLIENT INFO and INFO in RESP3", () -> {
            try (Jedis jedis = h.connect()) {
                equal(jedis.clientGetname(), "wordnet");
                equal(jedis.info("server").contains("redis_version:"), true);
                equal(jedis.clientInfo().contains(" resp=3"), true);
            }
        });
        h.check("connections: the pool comes back after CLIENT KILL", () -> {
            try (JedisPooled pool = h.pool(); Jedis jedis = h.connect()) {
                equal(pool.set("p", "v"), "OK");
                long killed = jedis.clientKill(new ClientKillParams().type(redis.clients.jedis.args.ClientType.NORMAL).skipMe(ClientKillParams.SkipMe.YES));
                equal(killed >= 1, true);
                String value = null;
                for (int attempt = 0; attempt < 3 && value == null; attempt++) {
                    try {
                        value = pool.get("p");
                    } catch (redis.clients.jedis.exceptions.JedisConnectionException broken) {
                        equal(attempt < 2, true);
                    }
                }
                equal(value, "v");
            }
        });
    }
}
