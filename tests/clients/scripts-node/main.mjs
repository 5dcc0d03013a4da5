// Libraries of Node whose work is done by Lua scripts: queues, rate limiters and locks.
//
// Usage: node main.mjs HOST PORT PASSWORD [UNIX_SOCKET]. The server must be empty; it is flushed at the end.
import { Redis } from "ioredis";
import { bull } from "./bull.mjs";
import { bullmq } from "./bullmq.mjs";
import { equal, Harness } from "./harness.mjs";
import { rateLimiters } from "./rate_limiters.mjs";
import { redlock } from "./redlock.mjs";

const [host, port, password] = process.argv.slice(2);
const h = new Harness(host, Number(port), password);
for (const area of [bullmq, bull, rateLimiters, redlock]) {
  await area(h);
}
await h.check("the server is left empty", async () => {
  const client = new Redis(h.connection);
  equal(await client.flushall(), "OK");
  client.disconnect();
});
process.exit(h.failed ? 1 : 0);
