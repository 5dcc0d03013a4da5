package main

import (
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
)

func transactions(h *harness) {
	r := h.client()
	h.check("transactions: results come in order", func() {
		replies := must(r.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Set(ctx, "t", 1, 0)
			p.IncrBy(ctx, "t", 9)
			p.Get(ctx, "t")
			return nil
		}))
		equal(replies[1].(*redis.IntCmd).Val(), int64(10))
		equal(replies[2].(*redis.StringCmd).Val(), "10")
	})
	h.check("transactions: a change between WATCH and EXEC aborts", func() {
		r.Set(ctx, "seat", "free", 0)
		err := r.Watch(ctx, func(tx *redis.Tx) error {
			equal(must(tx.Get(ctx, "seat").Result()), "free")
			must(r.Set(ctx, "seat", "taken", 0).Result())
			_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.Set(ctx, "seat", "mine", 0)
				return nil
			})
			return err
		}, "seat")
		equal(errors.Is(err, redis.TxFailedErr), true)
		equal(must(r.Get(ctx, "seat").Result()), "taken")
	})
	h.check("transactions: a read between WATCH and EXEC does not", func() {
		err := r.Watch(ctx, func(tx *redis.Tx) error {
			must(r.Get(ctx, "seat").Result())
			_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.Append(ctx, "seat", "!")
				return nil
			})
			return err
		}, "seat")
		equal(err, nil)
		equal(must(r.Get(ctx, "seat").Result()), "taken!")
	})
	h.check("transactions: transfers between 10 accounts by 8 goroutines keep the sum", func() {
		account := func(n int) string { return fmt.Sprintf("account:%d", n) }
		for n := 0; n < 10; n++ {
			r.Set(ctx, account(n), 1000, 0)
		}
		transfer := func(from, to string) error {
			return r.Watch(ctx, func(tx *redis.Tx) error {
				a, b := must(tx.Get(ctx, from).Int64()), must(tx.Get(ctx, to).Int64())
				_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
					p.Set(ctx, from, a-1, 0)
					p.Set(ctx, to, b+1, 0)
					return nil
				})
				return err
			}, from, to)
		}
		var group sync.WaitGroup
		for worker := 0; worker < 8; worker++ {
			group.Add(1)
			go func(worker int) {
				defer group.Done()
				for n := 0; n < 100; n++ {
					from, to := account((worker+n)%10), account((worker*3+n*7+1)%10)
					if from == to {
						continue
					}
					for errors.Is(transfer(from, to), redis.TxFailedErr) {
					}
				}
			}(worker)
		}
		group.Wait()
		var sum int64
		for n := 0; n < 10; n++ {
			sum += must(r.Get(ctx, account(n)).Int64())
			r.Del(ctx, account(n))
		}
		equal(sum, int64(10_000))
	})
	h.check("transactions: DISCARD forgets, an error inside stays inside", func() {
		conn := r.Conn()
		defer conn.Close()
		equal(must(conn.Do(ctx, "MULTI").Result()), "OK")
		equal(must(conn.Do(ctx, "SET", "d", "1").Result()), "QUEUED")
		equal(must(conn.Do(ctx, "DISCARD").Result()), "OK")
		equal(must(r.Exists(ctx, "d").Result()), int64(0))
		must(conn.Do(ctx, "MULTI").Result())
		fails(conn.Do(ctx, "GET").Err(), "wrong number of arguments")
		fails(conn.Do(ctx, "EXEC").Err(), "EXECABORT")
		replies, err := r.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Set(ctx, "d", "word", 0)
			p.Incr(ctx, "d")
			p.Set(ctx, "d", "after", 0)
			return nil
		})
		fails(err, "not an integer")
		equal(replies[2].Err(), nil)
		equal(must(r.Get(ctx, "d").Result()), "after")
	})
	r.Del(ctx, "t", "seat", "d")
}
