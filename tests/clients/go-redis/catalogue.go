package main

import (
	"bufio"
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/redis/go-redis/v9"
)

const dictionary = "/usr/share/dict/american-english-huge"

// words reads the dictionary, without duplicates.
func words() []string {
	file := must(os.Open(dictionary))
	defer file.Close()
	seen := map[string]bool{}
	var all []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if word := lines.Text(); word != "" && !seen[word] {
			seen[word] = true
			all = append(all, word)
		}
	}
	return all
}

// letters is the word's letters in order, the same for all its anagrams.
func letters(word string) string {
	runes := []rune(strings.ToLower(word))
	sort.Slice(runes, func(a, b int) bool { return runes[a] < runes[b] })
	return string(runes)
}

func catalogue(h *harness) {
	r := h.client()
	all := words()
	key := func(word string) string { return "word:" + word }
	value := func(number int, word string) string { return fmt.Sprintf("%d %s", number, letters(word)) }

	h.check(fmt.Sprintf("catalogue: %d words are stored", len(all)), func() {
		if len(all) < 100_000 {
			panic("the dictionary is too short")
		}
		number := 0
		batches(all, 10_000, func(batch []string) {
			pipelined(r, func(p redis.Pipeliner) {
				for _, word := range batch {
					p.Set(ctx, key(word), value(number, word), 0)
					number++
				}
			})
		})
		equal(must(r.DBSize(ctx).Result()), int64(len(all)))
	})
	h.check("catalogue: pipelined GET gives every word back", func() {
		number := 0
		batches(all, 10_000, func(batch []string) {
			replies := pipelined(r, func(p redis.Pipeliner) {
				for _, word := range batch {
					p.Get(ctx, key(word))
				}
			})
			for place, reply := range replies {
				equal(reply.(*redis.StringCmd).Val(), value(number, batch[place]))
				number++
			}
		})
	})
	h.check("catalogue: MGET gives every word back", func() {
		number := 0
		batches(all, 500, func(batch []string) {
			keys := make([]string, len(batch))
			for place, word := range batch {
				keys[place] = key(word)
			}
			for place, got := range must(r.MGet(ctx, keys...).Result()) {
				equal(got, value(number, batch[place]))
				number++
			}
		})
	})
	h.check("catalogue: SCAN meets every key", func() {
		seen := map[string]bool{}
		cursor := r.Scan(ctx, 0, "", 1000).Iterator()
		for cursor.Next(ctx) {
			seen[cursor.Val()] = true
		}
		equal(cursor.Err(), nil)
		equal(len(seen), len(all))
		for _, word := range all {
			if !seen[key(word)] {
				panic("missing: " + word)
			}
		}
	})
	h.check("catalogue: SCAN while keys are added and removed meets every key that stays", func() {
		seen := map[string]bool{}
		var cursor uint64
		for step := 0; ; step++ {
			page, next, err := r.Scan(ctx, cursor, "word:*", 2000).Result()
			equal(err, nil)
			for _, k := range page {
				seen[k] = true
			}
			pipelined(r, func(p redis.Pipeliner) {
				for n := 0; n < 500; n++ {
					p.Set(ctx, fmt.Sprintf("passing:%d:%d", step, n), "x", 0)
					p.Del(ctx, fmt.Sprintf("passing:%d:%d", step-1, n))
				}
			})
			if cursor = next; cursor == 0 {
				break
			}
		}
		equal(len(seen), len(all))
		for _, k := range must(r.Keys(ctx, "passing:*").Result()) {
			r.Unlink(ctx, k)
		}
		equal(must(r.DBSize(ctx).Result()), int64(len(all)))
	})
	h.check("catalogue: RENAME, COPY and DEL of a thousand words", func() {
		some := all[:1000]
		pipelined(r, func(p redis.Pipeliner) {
			for _, word := range some {
				p.Rename(ctx, key(word), "renamed:"+word)
				p.Copy(ctx, "renamed:"+word, key(word), 0, false)
				p.Del(ctx, "renamed:"+word)
			}
		})
		equal(must(r.Get(ctx, key(some[7])).Result()), value(7, some[7]))
		equal(must(r.DBSize(ctx).Result()), int64(len(all)))
	})
}
