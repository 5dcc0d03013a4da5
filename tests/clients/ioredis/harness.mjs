// Connections to the server under test, and the reporting of checks.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";

/** What a client over TLS needs; nothing unless ONGGI_TEST_TLS names the directory of its certificates. */
function tlsOptions() {
  const directory = process.env.ONGGI_TEST_TLS;
  const read = (name) => readFileSync(`${directory}/${name}`);
  return directory ? { tls: { ca: read("ca.pem"), cert: read("client.pem"), key: read("client.key") } } : {};
}

/** Makes clients and reports checks as `ok - NAME` or `not ok - NAME: REASON`. */
export class Harness {
  constructor(host, port, password, unix) {
    Object.assign(this, { host, port, password, unix, failed: 0, open: [] });
  }

  /** A client of one connection, which connects again by itself. */
  client(options = {}) {
    const tls = options.path ? {} : tlsOptions();
    const client = new Redis({ host: this.host, port: this.port, password: this.password, ...tls, ...options });
    client.on("error", (problem) => (client.lastProblem = problem));
    this.open.push(client);
    return client;
  }

  /** Runs the body; what it throws is the failure. */
  async check(name, body) {
    try {
      await body();
      console.log(`ok - ${name}`);
    } catch (problem) {
      this.failed += 1;
      console.log(`not ok - ${name}: ${String(problem.message).split("\n")[0]}`);
      console.log(problem.stack);
    }
  }

  close() {
    this.open.forEach((client) => client.disconnect());
    return this.failed ? 1 : 0;
  }
}

/** Fails unless the two are deeply equal. */
export const equal = (got, expected) => assert.deepStrictEqual(got, expected);

/** Fails unless `low <= got <= high`. */
export const between = (got, low, high) => assert.ok(got >= low && got <= high, `${got} is not between ${low} and ${high}`);

/** Fails unless the promise is rejected with `part` in its message. */
export const fails = (promise, part) => assert.rejects(promise, (problem) => problem.message.includes(part));

/** Waits for a condition until a deadline; the polls only shorten the wait. */
export async function eventually(millis, condition) {
  const deadline = performance.now() + millis;
  while (!(await condition())) {
    assert.ok(performance.now() < deadline, `did not happen within ${millis} ms`);
    await pause(2);
  }
}

/** The elements in lists of at most `size`. */
export function* batches(all, size) {
  for (let at = 0; at < all.length; at += size) {
    yield all.slice(at, at + size);
  }
}

/** Runs a pipeline and returns its replies; an error in it is thrown. */
export async function replies(pipeline) {
  return (await pipeline.exec()).map(([problem, reply]) => {
    if (problem) throw problem;
    return reply;
  });
}
