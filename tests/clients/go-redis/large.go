package main

import (
	"bytes"
	"fmt"
	"math/rand"

	"github.com/redis/go-redis/v9"
)

func large(h *harness) {
	r := h.client()
	for _, size := range []int{1 << 20, 64 << 20} {
		h.check(fmt.Sprintf("large: a value of %d MB", size>>20), func() {
			value := make([]byte, size)
			rand.New(rand.NewSource(int64(size))).Read(value)
			equal(must(r.Set(ctx, "large", value, 0).Result()), "OK")
			equal(must(r.StrLen(ctx, "large").Result()), int64(size))
			if !bytes.Equal(must(r.Get(ctx, "large").Bytes()), value) {
				panic("the value read differs")
			}
			equal(must(r.GetRange(ctx, "large", -4, -1).Bytes()), value[size-4:])
			equal(must(r.GetDel(ctx, "large").Bytes())[:10], value[:10])
			equal(must(r.Exists(ctx, "large").Result()), int64(0))
		})
	}
	h.check("pipelines: 30000 commands, replies in order", func() {
		replies := pipelined(r, func(p redis.Pipeliner) {
			for n := 0; n < 10_000; n++ {
				p.Set(ctx, fmt.Sprintf("p:%d", n), n, 0)
				p.IncrBy(ctx, fmt.Sprintf("p:%d", n), 1)
				p.GetDel(ctx, fmt.Sprintf("p:%d", n))
			}
		})
		for n := 0; n < 10_000; n++ {
			equal(replies[3*n+1].(*redis.IntCmd).Val(), int64(n+1))
			equal(replies[3*n+2].(*redis.StringCmd).Val(), fmt.Sprint(n+1))
		}
	})
}
