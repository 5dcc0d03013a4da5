package main

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

func expirations(h *harness) {
	r := h.client()
	between := func(got, low, high time.Duration) {
		if got < low || got > high {
			panic(fmt.Sprintf("%v is not between %v and %v", got, low, high))
		}
	}
	h.check("expirations: SET EX, PX, EXAT, KEEPTTL", func() {
		r.Set(ctx, "ex", "v", 100*time.Second)
		r.Set(ctx, "px", "v", 100_500*time.Millisecond)
		r.SetArgs(ctx, "exat", "v", redis.SetArgs{ExpireAt: must(r.Time(ctx).Result()).Add(100 * time.Second)})
		for _, key := range []string{"ex", "px", "exat"} {
			between(must(r.TTL(ctx, key).Result()), 95*time.Second, 101*time.Second)
			between(must(r.PTTL(ctx, key).Result()), 95*time.Second, 101*time.Second)
		}
		equal(must(r.SetArgs(ctx, "ex", "w", redis.SetArgs{KeepTTL: true}).Result()), "OK")
		between(must(r.TTL(ctx, "ex").Result()), 95*time.Second, 101*time.Second)
		equal(must(r.SetArgs(ctx, "ex", "z", redis.SetArgs{Get: true}).Result()), "w")
		equal(must(r.TTL(ctx, "ex").Result()), time.Duration(-1))
		equal(must(r.TTL(ctx, "nothing").Result()), time.Duration(-2))
	})
	h.check("expirations: EXPIRE with NX, XX, GT, LT; PERSIST; GETEX", func() {
		r.Set(ctx, "k", "v", 0)
		equal(must(r.ExpireXX(ctx, "k", 100*time.Second).Result()), false)
		equal(must(r.ExpireNX(ctx, "k", 100*time.Second).Result()), true)
		equal(must(r.ExpireGT(ctx, "k", 50*time.Second).Result()), false)
		equal(must(r.ExpireLT(ctx, "k", 50*time.Second).Result()), true)
		equal(must(r.PExpire(ctx, "k", 40_500*time.Millisecond).Result()), true)
		between(must(r.PTTL(ctx, "k").Result()), 35*time.Second, 40_500*time.Millisecond)
		at := must(r.Time(ctx).Result()).Add(time.Hour).Truncate(time.Second)
		equal(must(r.ExpireAt(ctx, "k", at).Result()), true)
		equal(must(r.ExpireTime(ctx, "k").Result()), time.Duration(at.Unix())*time.Second)
		equal(must(r.Persist(ctx, "k").Result()), true)
		equal(must(r.GetEx(ctx, "k", 10*time.Second).Result()), "v")
		between(must(r.TTL(ctx, "k").Result()), 5*time.Second, 10*time.Second)
	})
	h.check("expirations: keys are there until their time and gone after it", func() {
		started := time.Now()
		must(r.Set(ctx, "soon", "v", 120*time.Millisecond).Result())
		eventually(5*time.Second, func() bool { return r.Get(ctx, "soon").Err() == redis.Nil })
		between(time.Since(started), 115*time.Millisecond, 5*time.Second)
	})
	h.check("expirations: 10000 keys leave without being read", func() {
		other := h.client(func(o *redis.Options) { o.DB = 4 })
		pipelined(other, func(p redis.Pipeliner) {
			for n := 0; n < 10_000; n++ {
				p.Set(ctx, fmt.Sprintf("brief:%d", n), n, time.Duration(100+n%100)*time.Millisecond)
			}
		})
		eventually(20*time.Second, func() bool { return must(other.DBSize(ctx).Result()) == 0 })
	})
	r.Del(ctx, "ex", "px", "exat", "k")
}
