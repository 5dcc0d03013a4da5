package onggi;

import static net.spy.memcached.collection.CollectionResponse.CREATED;
import static net.spy.memcached.collection.CollectionResponse.CREATED_STORED;
import static net.spy.memcached.collection.CollectionResponse.DELETED;
import static net.spy.memcached.collection.CollectionResponse.DELETED_DROPPED;
import static net.spy.memcached.collection.CollectionResponse.END;
import static net.spy.memcached.collection.CollectionResponse.EXISTS;
import static net.spy.memcached.collection.CollectionResponse.NOT_FOUND;
import static net.spy.memcached.collection.CollectionResponse.NOT_FOUND_ELEMENT;
import static net.spy.memcached.collection.CollectionResponse.OUT_OF_RANGE;
import static net.spy.memcached.collection.CollectionResponse.OVERFLOWED;
import static net.spy.memcached.collection.CollectionResponse.STORED;
import static net.spy.memcached.collection.CollectionResponse.TYPE_MISMATCH;
import static net.spy.memcached.collection.CollectionResponse.UNREADABLE;
import static onggi.Harness.answers;
import static onggi.Harness.equal;
import static onggi.Harness.fails;
import static onggi.Harness.get;
import static onggi.Harness.succeeds;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import net.spy.memcached.ArcusClient;
import net.spy.memcached.collection.Attributes;
import net.spy.memcached.collection.CollectionAttributes;
import net.spy.memcached.collection.CollectionOverflowAction;
import net.spy.memcached.collection.CollectionType;
import net.spy.memcached.collection.ElementValueType;

/** Lists, and the attributes that all collections have. */
final class Lists {
    private Lists() {}

    static void run(Harness h, ArcusClient client) {
        h.check("lists: insert, get and delete by index", () -> list(client));
        h.check("lists: overflow actions", () -> overflow(client));
        h.check("lists: a pipe of more than 500 elements", () -> pipe(client));
        h.check("attributes of every type", () -> attributes(client));
        h.check("a collection is unreadable until it is made readable", () -> unreadable(client));
    }

    private static void list(ArcusClient client) throws Exception {
        var create = new CollectionAttributes();
        fails(client.asyncLopInsert("list", -1, "a", null), NOT_FOUND);
        succeeds(client.asyncLopInsert("list", -1, "b", create), CREATED_STORED);
        succeeds(client.asyncLopInsert("list", -1, "d", create), STORED);
        succeeds(client.asyncLopInsert("list", 0, "a", null), STORED);
        succeeds(client.asyncLopInsert("list", 2, "c", null), STORED);
        fails(client.asyncLopInsert("list", 9, "x", null), OUT_OF_RANGE);
        answers(client.asyncLopGet("list", 0, -1, false, false), List.of("a", "b", "c", "d"), END);
        answers(client.asyncLopGet("list", -1, 0, false, false), List.of("d", "c", "b", "a"), END);
        answers(client.asyncLopGet("list", 2, false, false), List.of("c"), END);
        answers(client.asyncLopGet("list", 9, false, false), List.of(), NOT_FOUND_ELEMENT);
        answers(client.asyncLopGet("absent", 0, false, false), null, NOT_FOUND);
        answers(client.asyncLopGet("list", 0, 1, true, false), List.of("a", "b"), DELETED);
        succeeds(client.asyncLopDelete("list", 0, false), DELETED);
        answers(client.asyncLopGet("list", 0, 9, true, true), List.of("d"), DELETED_DROPPED);
        answers(client.asyncLopGet("list", 0, false, false), null, NOT_FOUND);
        equal(get(client.set("plain", 0, "x")), true);
        fails(client.asyncLopInsert("plain", 0, "x", create), TYPE_MISMATCH);
        answers(client.asyncSopGet("plain", 0, false, false), null, TYPE_MISMATCH);
    }

