package onggi;

import static net.spy.memcached.collection.CollectionResponse.CREATED_STORED;
import static net.spy.memcached.collection.CollectionResponse.DELETED;
import static net.spy.memcached.collection.CollectionResponse.EFLAG_MISMATCH;
import static net.spy.memcached.collection.CollectionResponse.ELEMENT_EXISTS;
import static net.spy.memcached.collection.CollectionResponse.END;
import static net.spy.memcached.collection.CollectionResponse.NOT_FOUND_ELEMENT;
import static net.spy.memcached.collection.CollectionResponse.OUT_OF_RANGE;
import static net.spy.memcached.collection.CollectionResponse.OVERFLOWED;
import static net.spy.memcached.collection.CollectionResponse.REPLACED;
import static net.spy.memcached.collection.CollectionResponse.STORED;
import static net.spy.memcached.collection.CollectionResponse.TRIMMED;
import static net.spy.memcached.collection.CollectionResponse.UPDATED;
import static net.spy.memcached.collection.ElementFlagFilter.DO_NOT_FILTER;
import static onggi.Harness.answers;
import static onggi.Harness.equal;
import static onggi.Harness.fails;
import static onggi.Harness.get;
import static onggi.Harness.succeeds;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import net.spy.memcached.ArcusClient;
import net.spy.memcached.collection.BTreeOrder;
import net.spy.memcached.collection.CollectionAttributes;
import net.spy.memcached.collection.CollectionOverflowAction;
import net.spy.memcached.collection.Element;
import net.spy.memcached.collection.ElementFlagFilter;
import net.spy.memcached.collection.ElementFlagFilter.BitWiseOperands;
import net.spy.memcached.collection.ElementFlagFilter.CompOperands;
import net.spy.memcached.collection.ElementFlagUpdate;

/** B+trees whose keys are numbers. */
final class Trees {
    private Trees() {}

    static void run(Harness h, ArcusClient client) {
        h.check("trees: insert, upsert, update, get and delete", () -> tree(client));
        h.check("trees: filters and updates of eflags", () -> flags(client));
        h.check("trees: counts, positions and what is at them", () -> positions(client));
        h.check("trees: overflow actions, ranges of keys and what was trimmed", () -> overflow(client));
        h.check("trees: increments", () -> increments(client));
        h.check("trees: pipes of inserts and updates", () -> pipes(client));
    }

    /** The values of what was read, in the order of the answer. */
    static List<Object> values(Map<?, Element<Object>> elements) {
        return elements.values().stream().map(Element::getValue).toList();
    }

    private static byte[] bytes(int... values) {
        var all = new byte[values.length];
        for (int at = 0; at < values.length; at++) {
            all[at] = (byte) values[at];
        }
        return all;
    }

    private static void tree(ArcusClient client) throws Exception {
        succeeds(client.asyncBopInsert("tree", 30L, null, "c", new CollectionAttributes()), CREATED_STORED);
        succeeds(client.asyncBopInsert("tree", 10L, null, "a", null), STORED);
        succeeds(client.asyncBopInsert("tree", 20L, bytes(1), "b", null), STORED);
        fails(client.asyncBopInsert("tree", 20L, null, "x", null), ELEMENT_EXISTS);
        succeeds(client.asyncBopUpsert("tree", 40L, null, "d", null), STORED);
        succeeds(client.asyncBopUpsert("tree", 40L, null, "D", null), REPLACED);
        succeeds(client.asyncBopUpdate("tree", 10L, null, "A"), UPDATED);
        fails(client.asyncBopUpdate("tree", 11L, null, "x"), NOT_FOUND_ELEMENT);
        equal(values(get(client.asyncBopGet("tree", 0L, 100L, DO_NOT_FILTER, 0, 0, false, false))), List.of("A", "b", "c", "D"));
        equal(values(get(client.asyncBopGet("tree", 100L, 0L, DO_NOT_FILTER, 1, 2, false, false))), List.of("c", "b"));
        var one = get(client.asyncBopGet("tree", 20L, DO_NOT_FILTER, false, false)).get(20L);
        equal(List.of(one.getValue(), one.getLongBkey(), one.getFlagByHex()), List.of("b", 20L, "0x01"));
        answers(client.asyncBopGet("tree", 50L, 60L, DO_NOT_FILTER, 0, 0, false, false), Map.of(), NOT_FOUND_ELEMENT);
        var taken = client.asyncBopGet("tree", 0L, 15L, DO_NOT_FILTER, 0, 0, true, false);
        equal(values(get(taken)), List.of("A"));
        equal(taken.getOperationStatus().getResponse(), DELETED);
        succeeds(client.asyncBopDelete("tree", 0L, 100L, DO_NOT_FILTER, 1, false), DELETED);
        equal(values(get(client.asyncBopGet("tree", 0L, 100L, DO_NOT_FILTER, 0, 0, false, false))), List.of("c", "D"));
    }

