#!/bin/sh
# Makes the files that real servers write: crates/keyspace/rdb/testdata/make.sh redis-server NAME
#
# Collections packed (NAME-packed.rdb) and not (NAME-plain.rdb), without compression and checksum (NAME-bare.rdb), and with
# what only Valkey 9 has (NAME-fields.rdb: a hash whose fields expire). The committed ones were made by redis-server 7.0.15
# (redis70) and valkey-server 9.1.2 (valkey91). Times in them are those of the day, so new files have other bytes; the texts
# beside them are made by the tests: ONGGI_REWRITE_TESTDATA=1 cargo test -p onggi-rdb --test golden.
set -eu
server=$1 name=$2
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
port=7850

cli() { redis-cli -p "$port" "$@" > /dev/null; }

fill() {
    cli set int8 -5
    cli set int16 1000
    cli set int32 -100000
    cli set int64 12345678901234
    cli set text "not a number"
    cli set empty ""
    cli set repeated "$(printf 'abcdefgh%.0s' $(seq 100))"
    cli set expires soon pxat 4102444800000
    cli -n 3 set other database
    cli rpush list a b 1 -1 4096 70000 -8388608 5000000000 "$(printf 'long %.0s' $(seq 30))"
    cli rpush list-huge small "$(printf '%0100d' 7)" "$(seq 1 2500 | tr '\n' ' ')"
    cli sadd set-int16 3 1 2
    cli sadd set-int32 1 100000
    cli sadd set-int64 1 10000000000
    cli sadd set-text a b 17
    cli zadd zset 1 a 2.5 b -3 c 1e100 d inf e -inf f 0 g
    cli hset hash name value number 42 empty ""
    cli xadd stream 1-1 name a
    cli xadd stream 1-2 name b
    cli xadd stream 2-0 other c more d
    cli xadd stream 5-5 name e
    cli xdel stream 2-0
    cli xgroup create stream readers 0
    cli xgroup create stream idle 5-5
    cli xgroup createconsumer stream readers lazy
    cli xreadgroup group readers alice count 2 streams stream ">"
    cli xreadgroup group readers bob count 1 streams stream ">"
    cli xack stream readers 1-1
    cli xadd emptied 1-1 a b
    cli xdel emptied 1-1
    cli function load "#!lua name=library
redis.register_function('answer', function() return 42 end)"
}

# make FILE OPTIONS...
make() {
    file=$1
    shift
    "$server" --port "$port" --dir "$dir" --save "" --appendonly no --dbfilename "$file" --daemonize yes \
        --pidfile "$dir/pid" "$@" > /dev/null
    until redis-cli -p "$port" ping > /dev/null 2>&1; do sleep 0.1; done
    case $file in
    *-fields.rdb)
        cli hset fields stays 1 goes 2 later 3
        cli hpexpireat fields 4102444800000 fields 1 goes
        cli hpexpireat fields 4102444800007 fields 1 later
        ;;
    *) fill ;;
    esac
    redis-cli -p "$port" save > /dev/null
    redis-cli -p "$port" shutdown nosave > /dev/null 2>&1 || true
    while [ -e "$dir/pid" ]; do sleep 0.1; done
    cp "$dir/$file" "$here/$file"
}

make "$name-packed.rdb"
make "$name-plain.rdb" --hash-max-listpack-entries 0 --zset-max-listpack-entries 0 --set-max-intset-entries 0 \
    --list-max-listpack-size 1 --maxmemory-policy allkeys-lfu --maxmemory 100mb
make "$name-bare.rdb" --rdbcompression no --rdbchecksum no --maxmemory-policy allkeys-lru --maxmemory 100mb
case $name in valkey*) make "$name-fields.rdb" ;; esac
rm -r "$dir"
