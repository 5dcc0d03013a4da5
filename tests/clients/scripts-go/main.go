// redsync on go-redis: locks whose release and extension are Lua scripts.
//
// Usage: scripts-go HOST PORT PASSWORD [UNIX_SOCKET]. The server must be empty; it is flushed at the end.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

const (
	workers = 8
	turns   = 25
)

var (
	background = context.Background()
	failed     = false
)

// check runs the body; the error that it returns is the failure.
func check(name string, body func() error) {
	if err := body(); err != nil {
		failed = true
		fmt.Printf("not ok - %s: %v\n", name, err)
		return
	}
	fmt.Println("ok - " + name)
}

// expect returns an error unless the condition holds.
func expect(condition bool, text string, details ...interface{}) error {
	if condition {
		return nil
	}
	return fmt.Errorf(text, details...)
}

func main() {
	var clients []*redis.Client
	var pools []redsyncredis.Pool
	for database := 0; database < 3; database++ {
		client := redis.NewClient(&redis.Options{
			Addr: os.Args[1] + ":" + os.Args[2], Password: os.Args[3], DB: database, ReadTimeout: 20 * time.Second,
		})
		clients = append(clients, client)
		pools = append(pools, goredis.NewPool(client))
	}
	check("redsync: a lock excludes until it is released", func() error { return excludes(clients[0], pools[0]) })
	check("redsync: an extension lasts, and fails for a lost lock", func() error { return extends(clients[0], pools[0]) })
	check("redsync: an expired lock is free", func() error { return expires(pools[0]) })
	check("redsync: a majority of three decides", func() error { return majority(clients, pools) })
	check("redsync: 200 increments under the lock lose none", func() error { return increments(clients[0], pools[0]) })
	check("the server is left empty", func() error { return clients[0].FlushAll(background).Err() })
	if failed {
		os.Exit(1)
	}
}

func excludes(client *redis.Client, pool redsyncredis.Pool) error {
	locks := redsync.New(pool)
	first := locks.NewMutex("account:1", redsync.WithExpiry(time.Minute), redsync.WithTries(1))
	second := locks.NewMutex("account:1", redsync.WithExpiry(time.Minute), redsync.WithTries(1))
	if err := first.Lock(); err != nil {
		return err
	}
	var taken *redsync.ErrTaken
	err := second.Lock()
	if err := expect(errors.As(err, &taken), "the second lock: %v", err); err != nil {
		return err
	}
	if released, err := first.Unlock(); !released || err != nil {
		return fmt.Errorf("not released: %v", err)
	}
	if err := second.Lock(); err != nil {
		return err
	}
	released, err := first.Unlock()
	if err := expect(!released && err != nil, "released what another holds"); err != nil {
		return err
	}
	if released, err := second.Unlock(); !released || err != nil {
		return fmt.Errorf("not released: %v", err)
	}
	count := client.Exists(background, "account:1").Val()
	return expect(count == 0, "%d keys are left", count)
}

func extends(client *redis.Client, pool redsyncredis.Pool) error {
	lock := redsync.New(pool).NewMutex("account:2", redsync.WithExpiry(time.Minute), redsync.WithTries(1))
	if err := lock.Lock(); err != nil {
		return err
	}
	client.PExpire(background, "account:2", 30*time.Second)
	if extended, err := lock.Extend(); !extended || err != nil {
		return fmt.Errorf("not extended: %v", err)
	}
	left := client.PTTL(background, "account:2").Val()
	if err := expect(left > 35*time.Second && left <= time.Minute, "%v left", left); err != nil {
		return err
	}
	client.Set(background, "account:2", "another", 0)
	extended, err := lock.Extend()
	if err := expect(!extended && err != nil, "extended what another holds"); err != nil {
		return err
	}
	released, err := lock.Unlock()
	if err := expect(!released && err != nil, "released what another holds"); err != nil {
		return err
	}
	value := client.Get(background, "account:2").Val()
	return expect(value == "another", "the lock of another is %q", value)
}

func expires(pool redsyncredis.Pool) error {
	locks := redsync.New(pool)
	brief := locks.NewMutex("brief", redsync.WithExpiry(100*time.Millisecond), redsync.WithTries(100))
	if err := brief.Lock(); err != nil {
		return err
	}
	patient := locks.NewMutex("brief", redsync.WithExpiry(time.Minute), redsync.WithTries(1000),
		redsync.WithRetryDelay(10*time.Millisecond))
	if err := patient.Lock(); err != nil {
		return err
	}
	released, err := patient.Unlock()
	return expect(released && err == nil, "not released: %v", err)
}

func majority(clients []*redis.Client, pools []redsyncredis.Pool) error {
	lock := redsync.New(pools...).NewMutex("shared", redsync.WithExpiry(time.Minute), redsync.WithTries(1))
	clients[0].Set(background, "shared", "another", 0)
	if err := lock.Lock(); err != nil {
		return err
	}
	for number, want := range []string{"another", lock.Value(), lock.Value()} {
		value := clients[number].Get(background, "shared").Val()
		if err := expect(value == want, "database %d has %q, not %q", number, value, want); err != nil {
			return err
		}
	}
	if released, err := lock.Unlock(); !released || err != nil {
		return fmt.Errorf("not released: %v", err)
	}
	clients[1].Set(background, "shared", "another", 0)
	if err := expect(lock.Lock() != nil, "locked by one of three"); err != nil {
		return err
	}
	count := clients[2].Exists(background, "shared").Val()
	return expect(count == 0, "the minority is not released")
}

func increments(client *redis.Client, pool redsyncredis.Pool) error {
	locks := redsync.New(pool)
	problems := make(chan error, workers)
	var group sync.WaitGroup
	for worker := 0; worker < workers; worker++ {
		group.Add(1)
		go func() {
			defer group.Done()
			lock := locks.NewMutex("lock:balance", redsync.WithExpiry(time.Minute), redsync.WithTries(100_000),
				redsync.WithRetryDelay(time.Millisecond))
			for turn := 0; turn < turns; turn++ {
				if err := increment(client, lock); err != nil {
					problems <- err
					return
				}
			}
		}()
	}
	group.Wait()
	close(problems)
	for err := range problems {
		return err
	}
	balance, err := client.Get(background, "balance").Int()
	return expect(balance == workers*turns && err == nil, "%d: %v", balance, err)
}

// increment adds one to the balance without an atomic command.
func increment(client *redis.Client, lock *redsync.Mutex) error {
	if err := lock.Lock(); err != nil {
		return err
	}
	balance, err := client.Get(background, "balance").Int()
	if err != nil && err != redis.Nil {
		return err
	}
	if err := client.Set(background, "balance", balance+1, 0).Err(); err != nil {
		return err
	}
	released, err := lock.Unlock()
	return expect(released && err == nil, "not released: %v", err)
}
