package onggi;

import static net.spy.memcached.collection.CollectionResponse.CREATED_STORED;
import static net.spy.memcached.collection.CollectionResponse.DELETED;
import static net.spy.memcached.collection.CollectionResponse.DELETED_DROPPED;
import static net.spy.memcached.collection.CollectionResponse.ELEMENT_EXISTS;
import static net.spy.memcached.collection.CollectionResponse.END;
import static net.spy.memcached.collection.CollectionResponse.NOT_FOUND_ELEMENT;
import static net.spy.memcached.collection.CollectionResponse.STORED;
import static net.spy.memcached.collection.CollectionResponse.UPDATED;
import static onggi.Harness.answers;
import static onggi.Harness.equal;
import static onggi.Harness.fails;
import static onggi.Harness.get;
import static onggi.Harness.succeeds;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.spy.memcached.ArcusClient;
import net.spy.memcached.collection.CollectionAttributes;

/** Maps. */
final class Maps {
    private Maps() {}

    static void run(Harness h, ArcusClient client) {
        h.check("maps: insert, update, get and delete", () -> {
            succeeds(client.asyncMopInsert("map", "a", 1, new CollectionAttributes()), CREATED_STORED);
            succeeds(client.asyncMopInsert("map", "b", 2, null), STORED);
            fails(client.asyncMopInsert("map", "a", 9, null), ELEMENT_EXISTS);
            succeeds(client.asyncMopUpdate("map", "a", 10), UPDATED);
            fails(client.asyncMopUpdate("map", "absent", 10), NOT_FOUND_ELEMENT);
            answers(client.asyncMopGet("map", false, false), Map.of("a", 10, "b", 2), END);
            answers(client.asyncMopGet("map", "a", false, false), Map.of("a", 10), END);
            answers(client.asyncMopGet("map", List.of("a", "b", "absent"), false, false), Map.of("a", 10, "b", 2), END);
            answers(client.asyncMopGet("map", "absent", false, false), Map.of(), NOT_FOUND_ELEMENT);
            succeeds(client.asyncMopDelete("map", "a", false), DELETED);
            answers(client.asyncMopGet("map", true, true), Map.of("b", 2), DELETED_DROPPED);
        });
        h.check("maps: pipes of inserts and updates", () -> {
            var fields = new HashMap<String, Object>();
            for (int number = 0; number < 1100; number++) {
                fields.put("field" + number, number);
            }
            equal(get(client.asyncMopPipedInsertBulk("fields", fields, new CollectionAttributes())), Map.of());
            equal(get(client.asyncMopGet("fields", false, false)), fields);
            fields.replaceAll((field, number) -> (Integer) number * 2);
            equal(get(client.asyncMopPipedUpdateBulk("fields", fields)), Map.of());
            equal(get(client.asyncMopGet("fields", false, false)), fields);
            var missed = get(client.asyncMopPipedUpdateBulk("fields", Map.of("absent", 1)));
            equal(missed.get(0).getResponse(), NOT_FOUND_ELEMENT);
        });
    }
}
