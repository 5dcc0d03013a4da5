package main

import (
	"math/bits"
	"strings"

	"github.com/redis/go-redis/v9"
)

func bitmaps(h *harness) {
	r := h.client()
	all := words()
	model := map[string][]byte{}
	build := func(key string, holds func(string) bool) {
		model[key] = make([]byte, (len(all)+7)/8)
		for place, word := range all {
			if holds(word) {
				model[key][place/8] |= 0x80 >> (place % 8)
			}
		}
	}
	build("capital", func(w string) bool { return w[0] >= 'A' && w[0] <= 'Z' })
	build("possessive", func(w string) bool { return strings.HasSuffix(w, "'s") })
	count := func(b []byte) (n int64) {
		for _, octet := range b {
			n += int64(bits.OnesCount8(octet))
		}
		return n
	}

	h.check("bitmaps: SETBIT of every word, read back with GET", func() {
		for key, expected := range model {
			r.SetBit(ctx, key, int64(len(all)-1), 0)
			var places []int
			for place := range all {
				if expected[place/8]&(0x80>>(place%8)) != 0 {
					places = append(places, place)
				}
			}
			batches(places, 10_000, func(batch []int) {
				pipelined(r, func(p redis.Pipeliner) {
					for _, place := range batch {
						p.SetBit(ctx, key, int64(place), 1)
					}
				})
			})
			equal(must(r.Get(ctx, key).Bytes()), expected)
			equal(must(r.BitCount(ctx, key, nil).Result()), count(expected))
			equal(must(r.BitCount(ctx, key, &redis.BitCount{Start: 100, End: 20_000}).Result()), count(expected[100:20_001]))
		}
	})
	h.check("bitmaps: BITOP equals the model", func() {
		apply := func(f func(a, b byte) byte) []byte {
			out := make([]byte, len(model["capital"]))
			for place := range out {
				out[place] = f(model["capital"][place], model["possessive"][place])
			}
			return out
		}
		must(r.BitOpAnd(ctx, "out", "capital", "possessive").Result())
		equal(must(r.Get(ctx, "out").Bytes()), apply(func(a, b byte) byte { return a & b }))
		must(r.BitOpOr(ctx, "out", "capital", "possessive").Result())
		equal(must(r.Get(ctx, "out").Bytes()), apply(func(a, b byte) byte { return a | b }))
		must(r.BitOpXor(ctx, "out", "capital", "possessive").Result())
		equal(must(r.Get(ctx, "out").Bytes()), apply(func(a, b byte) byte { return a ^ b }))
		must(r.BitOpNot(ctx, "out", "capital").Result())
		equal(must(r.Get(ctx, "out").Bytes()), apply(func(a, _ byte) byte { return ^a }))
	})
	h.check("bitmaps: BITPOS and BITFIELD", func() {
		first := func(b []byte) int64 {
			for place, octet := range b {
				if octet != 0 {
					return int64(place*8 + bits.LeadingZeros8(octet))
				}
			}
			return -1
		}
		equal(must(r.BitPos(ctx, "possessive", 1).Result()), first(model["possessive"]))
		equal(must(r.BitPos(ctx, "nothing", 1).Result()), int64(-1))
		equal(must(r.BitField(ctx, "bf", "SET", "i8", "0", "-1", "INCRBY", "i8", "0", "10", "GET", "u4", "4").Result()), []int64{0, 9, 9})
		equal(must(r.BitField(ctx, "bf", "OVERFLOW", "SAT", "INCRBY", "u2", "100", "9").Result()), []int64{3})
	})
	r.Del(ctx, "capital", "possessive", "out", "bf")
}