    private static void overflow(ArcusClient client) throws Exception {
        var bounded = new CollectionAttributes(0, 3L, CollectionOverflowAction.head_trim);
        succeeds(client.asyncLopCreate("head", ElementValueType.STRING, bounded), CREATED);
        fails(client.asyncLopCreate("head", ElementValueType.STRING, bounded), EXISTS);
        for (int number = 0; number < 5; number++) {
            succeeds(client.asyncLopInsert("head", -1, "n" + number, null), STORED);
        }
        equal(get(client.asyncLopGet("head", 0, -1, false, false)), List.of("n2", "n3", "n4"));
        var strict = new CollectionAttributes(0, 2L, CollectionOverflowAction.error);
        succeeds(client.asyncLopInsert("strict", 0, 1, strict), CREATED_STORED);
        succeeds(client.asyncLopInsert("strict", 0, 2, null), STORED);
        fails(client.asyncLopInsert("strict", 0, 3, null), OVERFLOWED);
        equal(get(client.asyncLopGet("strict", 0, -1, false, false)), List.of(2, 1));
    }

    private static void pipe(ArcusClient client) throws Exception {
        var values = new ArrayList<Object>();
        for (int number = 0; number < 1234; number++) {
            values.add("value" + number);
        }
        equal(get(client.asyncLopPipedInsertBulk("piped", -1, values, new CollectionAttributes())), Map.of());
        equal(get(client.asyncLopGet("piped", 0, -1, false, false)), values);
        var late = get(client.asyncLopPipedInsertBulk("plain", -1, values.subList(0, 3), null));
        equal(late.isEmpty(), false);
        equal(late.get(0).getResponse(), TYPE_MISMATCH);
    }

    private static void attributes(ArcusClient client) throws Exception {
        get(client.asyncSopInsert("aset", 1, new CollectionAttributes(3600, 100L, CollectionOverflowAction.error)));
        get(client.asyncMopInsert("amap", "field", 1, new CollectionAttributes()));
        get(client.asyncBopInsert("atree", 7L, null, 1, new CollectionAttributes(0, 500L, CollectionOverflowAction.largest_trim)));
        var set = get(client.asyncGetAttr("aset"));
        equal(List.of(set.getType(), set.getCount(), set.getMaxCount(), set.getOverflowAction(), set.getReadable()),
                List.of(CollectionType.set, 1L, 100L, CollectionOverflowAction.error, true));
        equal(set.getExpireTime() > 3500 && set.getExpireTime() <= 3600, true);
        var map = get(client.asyncGetAttr("amap"));
        equal(List.of(map.getType(), map.getMaxCount(), map.getExpireTime()), List.of(CollectionType.map, 4000L, 0));
        var tree = get(client.asyncGetAttr("atree"));
        equal(List.of(tree.getType(), tree.getOverflowAction(), tree.getMinBkey(), tree.getMaxBkey(), tree.getTrimmed()),
                List.of(CollectionType.btree, CollectionOverflowAction.largest_trim, 7L, 7L, 0L));
        equal(get(client.asyncGetAttr("plain")).getType(), CollectionType.kv);
        equal(get(client.asyncGetAttr("absent")), null);
        var wider = new CollectionAttributes();
        wider.setMaxCount(2000);
        wider.setOverflowAction(CollectionOverflowAction.smallest_silent_trim);
        equal(get(client.asyncSetAttr("atree", wider)), true);
        tree = get(client.asyncGetAttr("atree"));
        equal(List.of(tree.getMaxCount(), tree.getOverflowAction()), List.of(2000L, CollectionOverflowAction.smallest_silent_trim));
        equal(get(client.asyncSetAttr("plain", new Attributes(100))), true);
        equal(get(client.asyncGetAttr("plain")).getExpireTime() > 0, true);
        equal(get(client.asyncSetAttr("absent", new Attributes(100))), false);
    }

    private static void unreadable(ArcusClient client) throws Exception {
        var hidden = new CollectionAttributes();
        hidden.setReadable(false);
        succeeds(client.asyncLopCreate("hidden", ElementValueType.STRING, hidden), CREATED);
        succeeds(client.asyncLopInsert("hidden", 0, "a", null), STORED);
        answers(client.asyncLopGet("hidden", 0, -1, false, false), null, UNREADABLE);
        var shown = new CollectionAttributes();
        shown.setReadable(true);
        equal(get(client.asyncSetAttr("hidden", shown)), true);
        equal(get(client.asyncLopGet("hidden", 0, -1, false, false)), List.of("a"));
    }
}
