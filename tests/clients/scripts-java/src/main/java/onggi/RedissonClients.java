package onggi;

import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Clients of Redisson. */
final class RedissonClients {
    private RedissonClients() {}

    static RedissonClient connect(String host, int port, String password) {
        var config = new Config();
        config.setPassword(password);
        // Tasks that remove expired entries run after this many seconds.
        config.setMinCleanUpDelay(1);
        config.useSingleServer().setAddress("redis://" + host + ":" + port).setTimeout(15_000)
                .setConnectionMinimumIdleSize(2).setConnectionPoolSize(16);
        return Redisson.create(config);
    }
}
