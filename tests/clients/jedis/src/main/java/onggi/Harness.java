package onggi;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.Objects;
import java.util.function.BooleanSupplier;
import javax.net.ssl.SSLParameters;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.exceptions.JedisException;

/** Makes connections and reports checks as {@code ok - NAME} or {@code not ok - NAME: REASON}. */
final class Harness {
    /** The body of a check; what it throws is the failure. */
    interface Body {
        void run() throws Exception;
    }

    private final HostAndPort address;
    private final String password;
    private boolean failed;

    Harness(String host, int port, String password) {
        this.address = new HostAndPort(host, port);
        this.password = password;
    }

    boolean failed() {
        return failed;
    }

    /** One connection in RESP3. */
    Jedis connect() {
        return connect(RedisProtocol.RESP3);
    }

    Jedis connect(RedisProtocol protocol) {
        return connect(protocol, password);
    }

    Jedis connect(RedisProtocol protocol, String withPassword) {
        var config = config(protocol).password(withPassword).build();
        return new Jedis(address, config);
    }

    /** A pool of connections, each replaced when it breaks. */
    JedisPooled pool() {
        return new JedisPooled(address, config(RedisProtocol.RESP3).password(password).build());
    }

    private static DefaultJedisClientConfig.Builder config(RedisProtocol protocol) {
        var config = DefaultJedisClientConfig.builder().protocol(protocol).socketTimeoutMillis(60_000);
        String directory = System.getenv("ONGGI_TEST_TLS");
        if (directory != null) {
            var checked = new SSLParameters();
            checked.setEndpointIdentificationAlgorithm("HTTPS");
            config.ssl(true).sslSocketFactory(Certificates.sockets(Path.of(directory))).sslParameters(checked);
        }
        return config.clientName("wordnet");
    }

    void check(String name, Body body) {
        try {
            body.run();
            System.out.println("ok - " + name);
        } catch (Exception | AssertionError problem) {
            failed = true;
            System.out.println("not ok - " + name + ": " + problem);
            problem.printStackTrace(System.out);
        }
    }

    static void equal(Object got, Object expected) {
        boolean same = got instanceof byte[] a && expected instanceof byte[] b ? Arrays.equals(a, b) : Objects.equals(got, expected);
        if (!same) {
            throw new AssertionError("got " + shortened(got) + ", expected " + shortened(expected));
        }
    }

    private static String shortened(Object value) {
        String text = String.valueOf(value);
        return text.length() > 200 ? text.substring(0, 200) + "..." : text;
    }

    static void between(long got, long low, long high) {
        if (got < low || got > high) {
            throw new AssertionError(got + " is not between " + low + " and " + high);
        }
    }

    static void fails(String part, Body body) throws Exception {
        try {
            body.run();
        } catch (JedisException problem) {
            if (!String.valueOf(problem.getMessage()).contains(part)) {
                throw new AssertionError("error without \"" + part + "\": " + problem.getMessage());
            }
            return;
        }
        throw new AssertionError("no error was raised");
    }

    /** Waits for a condition until a deadline; the polls only shorten the wait. */
    static void eventually(long millis, BooleanSupplier condition) throws InterruptedException {
        long deadline = System.nanoTime() + millis * 1_000_000;
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError("did not happen within " + millis + " ms");
            }
            Thread.sleep(2);
        }
    }
}
