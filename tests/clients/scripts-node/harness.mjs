// Where the server is, and the reporting of checks.
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";

export const DEADLINE_MS = 20_000;

/** Reports checks as `ok - NAME` or `not ok - NAME: REASON`. */
export class Harness {
  constructor(host, port, password) {
    this.connection = { host, port, password };
    this.failed = 0;
  }

  /** Runs the body; what it throws is the failure, and so is no end before the deadline. */
  async check(name, body) {
    const late = new AbortController();
    const deadline = pause(DEADLINE_MS, undefined, { signal: late.signal }).then(() => {
      throw new Error(`no end after ${DEADLINE_MS} ms`);
    });
    deadline.catch(() => {});
    try {
      await Promise.race([body(), deadline]);
      console.log(`ok - ${name}`);
    } catch (problem) {
      this.failed += 1;
      console.log(`not ok - ${name}: ${String(problem.message).replaceAll("\n", " ")}`);
      console.log(problem.stack);
    } finally {
      late.abort();
    }
  }
}

/** Fails unless the two are deeply equal. */
export const equal = (got, expected) => assert.deepStrictEqual(got, expected);

/** Fails unless the condition holds. */
export const holds = (condition, text) => assert.ok(condition, text);

/** Resolves with what the promise is rejected with; fails if it is not. */
export async function rejection(promise) {
  try {
    await promise;
  } catch (problem) {
    return problem;
  }
  return assert.fail("it was not rejected");
}

/** Waits for a condition; the polls only shorten the wait, and the check has the deadline. */
export async function until(condition) {
  while (!(await condition())) {
    await pause(5);
  }
}

/** The whole numbers from 0 to `count - 1`. */
export const numbers = (count) => Array.from({ length: count }, (_, at) => at);
