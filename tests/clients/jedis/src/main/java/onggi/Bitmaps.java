package onggi;

import static onggi.Harness.equal;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.args.BitCountOption;
import redis.clients.jedis.args.BitOP;
import redis.clients.jedis.params.BitPosParams;

/** Bitmaps over the catalogue, compared with java.util.BitSet. */
final class Bitmaps {
    private Bitmaps() {}

    static void run(Harness h) {
        try (Jedis jedis = h.connect()) {
            BitSet nouns = new BitSet();
            BitSet examples = new BitSet();
            h.check("bitmaps: SETBIT, GETBIT, BITCOUNT of the catalogue", () -> {
                List<String> keys = new ArrayList<>(Catalogue.meanings().keySet());
                for (int place = 0; place < keys.size(); place++) {
                    nouns.set(place, keys.get(place).startsWith("noun:"));
                    examples.set(place, Catalogue.meanings().get(keys.get(place)).contains("; \""));
                }
                store(jedis, "nouns", nouns);
                store(jedis, "examples", examples);
                for (int place = 0; place < keys.size(); place += 997) {
                    equal(jedis.getbit("examples", place), examples.get(place));
                }
            });
            h.check("bitmaps: BITOP equals the model", () -> {
                BitSet both = (BitSet) nouns.clone();
                both.and(examples);
                jedis.bitop(BitOP.AND, "out", "nouns", "examples");
                equal(jedis.bitcount("out"), (long) both.cardinality());
                BitSet either = (BitSet) nouns.clone();
                either.or(examples);
                jedis.bitop(BitOP.OR, "out", "nouns", "examples");
                equal(jedis.bitcount("out"), (long) either.cardinality());
                BitSet one = (BitSet) nouns.clone();
                one.xor(examples);
                jedis.bitop(BitOP.XOR, "out", "nouns", "examples");
                equal(jedis.bitcount("out"), (long) one.cardinality());
                jedis.bitop(BitOP.NOT, "out", "nouns");
                equal(jedis.bitcount("out"), jedis.strlen("nouns") * 8 - nouns.cardinality());
            });
            h.check("bitmaps: ranges, BITPOS and BITFIELD", () -> {
                equal(jedis.bitcount("examples", 1000, 2000, BitCountOption.BIT), (long) examples.get(1000, 2001).cardinality());
                equal(jedis.bitcount("examples", 10, 20), (long) examples.get(80, 168).cardinality());
                equal(jedis.bitpos("examples", true), (long) examples.nextSetBit(0));
                equal(jedis.bitpos("examples", true, new BitPosParams(100)), (long) examples.nextSetBit(800));
                equal(jedis.bitpos("nouns", false), (long) nouns.nextClearBit(0));
                equal(jedis.bitfield("bf", "SET", "u16", "0", "65535", "INCRBY", "u16", "0", "1", "GET", "u16", "0"), List.of(0L, 0L, 0L));
                equal(jedis.bitfield("bf", "OVERFLOW", "SAT", "INCRBY", "i8", "#2", "200"), List.of(127L));
                equal(jedis.bitfieldReadonly("bf", "GET", "i8", "16"), List.of(127L));
            });
            jedis.del("nouns", "examples", "out", "bf");
        }
    }

    private static void store(Jedis jedis, String key, BitSet bits) {
        List<Integer> places = bits.stream().boxed().toList();
        for (int at = 0; at < places.size(); at += 10_000) {
            try (Pipeline pipeline = jedis.pipelined()) {
                places.subList(at, Math.min(at + 10_000, places.size())).forEach(place -> pipeline.setbit(key, place, true));
                pipeline.sync();
            }
        }
        equal(jedis.bitcount(key), (long) bits.cardinality());
    }
}
