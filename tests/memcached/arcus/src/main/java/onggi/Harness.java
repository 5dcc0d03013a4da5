package onggi;

import java.util.Objects;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import net.spy.memcached.collection.CollectionResponse;
import net.spy.memcached.internal.CollectionFuture;

/** The reporting of checks, as {@code ok - NAME} or {@code not ok - NAME: REASON}, and what the checks say. */
final class Harness {
    private static final int SECONDS_MAX = 20;

    private boolean failed;

    interface Body {
        void run() throws Exception;
    }

    /** Runs the body; what it throws is the failure. */
    void check(String name, Body body) {
        try {
            body.run();
            System.out.println("ok - arcus: " + name);
        } catch (Throwable problem) {
            failed = true;
            System.out.println("not ok - arcus: " + name + ": " + String.valueOf(problem.getMessage()).replace('\n', ' '));
            problem.printStackTrace(System.out);
        }
    }

    boolean failed() {
        return failed;
    }

    static void equal(Object got, Object expected) {
        if (!Objects.equals(got, expected)) {
            throw new AssertionError("got " + got + ", expected " + expected);
        }
    }

    static <T> T get(Future<T> future) throws Exception {
        return future.get(SECONDS_MAX, TimeUnit.SECONDS);
    }

    /** Fails unless the result and the response are these. */
    static void answers(CollectionFuture<?> future, Object result, CollectionResponse response) throws Exception {
        equal(get(future), result);
        equal(future.getOperationStatus().getResponse(), response);
    }

    static void succeeds(CollectionFuture<Boolean> future, CollectionResponse response) throws Exception {
        answers(future, true, response);
    }

    static void fails(CollectionFuture<Boolean> future, CollectionResponse response) throws Exception {
        answers(future, false, response);
    }
}
