package onggi;

import static onggi.Harness.equal;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Response;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.resps.ScanResult;

/** Loads WordNet, reads it back, and meets every key in a SCAN. */
final class Catalogue {
    private static final String PLACE = "/net/sf/extjwnl/data/wordnet/wn31/data.";
    private static Map<String, String> meanings;

    private Catalogue() {}

    /** Every synset: key from its part of speech and number, value the whole line. */
    static synchronized Map<String, String> meanings() throws IOException {
        if (meanings == null) {
            meanings = new LinkedHashMap<>();
            for (String part : List.of("noun", "verb", "adj", "adv")) {
                var stream = Catalogue.class.getResourceAsStream(PLACE + part);
                try (var lines = new BufferedReader(new InputStreamReader(stream, StandardCharsets.UTF_8))) {
                    for (String line; (line = lines.readLine()) != null; ) {
                        if (!line.startsWith("  ")) {
                            meanings.put(part + ":" + line.substring(0, 8), line);
                        }
                    }
                }
            }
        }
        return meanings;
    }

    /** The keys in lists of at most {@code size}. */
    static List<List<String>> batches(List<String> keys, int size) {
        List<List<String>> out = new ArrayList<>();
        for (int at = 0; at < keys.size(); at += size) {
            out.add(keys.subList(at, Math.min(at + size, keys.size())));
        }
        return out;
    }

    static void run(Harness h) throws IOException {
        Map<String, String> all = meanings();
        List<String> keys = new ArrayList<>(all.keySet());
        try (Jedis jedis = h.connect()) {
            h.check("catalogue: " + all.size() + " meanings are stored", () -> {
                if (all.size() < 100_000) {
                    throw new AssertionError("too few meanings");
                }
                for (List<String> batch : batches(keys, 10_000)) {
                    try (Pipeline pipeline = jedis.pipelined()) {
                        batch.forEach(key -> pipeline.set(key, all.get(key)));
                        equal(new HashSet<>(pipeline.syncAndReturnAll()), Set.of("OK"));
                    }
                }
                equal(jedis.dbSize(), (long) all.size());
            });
            h.check("catalogue: pipelined GET gives every meaning back", () -> {
                for (List<String> batch : batches(keys, 10_000)) {
                    List<Response<String>> replies = new ArrayList<>();
                    try (Pipeline pipeline = jedis.pipelined()) {
                        batch.forEach(key -> replies.add(pipeline.get(key)));
                        pipeline.sync();
                    }
                    for (int at = 0; at < batch.size(); at++) {
                        equal(replies.get(at).get(), all.get(batch.get(at)));
                    }
                }
            });
            h.check("catalogue: MGET gives every meaning back, byte for byte", () -> {
                for (List<String> batch : batches(keys, 500)) {
                    byte[][] names = batch.stream().map(k -> k.getBytes(StandardCharsets.UTF_8)).toArray(byte[][]::new);
                    List<byte[]> values = jedis.mget(names);
                    for (int at = 0; at < batch.size(); at++) {
                        equal(values.get(at), all.get(batch.get(at)).getBytes(StandardCharsets.UTF_8));
                    }
                }
            });
            h.check("catalogue: SCAN meets every key", () -> equal(scan(jedis, new ScanParams().count(1000)), all.keySet()));
            h.check("catalogue: SCAN with MATCH and TYPE", () -> {
                Set<String> verbs = new HashSet<>(keys);
                verbs.removeIf(key -> !key.startsWith("verb:"));
                equal(scan(jedis, new ScanParams().count(3000).match("verb:*")), verbs);
                equal(jedis.keys("verb:*"), verbs);
            });
        }
    }

    private static Set<String> scan(Jedis jedis, ScanParams parameters) {
        Set<String> seen = new HashSet<>();
        String cursor = ScanParams.SCAN_POINTER_START;
        do {
            ScanResult<String> page = jedis.scan(cursor, parameters);
            seen.addAll(page.getResult());
            cursor = page.getCursor();
        } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
        return seen;
    }
}
