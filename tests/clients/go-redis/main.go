// An application on go-redis: the words of a large English dictionary, each with its place and its letters.
//
// Catalogue: Debian wamerican-huge 2020.12.07-2, /usr/share/dict/american-english-huge.
// Usage: go-redis HOST PORT PASSWORD UNIX_SOCKET. The server must be empty; it is flushed at the end.
package main

import (
	"context"
	"os"

	"github.com/redis/go-redis/v9"
)

func main() {
	h := newHarness(os.Args[1], os.Args[2], os.Args[3], os.Args[4])
	for _, area := range []func(*harness){catalogue, expirations, counters, bitmaps, transactions, large, connections} {
		area(h)
	}
	h.check("the server is left empty", func() { equal(must(h.client().FlushAll(ctx).Result()), "OK") })
	os.Exit(h.close())
}

var ctx = context.Background()

// batches calls `each` with pieces of at most `size` elements.
func batches[T any](all []T, size int, each func([]T)) {
	for len(all) > 0 {
		count := size
		if count > len(all) {
			count = len(all)
		}
		each(all[:count])
		all = all[count:]
	}
}

// pipelined sends what `fill` queues in one go and fails on the first error.
func pipelined(client *redis.Client, fill func(redis.Pipeliner)) []redis.Cmder {
	return must(client.Pipelined(ctx, func(p redis.Pipeliner) error {
		fill(p)
		return nil
	}))
}
