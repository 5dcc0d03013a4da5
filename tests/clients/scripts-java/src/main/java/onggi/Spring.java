package onggi;

import static onggi.Harness.equal;
import static onggi.Harness.fails;

import java.time.Duration;
import java.util.List;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.script.DefaultRedisScript;
import org.springframework.data.redis.core.script.RedisScript;

/** Scripts of Spring Data Redis, on Lettuce. */
final class Spring {
    /** Moves an amount between two accounts if there is enough. */
    private static final String TRANSFER = """
            local have = tonumber(redis.call('GET', KEYS[1]) or '0')
            local amount = tonumber(ARGV[1])
            if have < amount then return false end
            redis.call('DECRBY', KEYS[1], amount)
            redis.call('INCRBY', KEYS[2], amount)
            return true
            """;

    private Spring() {}

    static void run(Harness h, String host, int port, String password) {
        var configuration = new RedisStandaloneConfiguration(host, port);
        configuration.setPassword(password);
        var options = LettuceClientConfiguration.builder().commandTimeout(Duration.ofSeconds(15)).build();
        var factory = new LettuceConnectionFactory(configuration, options);
        factory.afterPropertiesSet();
        factory.start();
        var template = new StringRedisTemplate(factory);
        h.check("spring: a script returns each kind of result", () -> kinds(template));
        h.check("spring: a script runs by its digest, and again after SCRIPT FLUSH", () -> transfers(template));
        h.check("spring: an error of a script reaches the caller", () -> {
            var broken = RedisScript.of("return redis.call('INCR', KEYS[1])", Long.class);
            template.opsForValue().set("text", "abc");
            fails(Exception.class, () -> template.execute(broken, List.of("text")));
            equal(template.opsForValue().get("text"), "abc");
        });
        factory.destroy();
    }

    private static void kinds(StringRedisTemplate template) {
        equal(template.execute(RedisScript.of("return 41 + ARGV[1]", Long.class), List.of(), "1"), 42L);
        equal(template.execute(RedisScript.of("return KEYS[1] .. ARGV[1]", String.class), List.of("key"), "한글"), "key한글");
        equal(template.execute(RedisScript.of("return {1, 'two', {3}}", List.class), List.of()), List.of(1L, "two", List.of(3L)));
        equal(template.execute(RedisScript.of("return redis.status_reply('OK')", String.class), List.of()), "OK");
        equal(template.execute(RedisScript.of("return nil", String.class), List.of()), null);
    }

    private static void transfers(StringRedisTemplate template) {
        var transfer = new DefaultRedisScript<>(TRANSFER, Boolean.class);
        var keys = List.of("from", "to");
        template.opsForValue().set("from", "100");
        equal(template.execute(transfer, keys, "70"), true);
        equal(template.execute(transfer, keys, "70"), false);
        template.execute((org.springframework.data.redis.core.RedisCallback<Object>) connection -> {
            connection.scriptingCommands().scriptFlush();
            return null;
        });
        equal(template.execute(transfer, keys, "30"), true);
        equal(template.opsForValue().multiGet(keys), List.of("0", "100"));
    }
}
