// gomemcache as its users use it. Usage: gomemcache PORT. Each check is one line, `ok - NAME` or `not ok - NAME: REASON`.
package main

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

var failed = false

func check(name string, holds bool, why ...interface{}) {
	if holds {
		fmt.Println("ok - gomemcache:", name)
		return
	}
	failed = true
	fmt.Println("not ok - gomemcache:", name+":", fmt.Sprint(why...))
}

func main() {
	client := memcache.New("127.0.0.1:" + os.Args[1])
	client.Timeout = 10 * time.Second
	check("ping", client.Ping() == nil)
	err := client.Set(&memcache.Item{Key: "a", Value: []byte("1"), Flags: 77, Expiration: 100})
	item, readErr := client.Get("a")
	check("set and get", err == nil && readErr == nil && string(item.Value) == "1" && item.Flags == 77, err, readErr)
	check("add", client.Add(&memcache.Item{Key: "a", Value: []byte("2")}) == memcache.ErrNotStored)
	check("replace", client.Replace(&memcache.Item{Key: "absent", Value: []byte("2")}) == memcache.ErrNotStored)
	check("append and prepend", client.Append(&memcache.Item{Key: "a", Value: []byte("2")}) == nil &&
		client.Prepend(&memcache.Item{Key: "a", Value: []byte("0")}) == nil)
	item, _ = client.Get("a")
	check("appended", item != nil && string(item.Value) == "012" && item.Flags == 77)
	item.Value = []byte("swapped")
	check("compare and swap", client.CompareAndSwap(item) == nil)
	check("a stale id conflicts", client.CompareAndSwap(item) == memcache.ErrCASConflict)
	check("touch", client.Touch("a", 200) == nil && client.Touch("absent", 1) == memcache.ErrCacheMiss)
	client.Set(&memcache.Item{Key: "n", Value: []byte("10")})
	up, upErr := client.Increment("n", 5)
	down, downErr := client.Decrement("n", 100)
	check("increment and decrement", up == 15 && down == 0, upErr, downErr)
	items, err := client.GetMulti([]string{"a", "n", "absent"})
	check("get of several", err == nil && len(items) == 2, err)
	long := bytes.Repeat([]byte("z"), 1<<20)
	err = client.Set(&memcache.Item{Key: "long", Value: long})
	item, readErr = client.Get("long")
	check("a megabyte", err == nil && readErr == nil && bytes.Equal(item.Value, long), err, readErr)
	check("concurrent increments", concurrent(client))
	check("delete", client.Delete("a") == nil && client.Delete("a") == memcache.ErrCacheMiss)
	check("flush all", client.FlushAll() == nil)
	_, err = client.Get("n")
	check("flushed", err == memcache.ErrCacheMiss, err)
	if failed {
		os.Exit(1)
	}
}

func concurrent(client *memcache.Client) bool {
	client.Set(&memcache.Item{Key: "shared", Value: []byte("0")})
	var group sync.WaitGroup
	for worker := 0; worker < 8; worker++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for turn := 0; turn < 250; turn++ {
				client.Increment("shared", 1)
			}
		}()
	}
	group.Wait()
	item, err := client.Get("shared")
	return err == nil && string(item.Value) == "2000"
}
