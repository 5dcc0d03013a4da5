package onggi;

import static net.spy.memcached.collection.CollectionResponse.CREATED_STORED;
import static net.spy.memcached.collection.CollectionResponse.DELETED;
import static net.spy.memcached.collection.CollectionResponse.DELETED_DROPPED;
import static net.spy.memcached.collection.CollectionResponse.ELEMENT_EXISTS;
import static net.spy.memcached.collection.CollectionResponse.EXIST;
import static net.spy.memcached.collection.CollectionResponse.NOT_EXIST;
import static net.spy.memcached.collection.CollectionResponse.NOT_FOUND_ELEMENT;
import static net.spy.memcached.collection.CollectionResponse.OVERFLOWED;
import static net.spy.memcached.collection.CollectionResponse.STORED;
import static onggi.Harness.answers;
import static onggi.Harness.equal;
import static onggi.Harness.fails;
import static onggi.Harness.get;
import static onggi.Harness.succeeds;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import net.spy.memcached.ArcusClient;
import net.spy.memcached.collection.CollectionAttributes;
import net.spy.memcached.collection.CollectionOverflowAction;

/** Sets. */
final class Sets {
    private Sets() {}

    static void run(Harness h, ArcusClient client) {
        h.check("sets: insert, exist, get and delete", () -> {
            succeeds(client.asyncSopInsert("set", "a", new CollectionAttributes()), CREATED_STORED);
            succeeds(client.asyncSopInsert("set", "b", null), STORED);
            fails(client.asyncSopInsert("set", "a", null), ELEMENT_EXISTS);
            answers(client.asyncSopExist("set", "a"), true, EXIST);
            answers(client.asyncSopExist("set", "c"), false, NOT_EXIST);
            equal(get(client.asyncSopGet("set", 0, false, false)), Set.of("a", "b"));
            succeeds(client.asyncSopDelete("set", "a", false), DELETED);
            fails(client.asyncSopDelete("set", "a", false), NOT_FOUND_ELEMENT);
            answers(client.asyncSopGet("set", 0, true, true), Set.of("b"), DELETED_DROPPED);
        });
        h.check("sets: a pipe of inserts and of questions", () -> {
            List<Object> numbers = IntStream.range(0, 1200).<Object>mapToObj(number -> number).toList();
            equal(get(client.asyncSopPipedInsertBulk("numbers", numbers, new CollectionAttributes())), Map.of());
            equal(get(client.asyncGetAttr("numbers")).getCount(), 1200L);
            equal(get(client.asyncSopPipedExistBulk("numbers", List.of(5, 1199, 1200))), Map.of(5, true, 1199, true, 1200, false));
            var again = get(client.asyncSopPipedInsertBulk("numbers", List.of(1, 5000, 2), null));
            equal(again.keySet(), Set.of(0, 2));
            equal(again.get(0).getResponse(), ELEMENT_EXISTS);
            equal(get(client.asyncSopGet("numbers", 30, true, false)).size(), 30);
            equal(get(client.asyncGetAttr("numbers")).getCount(), 1171L);
        });
        h.check("sets: one value into several, and a bound", () -> {
            equal(get(client.asyncSopInsertBulk(List.of("many1", "many2", "many3"), "x", new CollectionAttributes())), Map.of());
            equal(get(client.asyncSopExist("many3", "x")), true);
            get(client.asyncSopInsert("full", 1, new CollectionAttributes(0, 1L, CollectionOverflowAction.error)));
            fails(client.asyncSopInsert("full", 2, null), OVERFLOWED);
        });
    }
}