    private static void flags(ArcusClient client) throws Exception {
        for (int number = 0; number < 16; number++) {
            get(client.asyncBopInsert("flags", number, bytes(number, 0xF0), number, new CollectionAttributes()));
        }
        get(client.asyncBopInsert("flags", 99L, null, 99, null));
        var above = new ElementFlagFilter(CompOperands.GreaterThan, bytes(12));
        equal(values(get(client.asyncBopGet("flags", 0L, 100L, above, 0, 0, false, false))), List.of(13, 14, 15));
        var odd = new ElementFlagFilter(CompOperands.Equal, bytes(1)).setBitOperand(BitWiseOperands.AND, bytes(1));
        equal(get(client.asyncBopGetItemCount("flags", 0L, 100L, odd)), 8);
        var second = new ElementFlagFilter(CompOperands.Equal, bytes(0xF0)).setCompareOffset(1);
        equal(get(client.asyncBopGetItemCount("flags", 0L, 100L, second)), 16);
        succeeds(client.asyncBopUpdate("flags", 3L, new ElementFlagUpdate(0, BitWiseOperands.OR, bytes(0x80)), null), UPDATED);
        equal(get(client.asyncBopGet("flags", 3L, DO_NOT_FILTER, false, false)).get(3L).getFlagByHex(), "0x83F0");
        succeeds(client.asyncBopUpdate("flags", 4L, new ElementFlagUpdate(bytes(7)), 44), UPDATED);
        var changed = get(client.asyncBopGet("flags", 4L, DO_NOT_FILTER, false, false)).get(4L);
        equal(List.of(changed.getFlagByHex(), changed.getValue()), List.of("0x07", 44));
        fails(client.asyncBopUpdate("flags", 99L, new ElementFlagUpdate(0, BitWiseOperands.OR, bytes(1)), null), EFLAG_MISMATCH);
        succeeds(client.asyncBopUpdate("flags", 5L, ElementFlagUpdate.RESET_FLAG, null), UPDATED);
        equal(get(client.asyncBopGet("flags", 5L, DO_NOT_FILTER, false, false)).get(5L).getFlag(), null);
        succeeds(client.asyncBopDelete("flags", 0L, 100L, above, 0, false), DELETED);
        // Element 3 has the flag 0x83 now, which was above 12, too.
        equal(get(client.asyncBopGetItemCount("flags", 0L, 100L, DO_NOT_FILTER)), 13);
    }

    private static void positions(ArcusClient client) throws Exception {
        var elements = new TreeMap<Long, Object>();
        for (long key = 0; key < 1000; key++) {
            elements.put(key * 10, "v" + key);
        }
        equal(get(client.asyncBopPipedInsertBulk("thousand", elements, new CollectionAttributes())), Map.of());
        equal(get(client.asyncBopGetItemCount("thousand", 95L, 5_000L, DO_NOT_FILTER)), 491);
        equal(get(client.asyncBopFindPosition("thousand", 70L, BTreeOrder.ASC)), 7);
        equal(get(client.asyncBopFindPosition("thousand", 70L, BTreeOrder.DESC)), 992);
        answers(client.asyncBopFindPosition("thousand", 71L, BTreeOrder.ASC), null, NOT_FOUND_ELEMENT);
        equal(values(get(client.asyncBopGetByPosition("thousand", BTreeOrder.ASC, 0, 2))), List.of("v0", "v1", "v2"));
        equal(values(get(client.asyncBopGetByPosition("thousand", BTreeOrder.DESC, 1))), List.of("v998"));
        var around = get(client.asyncBopFindPositionWithGet("thousand", 70L, BTreeOrder.ASC, 2));
        equal(List.copyOf(around.keySet()), List.of(5, 6, 7, 8, 9));
        equal(values(around), List.of("v5", "v6", "v7", "v8", "v9"));
        equal(values(get(client.asyncBopGet("thousand", 9_990L, 0L, DO_NOT_FILTER, 0, 3, false, false))),
                List.of("v999", "v998", "v997"));
    }

