package onggi;

import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import net.rubyeye.xmemcached.GetsResponse;
import net.rubyeye.xmemcached.XMemcachedClient;
import net.rubyeye.xmemcached.XMemcachedClientBuilder;
import net.spy.memcached.AddrUtil;
import net.spy.memcached.CASResponse;
import net.spy.memcached.CASValue;
import net.spy.memcached.ConnectionFactoryBuilder;
import net.spy.memcached.MemcachedClient;

/** spymemcached and xmemcached as their users use them. Usage: Main PORT. Each check is one line, `ok - NAME` or `not ok - NAME: REASON`. */
public final class Main {
  private static boolean failed = false;

  private static void check(String name, boolean holds) {
    failed |= !holds;
    System.out.println(holds ? "ok - " + name : "not ok - " + name + ": it did not");
  }

  public static void main(String[] args) throws Exception {
    spy(args[0]);
    x(Integer.parseInt(args[0]));
    System.exit(failed ? 1 : 0);
  }

  private static void spy(String port) throws Exception {
    var factory = new ConnectionFactoryBuilder().setProtocol(ConnectionFactoryBuilder.Protocol.TEXT).setOpTimeout(10_000).build();
    var client = new MemcachedClient(factory, AddrUtil.getAddresses("127.0.0.1:" + port));
    check("spymemcached: set and get", client.set("a", 100, "text").get() && "text".equals(client.get("a")));
    check("spymemcached: serialized objects", client.set("o", 0, List.of(1, 2, 3)).get() && List.of(1, 2, 3).equals(client.get("o")));
    check("spymemcached: compressed values", client.set("z", 0, "y".repeat(100_000)).get() && client.get("z").equals("y".repeat(100_000)));
    check("spymemcached: add and replace", !client.add("a", 0, "x").get() && client.replace("a", 0, "x").get());
    CASValue<Object> value = client.gets("a");
    check("spymemcached: cas", client.cas("a", value.getCas(), "new") == CASResponse.OK
        && client.cas("a", value.getCas(), "newer") == CASResponse.EXISTS
        && client.cas("absent", 1, "x") == CASResponse.NOT_FOUND);
    check("spymemcached: bulk", client.getBulk("a", "o", "absent").size() == 2);
    check("spymemcached: incr with default", client.incr("n", 1, 41) == 41 && client.incr("n", 1) == 42 && client.decr("n", 100) == 0);
    check("spymemcached: touch and delete", client.touch("a", 50).get() && client.delete("a").get() && !client.delete("a").get());
    var threads = new Thread[4];
    client.set("shared", 0, "0").get();
    for (int number = 0; number < threads.length; number++) {
      threads[number] = new Thread(() -> {
        for (int turn = 0; turn < 500; turn++) {
          client.incr("shared", 1);
        }
      });
      threads[number].start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
    check("spymemcached: concurrent increments", "2000".equals(client.get("shared").toString().trim()));
    Map<?, Map<String, String>> stats = client.getStats();
    check("spymemcached: stats and versions", stats.values().iterator().next().containsKey("curr_items")
        && client.getVersions().values().iterator().next().startsWith("1."));
    check("spymemcached: flush", client.flush().get() && client.get("o") == null);
    client.shutdown(1, TimeUnit.SECONDS);
  }

  private static void x(int port) throws Exception {
    var builder = new XMemcachedClientBuilder(Arrays.asList(new InetSocketAddress("127.0.0.1", port)));
    var client = (XMemcachedClient) builder.build();
    client.setOpTimeout(10_000);
    check("xmemcached: set and get", client.set("a", 100, "text") && "text".equals(client.get("a")));
    check("xmemcached: append and prepend", client.append("a", "!") && client.prepend("a", "?") && "?text!".equals(client.get("a")));
    GetsResponse<String> value = client.gets("a");
    check("xmemcached: cas", client.cas("a", 0, "new", value.getCas()) && !client.cas("a", 0, "newer", value.getCas()));
    check("xmemcached: get of several", client.get(List.of("a", "absent")).size() == 1);
    check("xmemcached: incr with default", client.incr("n", 5, 10) == 10 && client.incr("n", 5) == 15);
    check("xmemcached: delete without reply", deletes(client));
    check("xmemcached: touch", client.set("t", 0, 1) && client.touch("t", 100));
    client.flushAll();
    check("xmemcached: flush", client.get("t") == null);
    client.shutdown();
  }

  private static boolean deletes(XMemcachedClient client) throws Exception {
    client.deleteWithNoReply("a");
    return client.get("a") == null;
  }
}
