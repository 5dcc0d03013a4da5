package onggi;

import static onggi.Harness.equal;
import static onggi.Harness.get;

import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import net.spy.memcached.ArcusClient;
import net.spy.memcached.CASResponse;
import net.spy.memcached.ConnectionFactoryBuilder;

/**
 * The client of ARCUS with its own operations, without ZooKeeper.
 *
 * <p>Usage: Main PORT. The server must be empty; it is flushed at the end.
 */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) throws Exception {
        var harness = new Harness();
        var factory = new ConnectionFactoryBuilder().setOpTimeout(20_000).build();
        var address = new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0]));
        var client = new ArcusClient(factory, "onggi", List.of(address));
        items(harness, client);
        Lists.run(harness, client);
        Sets.run(harness, client);
        Maps.run(harness, client);
        Trees.run(harness, client);
        TreesOfBytes.run(harness, client);
        Merges.run(harness, client);
        harness.check("flush of everything", () -> {
            equal(get(client.flush()), true);
            equal(client.get("text"), null);
        });
        client.shutdown(1, TimeUnit.SECONDS);
        System.exit(harness.failed() ? 1 : 0);
    }

    private static void items(Harness h, ArcusClient client) {
        h.check("items, their flags and their CAS ids", () -> {
            equal(get(client.set("text", 100, "한글")), true);
            equal(client.get("text"), "한글");
            equal(get(client.add("text", 0, "x")), false);
            equal(get(client.set("object", 0, List.of(1, 2))), true);
            equal(client.get("object"), List.of(1, 2));
            var seen = client.gets("text");
            equal(client.cas("text", seen.getCas(), "new"), CASResponse.OK);
            equal(client.cas("text", seen.getCas(), "newer"), CASResponse.EXISTS);
            equal(List.of(client.incr("number", 1, 41), client.incr("number", 1), client.decr("number", 100)), List.of(41L, 42L, 0L));
            equal(List.of(get(client.delete("text")), get(client.delete("text"))), List.of(true, false));
        });
        h.check("many items in bulk", () -> {
            var many = new HashMap<String, Object>();
            for (int number = 0; number < 500; number++) {
                many.put("bulk:" + number, "value" + number);
            }
            equal(get(client.asyncSetBulk(many, 100)), Map.of());
            equal(client.getBulk(many.keySet()), many);
            equal(get(client.asyncGetsBulk(List.of("bulk:1", "bulk:2", "absent"))).size(), 2);
            get(client.asyncDeleteBulk(List.copyOf(many.keySet())));
            equal(client.getBulk(many.keySet()), Map.of());
        });
    }
}
