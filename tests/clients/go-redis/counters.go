package main

import (
	"fmt"
	"math"
	"sync"

	"github.com/redis/go-redis/v9"
)

func counters(h *harness) {
	r := h.client()
	h.check("counters: words by length and first letter", func() {
		expected := map[string]int64{}
		all := words()
		batches(all, 10_000, func(batch []string) {
			pipelined(r, func(p redis.Pipeliner) {
				for _, word := range batch {
					for _, key := range []string{fmt.Sprintf("count:length:%d", len(word)), "count:first:" + word[:1]} {
						p.Incr(ctx, key)
						expected[key]++
					}
				}
			})
		})
		for key, count := range expected {
			equal(must(r.Get(ctx, key).Int64()), count)
			r.Del(ctx, key)
		}
	})
	h.check("counters: INCRBY, DECRBY, INCRBYFLOAT and their limits", func() {
		equal(must(r.IncrBy(ctx, "n", 50).Result()), int64(50))
		equal(must(r.DecrBy(ctx, "n", 8).Result()), int64(42))
		equal(must(r.IncrByFloat(ctx, "f", 3.25).Result()), 3.25)
		equal(must(r.IncrByFloat(ctx, "f", -0.25).Result()), 3.0)
		r.Set(ctx, "n", math.MaxInt64, 0)
		fails(r.Incr(ctx, "n").Err(), "overflow")
		equal(must(r.Get(ctx, "n").Int64()), int64(math.MaxInt64))
		r.Set(ctx, "n", "word", 0)
		fails(r.Incr(ctx, "n").Err(), "not an integer")
	})
	h.check("counters: 16 goroutines lose no increment", func() {
		var group sync.WaitGroup
		for worker := 0; worker < 16; worker++ {
			group.Add(1)
			go func() {
				defer group.Done()
				for n := 0; n < 500; n++ {
					r.Incr(ctx, "together")
				}
			}()
		}
		group.Wait()
		equal(must(r.Get(ctx, "together").Int64()), int64(8000))
	})
	r.Del(ctx, "n", "f", "together")
}
