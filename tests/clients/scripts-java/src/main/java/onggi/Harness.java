package onggi;

import java.util.Objects;
import java.util.concurrent.Callable;

/** The reporting of checks, as {@code ok - NAME} or {@code not ok - NAME: REASON}. */
final class Harness {
    static final int SECONDS_MAX = 60;

    private boolean failed;

    interface Body {
        void run() throws Exception;
    }

    /** Runs the body; what it throws is the failure. */
    void check(String name, Body body) {
        try {
            body.run();
            System.out.println("ok - " + name);
        } catch (Throwable problem) {
            failed = true;
            System.out.println("not ok - " + name + ": " + String.valueOf(problem.getMessage()).replace('\n', ' '));
            problem.printStackTrace(System.out);
        }
    }

    boolean failed() {
        return failed;
    }

    /** Fails unless the two are equal. */
    static void equal(Object got, Object expected) {
        holds(Objects.equals(got, expected), "got " + got + ", expected " + expected);
    }

    /** Fails unless the condition holds. */
    static void holds(boolean condition, String text) {
        if (!condition) {
            throw new AssertionError(text);
        }
    }

    /** Fails unless the body throws the kind. */
    static void fails(Class<? extends Throwable> kind, Body body) throws Exception {
        try {
            body.run();
        } catch (Throwable problem) {
            holds(kind.isInstance(problem), "threw " + problem);
            return;
        }
        throw new AssertionError("no " + kind.getSimpleName());
    }

    /** Waits for a condition until a deadline; the polls only shorten the wait. */
    static void eventually(Callable<Boolean> condition) throws Exception {
        long deadline = System.nanoTime() + SECONDS_MAX * 1_000_000_000L;
        while (!condition.call()) {
            holds(System.nanoTime() < deadline, "did not happen within " + SECONDS_MAX + " s");
            Thread.sleep(2);
        }
    }

    /** Runs the body in as many threads at once; what one throws is thrown. */
    static void inThreads(int count, Body body) throws Exception {
        var problems = new java.util.concurrent.ConcurrentLinkedQueue<Throwable>();
        var threads = new Thread[count];
        for (int number = 0; number < count; number++) {
            threads[number] = new Thread(() -> {
                try {
                    body.run();
                } catch (Throwable problem) {
                    problems.add(problem);
                }
            });
            threads[number].start();
        }
        for (Thread thread : threads) {
            thread.join(SECONDS_MAX * 1000L);
            holds(!thread.isAlive(), "a thread did not end within " + SECONDS_MAX + " s");
        }
        if (!problems.isEmpty()) {
            throw new AssertionError("in a thread: " + problems.peek(), problems.peek());
        }
    }
}
