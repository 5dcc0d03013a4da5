package onggi;

/**
 * Libraries of Java whose work is done by Lua scripts.
 *
 * <p>Usage: HOST PORT PASSWORD [UNIX_SOCKET]. The server must be empty; it is flushed at the end.
 */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) throws Exception {
        String host = arguments[0];
        int port = Integer.parseInt(arguments[1]);
        var harness = new Harness();
        var redisson = RedissonClients.connect(host, port, arguments[2]);
        Locks.run(harness, redisson);
        Limits.run(harness, redisson);
        Caches.run(harness, redisson);
        Queues.run(harness, redisson);
        Spring.run(harness, host, port, arguments[2]);
        harness.check("the server is left empty", () -> redisson.getKeys().flushall());
        redisson.shutdown();
        System.exit(harness.failed() ? 1 : 0);
    }
}
