// npm's ssdb as its users use it. Usage: main.mjs PORT. Each check is one line, `ok - NAME` or `not ok - NAME: REASON`.

import ssdb from "ssdb";
import { promisify } from "node:util";

const pool = ssdb.createPool({ host: "127.0.0.1", port: Number(process.argv[2]), timeout: 10_000 });
const connection = pool.acquire();
const call = (name, ...args) => promisify(connection[name]).apply(connection, args);
let failed = false;

function check(name, given, wanted) {
  const [shown, expected] = [JSON.stringify(given), JSON.stringify(wanted)];
  failed ||= shown !== expected;
  console.log(shown === expected ? `ok - npm ssdb: ${name}` : `not ok - npm ssdb: ${name}: ${shown}, not ${expected}`);
}

const all = async (...requests) => {
  const replies = [];
  for (const request of requests) replies.push(await call(...request));
  return replies;
};

check("set and get", await all(["set", "a", "text"], ["get", "a"], ["get", "none"]), [1, "text", undefined]);
await call("multi_set", "x", "1", "y", "2");
check("multi_get", await call("multi_get", "x", "none", "y"), ["x", "1", "y", "2"]);
check("scan", await call("scan", "a", "y", 10), ["x", "1", "y", "2"]);
await call("multi_hset", "h", "b", "2", "a", "1");
check("hgetall", await call("hgetall", "h"), ["a", "1", "b", "2"]);
await call("multi_zset", "z", "m", "5", "n", "7");
check("zscan", await call("zscan", "z", "m", 5, "", 10), ["n", "7"]);
check("zavg", await call("zavg", "z", "", ""), 6);
check("queues", await all(["qpush", "q", "1"], ["qpush_front", "q", "0"], ["qslice", "q", 0, -1]), [1, 2, ["0", "1"]]);
check("hexists", await all(["hexists", "h", "a"], ["hexists", "h", "none"]), [true, false]);
const refused = await call("incr", "a").then(() => "no error", (error) => error.message);
check("errors", refused, "error on command 'incr'");
check("long values", (await call("set", "l", "é".repeat(200_000))) && (await call("get", "l")).length, 200_000);
const many = await Promise.all(Array.from({ length: 500 }, (_, number) => call("incr", "n", number)));
check("a pipeline", many.at(-1), (499 * 500) / 2);
check("del", await all(["del", "a"], ["get", "a"]), [1, undefined]);
connection._conn.close();
process.exitCode = failed ? 1 : 0;
