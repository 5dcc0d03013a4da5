package onggi;

import static onggi.Harness.equal;
import static onggi.Harness.eventually;
import static onggi.Harness.holds;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.redisson.api.RMapCache;
import org.redisson.api.RedissonClient;
import org.redisson.api.map.event.EntryCreatedListener;
import org.redisson.api.map.event.EntryExpiredListener;
import org.redisson.api.options.LocalCachedMapOptions;
import org.redisson.api.options.LocalCachedMapOptions.SyncStrategy;
import org.redisson.client.codec.Codec;
import org.redisson.client.codec.IntegerCodec;
import org.redisson.client.codec.StringCodec;
import org.redisson.codec.CompositeCodec;

/** Redisson's maps and sets whose entries expire. */
final class Caches {
    private static final int SMALL = 10;
    /** As text, which the server adds to. */
    private static final Codec NUMBERS = new CompositeCodec(StringCodec.INSTANCE, IntegerCodec.INSTANCE);

    private Caches() {}

    static void run(Harness h, RedissonClient redisson) {
        h.check("redisson: a map cache expires its entries", () -> expires(redisson));
        h.check("redisson: a map cache keeps to its size", () -> bounded(redisson));
        h.check("redisson: a map cache tells its listeners", () -> listens(redisson));
        h.check("redisson: maps compute, replace and load as one step", () -> maps(redisson));
        h.check("redisson: native map caches, set caches and multimaps", () -> others(redisson));
        h.check("redisson: a local cache follows another client", () -> local(redisson));
    }

    private static void expires(RedissonClient redisson) throws Exception {
        RMapCache<String, Object> cache = redisson.getMapCache("cache");
        equal(cache.put("long", 1, 60, TimeUnit.SECONDS), null);
        equal(cache.put("brief", Map.of("deep", List.of(1, "two")), 200, TimeUnit.MILLISECONDS), null);
        equal(cache.putIfAbsent("long", 2, 60, TimeUnit.SECONDS), 1);
        equal(cache.fastPut("idle", "x", 60, TimeUnit.SECONDS, 30, TimeUnit.SECONDS), true);
        cache.put("forever", "y");
        eventually(() -> !cache.containsKey("brief"));
        equal(List.of(cache.get("long"), cache.get("idle"), cache.get("forever")), List.of(1, "x", "y"));
        equal(cache.get("brief"), null);
        long left = cache.remainTimeToLive("long");
        holds(left > 30_000 && left <= 60_000, left + " ms left");
        equal(List.of(cache.remainTimeToLive("forever"), cache.remainTimeToLive("absent")), List.of(-1L, -2L));
        equal(cache.readAllKeySet(), Set.of("long", "idle", "forever"));
        equal(List.of(cache.updateEntryExpiration("long", 90, TimeUnit.SECONDS, 0, TimeUnit.SECONDS)), List.of(true));
        holds(cache.remainTimeToLive("long") > 60_000, "not extended");
        equal(cache.fastRemove("long", "idle", "absent"), 2L);
    }

    private static void bounded(RedissonClient redisson) throws Exception {
        RMapCache<Integer, Integer> cache = redisson.getMapCache("bounded");
        equal(cache.trySetMaxSize(SMALL), true);
        for (int key = 0; key < 5 * SMALL; key++) {
            cache.fastPut(key, key * key, 60, TimeUnit.SECONDS);
        }
        equal(cache.size(), SMALL);
        equal(cache.get(5 * SMALL - 1), (5 * SMALL - 1) * (5 * SMALL - 1));
        equal(cache.get(0), null);
    }

    private static void listens(RedissonClient redisson) throws Exception {
        RMapCache<String, String> cache = redisson.getMapCache("noisy");
        var created = new AtomicReference<String>();
        var expired = new AtomicReference<String>();
        cache.addListener((EntryCreatedListener<String, String>) event -> created.set(event.getKey() + event.getValue()));
        cache.addListener((EntryExpiredListener<String, String>) event -> expired.set(event.getKey() + event.getValue()));
        cache.put("a", "1", 100, TimeUnit.MILLISECONDS);
        eventually(() -> "a1".equals(created.get()));
        // The access after its time tells of the expiration, or the task of the library does.
        eventually(() -> cache.get("a") == null && "a1".equals(expired.get()));
    }

    private static void maps(RedissonClient redisson) throws Exception {
        var map = redisson.<String, Integer>getMap("map", NUMBERS);
        var many = new HashMap<String, Integer>();
        for (int key = 0; key < 5000; key++) {
            many.put("key" + key, key);
        }
        map.putAll(many);
        equal(map.readAllMap(), many);
        equal(List.of(map.replace("key1", 1, 100), map.replace("key1", 1, 200), map.remove("key2", 9)), List.of(true, false, false));
        equal(List.of(map.addAndGet("key1", 5), map.merge("key3", 10, Integer::sum), map.fastPutIfAbsent("key4", 0)),
                List.of(105, 13, false));
        equal(map.putIfExists("absent", 1), null);
        equal(map.getAll(Set.of("key1", "key3", "absent")), Map.of("key1", 105, "key3", 13));
        equal(map.fastRemove("key1", "key2", "absent"), 2L);
        equal(map.size(), 4998);
    }

    private static void others(RedissonClient redisson) throws Exception {
        var cache = redisson.<String, Integer>getMapCacheNative("native");
        cache.put("long", 1, Duration.ofMinutes(1));
        cache.put("brief", 2, Duration.ofMillis(200));
        eventually(() -> !cache.containsKey("brief"));
        equal(List.of(cache.get("long"), cache.readAllKeySet()), List.of(1, Set.of("long")));
        var set = redisson.<String>getSetCache("set");
        equal(List.of(set.add("a", 60, TimeUnit.SECONDS), set.add("a"), set.add("b", 200, TimeUnit.MILLISECONDS)),
                List.of(true, false, true));
        // In the millisecond of its time an element is listed and not contained.
        eventually(() -> set.readAll().equals(Set.of("a")));
        equal(set.contains("b"), false);
        var multimap = redisson.<String, Integer>getSetMultimapCache("multimap");
        equal(List.of(multimap.put("a", 1), multimap.put("a", 2), multimap.put("a", 1), multimap.put("b", 3)),
                List.of(true, true, false, true));
        equal(multimap.expireKey("b", 100, TimeUnit.MILLISECONDS), true);
        eventually(() -> !multimap.containsKey("b"));
        equal(List.of(multimap.getAll("a"), multimap.removeAll("a"), multimap.containsKey("a")), List.of(Set.of(1, 2), Set.of(1, 2), false));
    }

    private static void local(RedissonClient redisson) throws Exception {
        var options = LocalCachedMapOptions.<String, Integer>name("local").syncStrategy(SyncStrategy.INVALIDATE);
        var one = redisson.getLocalCachedMap(options);
        one.put("a", 1);
        equal(one.get("a"), 1);
        equal(one.cachedKeySet(), Set.of("a"));
        var two = redisson.getLocalCachedMap(options);
        two.put("a", 2);
        var seen = ConcurrentHashMap.<Integer>newKeySet();
        eventually(() -> {
            seen.add(one.get("a"));
            return one.get("a") == 2;
        });
        holds(Set.of(1, 2).containsAll(seen), "saw " + seen);
    }
}
