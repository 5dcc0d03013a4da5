package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// harness makes clients and reports checks as `ok - NAME` or `not ok - NAME: REASON`.
type harness struct {
	address, password, unix string
	failed                  int
	open                    []*redis.Client
}

func newHarness(host, port, password, unix string) *harness {
	return &harness{address: host + ":" + port, password: password, unix: unix}
}

// tlsConfig returns nil unless ONGGI_TEST_TLS names the directory of the client's certificates.
func tlsConfig() *tls.Config {
	directory := os.Getenv("ONGGI_TEST_TLS")
	if directory == "" {
		return nil
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(must(os.ReadFile(directory + "/ca.pem")))
	pair := must(tls.LoadX509KeyPair(directory+"/client.pem", directory+"/client.key"))
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}
}

// client returns a client with a pool of its own. Protocol 3 unless `change` says otherwise.
func (h *harness) client(change ...func(*redis.Options)) *redis.Client {
	options := &redis.Options{Addr: h.address, Password: h.password, ReadTimeout: 60 * time.Second, WriteTimeout: 60 * time.Second}
	options.TLSConfig = tlsConfig()
	for _, c := range change {
		c(options)
	}
	if options.Network == "unix" {
		options.TLSConfig = nil
	}
	client := redis.NewClient(options)
	h.open = append(h.open, client)
	return client
}

// check runs the body; a panic in it is the failure.
func (h *harness) check(name string, body func()) {
	defer func() {
		if problem := recover(); problem != nil {
			h.failed++
			fmt.Printf("not ok - %s: %v\n", name, problem)
			return
		}
		fmt.Printf("ok - %s\n", name)
	}()
	body()
}

func (h *harness) close() int {
	for _, client := range h.open {
		client.Close()
	}
	if h.failed > 0 {
		return 1
	}
	return 0
}

// must returns the value or fails with the error.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// equal fails unless the two are deeply equal.
func equal(got, expected any) {
	if !reflect.DeepEqual(got, expected) {
		panic(fmt.Sprintf("got %.200v, expected %.200v", got, expected))
	}
}

// fails demands an error whose text has `part`.
func fails(err error, part string) {
	if err == nil || !strings.Contains(err.Error(), part) {
		panic(fmt.Sprintf("error %v, expected one with %q", err, part))
	}
}

// eventually waits for a condition until a deadline; the polls only shorten the wait.
func eventually(within time.Duration, condition func() bool) {
	deadline := time.Now().Add(within)
	for !condition() {
		if time.Now().After(deadline) {
			panic(fmt.Sprintf("did not happen within %v", within))
		}
		time.Sleep(2 * time.Millisecond)
	}
}
