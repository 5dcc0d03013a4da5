package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

func connections(h *harness) {
	r := h.client()
	h.check("connections: login is needed, wrong passwords are refused", func() {
		fails(h.client(func(o *redis.Options) { o.Password = "" }).Get(ctx, "k").Err(), "NOAUTH")
		fails(h.client(func(o *redis.Options) { o.Password = "wrong" }).Get(ctx, "k").Err(), "WRONGPASS")
		equal(must(h.client(func(o *redis.Options) { o.Username = "default" }).Ping(ctx).Result()), "PONG")
	})
	h.check("connections: RESP2 and RESP3 give the same", func() {
		for _, protocol := range []int{2, 3} {
			c := h.client(func(o *redis.Options) { o.Protocol = protocol; o.ClientName = "dictionary" })
			equal(must(c.Set(ctx, "p", "v", 0).Result()), "OK")
			equal(c.Get(ctx, "nothing").Err(), redis.Nil)
			equal(must(c.ConfigGet(ctx, "maxmemory").Result()), map[string]string{"maxmemory": "0"})
			equal(must(c.ClientGetName(ctx).Result()), "dictionary")
			commands := must(c.Command(ctx).Result())
			equal(commands["get"].Arity, int8(2))
			equal(commands["get"].ReadOnly, true)
			equal(commands["set"].ReadOnly, false)
			info := must(c.Do(ctx, "CLIENT", "INFO").Text())
			equal(strings.Contains(info, " name=dictionary "), true)
			equal(strings.Contains(info, fmt.Sprintf(" resp=%d ", protocol)), true)
		}
		hello := must(r.Do(ctx, "HELLO", "3").Result()).(map[any]any)
		equal(hello["proto"], int64(3))
	})
	h.check("connections: unix socket", func() {
		local := h.client(func(o *redis.Options) { o.Network, o.Addr = "unix", h.unix })
		must(local.Set(ctx, "p", "through the socket", 0).Result())
		equal(must(r.Get(ctx, "p").Result()), "through the socket")
	})
	h.check("connections: the client comes back after CLIENT KILL", func() {
		victim := h.client(func(o *redis.Options) { o.PoolSize = 1 })
		before := must(victim.ClientID(ctx).Result())
		equal(must(r.ClientKillByFilter(ctx, "ID", fmt.Sprint(before)).Result()), int64(1))
		equal(must(victim.Get(ctx, "p").Result()), "through the socket")
		if must(victim.ClientID(ctx).Result()) == before {
			panic("the connection was not closed")
		}
	})
	h.check("connections: 100 goroutines share a pool of 32", func() {
		pool := h.client(func(o *redis.Options) { o.PoolSize = 32; o.PoolTimeout = 30 * time.Second })
		var group sync.WaitGroup
		problems := make(chan error, 100)
		for worker := 0; worker < 100; worker++ {
			group.Add(1)
			go func(worker int) {
				defer group.Done()
				key := fmt.Sprintf("pool:%d", worker)
				for n := 0; n < 50; n++ {
					pool.Set(ctx, key, n, 0)
					if got, err := pool.Get(ctx, key).Int(); err != nil || got != n {
						problems <- fmt.Errorf("%s: got %d, %v; expected %d", key, got, err, n)
						return
					}
				}
				pool.Del(ctx, key)
			}(worker)
		}
		group.Wait()
		close(problems)
		for problem := range problems {
			panic(problem)
		}
	})
	h.check("connections: INFO has the sections that tools read", func() {
		info := must(r.Info(ctx).Result())
		for _, part := range []string{"# Server", "# Clients", "# Memory", "# Stats", "# Keyspace", "used_memory:", "redis_version:"} {
			if !strings.Contains(info, part) {
				panic("no " + part)
			}
		}
	})
	r.Del(ctx, "p")
}
