package onggi;

import static net.spy.memcached.collection.CollectionResponse.DUPLICATED;
import static net.spy.memcached.collection.CollectionResponse.END;
import static net.spy.memcached.collection.CollectionResponse.NOT_FOUND;
import static net.spy.memcached.collection.ElementFlagFilter.DO_NOT_FILTER;
import static onggi.Harness.equal;
import static onggi.Harness.get;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import net.spy.memcached.ArcusClient;
import net.spy.memcached.collection.CollectionAttributes;
import net.spy.memcached.collection.SMGetElement;
import net.spy.memcached.collection.SMGetMode;

/** Reads of several b+trees at once. */
final class Merges {
    private static final int TREES = 20;

    private Merges() {}

    static void run(Harness h, ArcusClient client) {
        h.check("trees: a get of several", () -> several(client));
        h.check("trees: a sorted merge of several", () -> merge(client));
    }

    /** Fills the trees: tree number N has the keys N, N + TREES, N + 2 TREES and so on. Returns their keys. */
    private static List<String> fill(ArcusClient client) throws Exception {
        var keys = new ArrayList<String>();
        for (int tree = 0; tree < TREES; tree++) {
            keys.add("merge" + tree);
            for (int turn = 0; turn < 5; turn++) {
                long bkey = tree + (long) turn * TREES;
                get(client.asyncBopInsert("merge" + tree, bkey, null, "v" + bkey, new CollectionAttributes()));
            }
        }
        return keys;
    }

    private static void several(ArcusClient client) throws Exception {
        var keys = fill(client);
        keys.add("absent-tree");
        var results = get(client.asyncBopGetBulk(keys, 0L, 39L, DO_NOT_FILTER, 0, 10));
        equal(results.keySet(), Set.copyOf(keys));
        var third = results.get("merge3");
        equal(List.of(third.getCollectionResponse().getResponse().name(), List.copyOf(third.getElements().keySet())),
                List.of("OK", List.of(3L, 23L)));
        equal(third.getElements().get(23L).getValue(), "v23");
        equal(results.get("absent-tree").getCollectionResponse().getResponse(), NOT_FOUND);
    }

    private static void merge(ArcusClient client) throws Exception {
        var keys = fill(client);
        keys.add("absent-tree");
        for (SMGetMode mode : SMGetMode.values()) {
            var merged = client.asyncBopSortMergeGet(keys, 10L, 1000L, DO_NOT_FILTER, 50, mode);
            equal(get(merged).stream().map(SMGetElement::getBkey).toList(),
                    java.util.stream.LongStream.range(10, 60).boxed().toList());
            equal(get(merged).get(5).getKey() + get(merged).get(5).getValue(), "merge15v15");
            equal(merged.getMissedKeys().keySet(), Set.of("absent-tree"));
            equal(merged.getOperationStatus().getResponse(), END);
        }
        get(client.asyncBopInsert("merge0", 15L, null, "twice", null));
        var duplicate = client.asyncBopSortMergeGet(keys, 15L, 16L, DO_NOT_FILTER, 10, SMGetMode.DUPLICATE);
        equal(get(duplicate).stream().map(element -> element.getKey() + "=" + element.getValue()).toList(),
                List.of("merge0=twice", "merge15=v15", "merge16=v16"));
        equal(duplicate.getOperationStatus().getResponse(), DUPLICATED);
        var unique = client.asyncBopSortMergeGet(keys, 15L, 16L, DO_NOT_FILTER, 10, SMGetMode.UNIQUE);
        equal(get(unique).stream().map(SMGetElement::getBkey).toList(), List.of(15L, 16L));
        var backwards = client.asyncBopSortMergeGet(keys, 99L, 0L, DO_NOT_FILTER, 3, SMGetMode.DUPLICATE);
        equal(get(backwards).stream().map(SMGetElement::getBkey).toList(), List.of(99L, 98L, 97L));
    }
}
