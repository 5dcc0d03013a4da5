package onggi;

import static onggi.Harness.get;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import net.spy.memcached.ArcusClient;
import net.spy.memcached.ConnectionFactoryBuilder;
import net.spy.memcached.collection.CollectionAttributes;
import net.spy.memcached.collection.ElementFlagFilter;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;

/**
 * The client of ARCUS, which finds its nodes by ZooKeeper. It is told what to do: each line of the input is a command, and
 * each gets one line of output.
 *
 * <p>Usage: Clustered SERVERS SERVICE.
 */
public final class Clustered {
    private final String servers;
    private final String service;
    private ZooKeeper zookeeper;
    private ArcusClient client;

    private Clustered(String servers, String service) {
        this.servers = servers;
        this.service = service;
    }

    public static void main(String[] arguments) throws Exception {
        var clustered = new Clustered(arguments[0], arguments[1]);
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String answer;
            try {
                answer = clustered.answer(line.split(" "));
            } catch (Exception problem) {
                answer = "error: " + problem;
            }
            System.out.println(answer.replace('\n', ' '));
            System.out.flush();
        }
        System.exit(0);
    }

    private String answer(String[] words) throws Exception {
        return switch (words[0]) {
            case "create" -> create(words[1]);
            case "children" -> children(words[1]);
            case "connect" -> connect();
            case "nodes" -> String.valueOf(client.getAvailableServers().size());
            case "set" -> String.valueOf(set(Integer.parseInt(words[1]), words[2]));
            case "get" -> String.valueOf(hits(Integer.parseInt(words[1]), words[2]));
            case "collections" -> collections();
            default -> "error: unknown command";
        };
    }

    /** Creates a node and what is above it. */
    private String create(String path) throws Exception {
        for (int end = path.indexOf('/', 1); ; end = path.indexOf('/', end + 1)) {
            try {
                var part = end < 0 ? path : path.substring(0, end);
                zookeeper().create(part, new byte[0], Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            } catch (KeeperException.NodeExistsException exists) {
                // As it should be.
            }
            if (end < 0) {
                return "created";
            }
        }
    }

    private String children(String path) throws Exception {
        var names = new ArrayList<>(zookeeper().getChildren(path, false));
        Collections.sort(names);
        return String.join(",", names);
    }

    private ZooKeeper zookeeper() throws Exception {
        if (zookeeper == null) {
            var connected = new CountDownLatch(1);
            zookeeper = new ZooKeeper(servers, 10_000, event -> {
                if (event.getState() == KeeperState.SyncConnected) {
                    connected.countDown();
                }
            });
            connected.await();
        }
        return zookeeper;
    }

    private String connect() {
        var factory = new ConnectionFactoryBuilder().setOpTimeout(5_000);
        client = ArcusClient.createArcusClient(servers, service, factory);
        return "connected";
    }

    private int set(int count, String value) throws Exception {
        int stored = 0;
        for (int number = 0; number < count; number++) {
            stored += get(client.set("key:" + number, 0, value)) ? 1 : 0;
        }
        return stored;
    }

    private int hits(int count, String value) {
        int hits = 0;
        for (int number = 0; number < count; number++) {
            hits += value.equals(client.get("key:" + number)) ? 1 : 0;
        }
        return hits;
    }

    /** Trees of both nodes, merged. */
    private String collections() throws Exception {
        var keys = new ArrayList<String>();
        var attributes = new CollectionAttributes();
        for (int number = 0; number < 20; number++) {
            var key = "tree:" + number;
            get(client.asyncBopInsert(key, number, null, "element" + number, attributes));
            keys.add(key);
        }
        Map<String, ?> each = get(client.asyncBopGetBulk(keys, 0, 100, ElementFlagFilter.DO_NOT_FILTER, 0, 10));
        return String.valueOf(each.size());
    }
}
