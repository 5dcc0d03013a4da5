package onggi;

import static net.spy.memcached.collection.CollectionResponse.BKEY_MISMATCH;
import static net.spy.memcached.collection.CollectionResponse.CREATED_STORED;
import static net.spy.memcached.collection.CollectionResponse.DELETED;
import static net.spy.memcached.collection.CollectionResponse.STORED;
import static net.spy.memcached.collection.CollectionResponse.UPDATED;
import static net.spy.memcached.collection.ElementFlagFilter.DO_NOT_FILTER;
import static onggi.Harness.equal;
import static onggi.Harness.fails;
import static onggi.Harness.get;
import static onggi.Harness.succeeds;

import java.util.List;
import net.spy.memcached.ArcusClient;
import net.spy.memcached.collection.BTreeOrder;
import net.spy.memcached.collection.ByteArrayBKey;
import net.spy.memcached.collection.CollectionAttributes;

/** B+trees whose keys are bytes. */
final class TreesOfBytes {
    private static final byte[] FIRST = {0};
    private static final byte[] MIDDLE = {1, 2, 3};
    private static final byte[] LAST = {(byte) 0xFF, (byte) 0xFF, 0};
    private static final byte[] END = {(byte) 0xFF, (byte) 0xFF, (byte) 0xFF};

    private TreesOfBytes() {}

    static void run(Harness h, ArcusClient client) {
        h.check("trees with keys of bytes", () -> {
            succeeds(client.asyncBopInsert("bytes", MIDDLE, new byte[] {1}, "b", new CollectionAttributes()), CREATED_STORED);
            succeeds(client.asyncBopInsert("bytes", FIRST, null, "a", null), STORED);
            succeeds(client.asyncBopUpsert("bytes", LAST, null, "c", null), STORED);
            succeeds(client.asyncBopUpdate("bytes", LAST, null, "C"), UPDATED);
            fails(client.asyncBopInsert("bytes", 7L, null, "x", null), BKEY_MISMATCH);
            var all = get(client.asyncBopGet("bytes", FIRST, END, DO_NOT_FILTER, 0, 0, false, false));
            equal(Trees.values(all), List.of("a", "b", "C"));
            equal(all.get(new ByteArrayBKey(MIDDLE)).getFlagByHex(), "0x01");
            equal(get(client.asyncBopGetItemCount("bytes", MIDDLE, END, DO_NOT_FILTER)), 2);
            equal(get(client.asyncBopFindPosition("bytes", MIDDLE, BTreeOrder.DESC)), 1);
            equal(Trees.values(get(client.asyncBopFindPositionWithGet("bytes", LAST, BTreeOrder.DESC, 1))), List.of("C", "b"));
            succeeds(client.asyncBopDelete("bytes", FIRST, MIDDLE, DO_NOT_FILTER, 0, false), DELETED);
            equal(Trees.values(get(client.asyncBopGetByPosition("bytes", BTreeOrder.ASC, 0))), List.of("C"));
            equal(get(client.asyncGetAttr("bytes")).getMinBkeyByBytes().length, LAST.length);
        });
    }
}
