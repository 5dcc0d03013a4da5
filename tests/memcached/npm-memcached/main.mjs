// npm's memcached as its users use it. Usage: main.mjs PORT. Each check is one line, `ok - NAME` or `not ok - NAME: REASON`.

import Memcached from "memcached";
import { promisify } from "node:util";

const client = new Memcached(`127.0.0.1:${process.argv[2]}`, { timeout: 10_000, retries: 0 });
const call = (name, ...args) => promisify(client[name]).apply(client, args);
let failed = false;

function check(name, holds, why = "it did not") {
  failed ||= !holds;
  console.log(holds ? `ok - npm memcached: ${name}` : `not ok - npm memcached: ${name}: ${why}`);
}

const refused = async (...request) => call(...request).then(() => false, () => true);

check("set and get", (await call("set", "a", "text", 100)) && (await call("get", "a")) === "text");
check("numbers and objects", (await call("set", "o", { list: [1, 2], deep: { yes: true } }, 0)) && (await call("get", "o")).deep.yes);
check("buffers", (await call("set", "b", Buffer.from([0, 255, 13, 10]), 0)) && (await call("get", "b")).equals(Buffer.from([0, 255, 13, 10])));
check("add and replace", (await refused("add", "a", "x", 0)) && (await call("replace", "a", "y", 0)));
check("append and prepend", (await call("append", "a", "z")) && (await call("prepend", "a", "x")) && (await call("get", "a")) === "xyz");
const { cas } = await call("gets", "a");
check("cas", (await call("cas", "a", "new", cas, 0)) === true && (await call("cas", "a", "newer", cas, 0)) === false);
check("get of several", Object.keys(await call("getMulti", ["a", "b", "absent"])).length === 2);
check("touch", (await call("touch", "a", 50)) === true);
await call("set", "n", "10", 0);
check("incr and decr", (await call("incr", "n", 5)) === 15 && (await call("decr", "n", 100)) === 0);
check("long values", (await call("set", "l", "x".repeat(900_000), 0)) && (await call("get", "l")).length === 900_000);
check("version", (await call("version"))[0].version.startsWith("1."));
check("stats", Number((await call("stats"))[0].curr_items) >= 4);
check("settings", Number((await call("settings"))[0].item_size_max) >= 1 << 20);
check("del", (await call("del", "a")) === true && (await call("del", "a")) === false);
check("flush", (await call("flush"))[0] === true && (await call("get", "b")) === undefined);
client.end();
process.exitCode = failed ? 1 : 0;