    private static void overflow(ArcusClient client) throws Exception {
        var smallest = new CollectionAttributes(0, 3L, CollectionOverflowAction.smallest_trim);
        for (long key = 1; key <= 3; key++) {
            get(client.asyncBopInsert("bounded", key, null, "v" + key, smallest));
        }
        var trimmed = client.asyncBopInsertAndGetTrimmed("bounded", 4L, bytes(9), "v4", null);
        equal(get(trimmed), true);
        equal(trimmed.getOperationStatus().getResponse(), TRIMMED);
        equal(List.of(trimmed.getElement().getLongBkey(), trimmed.getElement().getValue()), List.of(1L, "v1"));
        fails(client.asyncBopInsert("bounded", 0L, null, "v0", null), OUT_OF_RANGE);
        fails(client.asyncBopInsert("bounded", 4L, null, "x", null), ELEMENT_EXISTS);
        var read = client.asyncBopGet("bounded", 0L, 9L, DO_NOT_FILTER, 0, 0, false, false);
        equal(values(get(read)), List.of("v2", "v3", "v4"));
        equal(read.getOperationStatus().getResponse(), TRIMMED);
        equal(get(client.asyncGetAttr("bounded")).getTrimmed(), 1L);
        var strict = new CollectionAttributes(0, 1L, CollectionOverflowAction.error);
        get(client.asyncBopInsert("strict-tree", 1L, null, 1, strict));
        fails(client.asyncBopInsert("strict-tree", 2L, null, 2, null), OVERFLOWED);
        get(client.asyncBopInsert("ranged", 100L, null, "a", new CollectionAttributes()));
        var range = new CollectionAttributes();
        range.setMaxBkeyRange(50L);
        equal(get(client.asyncSetAttr("ranged", range)), true);
        succeeds(client.asyncBopInsert("ranged", 160L, null, "b", null), STORED);
        equal(values(get(client.asyncBopGet("ranged", 120L, 200L, DO_NOT_FILTER, 0, 0, false, false))), List.of("b"));
        equal(get(client.asyncGetAttr("ranged")).getMinBkey(), 160L);
    }

    private static void increments(ArcusClient client) throws Exception {
        get(client.asyncBopInsert("counts", 1L, null, "10", new CollectionAttributes()));
        equal(List.of(get(client.asyncBopIncr("counts", 1L, 5)), get(client.asyncBopDecr("counts", 1L, 3))), List.of(15L, 12L));
        equal(get(client.asyncBopDecr("counts", 1L, 100)), 0L);
        equal(get(client.asyncBopIncr("counts", 2L, 1, 40L, null)), 40L);
        equal(get(client.asyncBopIncr("counts", 2L, 2, 40L, null)), 42L);
        answers(client.asyncBopIncr("counts", 3L, 1), null, NOT_FOUND_ELEMENT);
    }

    private static void pipes(ArcusClient client) throws Exception {
        var elements = new ArrayList<Element<Object>>();
        for (long key = 0; key < 1300; key++) {
            elements.add(new Element<>(key, (Object) ("v" + key), bytes((int) key & 0x7F)));
        }
        equal(get(client.asyncBopPipedInsertBulk("piped-tree", elements, new CollectionAttributes())), Map.of());
        var updates = new ArrayList<Element<Object>>();
        for (long key = 0; key < 1300; key++) {
            updates.add(new Element<>(key, (Object) ("w" + key), new ElementFlagUpdate(bytes(1))));
        }
        equal(get(client.asyncBopPipedUpdateBulk("piped-tree", updates)), Map.of());
        var all = client.asyncBopGet("piped-tree", 0L, 2000L, DO_NOT_FILTER, 0, 0, false, false);
        equal(List.of(get(all).size(), get(all).get(1299L).getValue()), List.of(1300, "w1299"));
        equal(all.getOperationStatus().getResponse(), END);
        var refused = get(client.asyncBopPipedInsertBulk("piped-tree", elements.subList(0, 2), null));
        equal(List.of(refused.size(), refused.get(1).getResponse()), List.of(2, ELEMENT_EXISTS));
        equal(get(client.asyncBopInsertBulk(List.of("tree1", "tree2"), 1L, null, "x", new CollectionAttributes())), Map.of());
        equal(values(get(client.asyncBopGet("tree2", 1L, DO_NOT_FILTER, false, false))), List.of("x"));
    }
}
