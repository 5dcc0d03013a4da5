<?php

// Laravel's queue, locks and limiters, as Debian packages them, on phpredis. Their work is done by Lua scripts.
//
// Usage: main.php HOST PORT PASSWORD UNIX_SOCKET. The server must be empty; it is flushed at the end.

declare(strict_types=1);

// That version of Laravel is older than the PHP it runs on here.
error_reporting(E_ALL & ~E_DEPRECATED);
foreach (['Container', 'Redis', 'Queue', 'Cache', 'Events'] as $part) {
    require_once "/usr/share/php/Illuminate/$part/autoload.php";
}

use Illuminate\Cache\RedisStore;
use Illuminate\Container\Container;
use Illuminate\Contracts\Redis\LimiterTimeoutException;
use Illuminate\Queue\RedisQueue;
use Illuminate\Redis\RedisManager;

const JOBS = 100;

[, $host, $port, $password] = $argv;
$redis = new RedisManager(new Container(), 'phpredis', [
    'default' => ['host' => $host, 'port' => (int) $port, 'password' => $password, 'database' => 5, 'timeout' => 5.0],
]);
$failed = 0;

/** Says that it has run. */
class Plain
{
    /** @var list<mixed> */
    public static array $done = [];

    /** @param array<string, mixed> $data */
    public function fire(\Illuminate\Contracts\Queue\Job $job, array $data): void
    {
        self::$done[] = $data['number'];
        $job->delete();
    }
}

function check(string $name, callable $body): void
{
    global $failed;
    try {
        $body();
        echo "ok - $name\n";
    } catch (Throwable $problem) {
        $failed++;
        echo "not ok - $name: ", get_class($problem), ': ', $problem->getMessage(), "\n    ",
            str_replace("\n", "\n    ", $problem->getTraceAsString()), "\n";
    }
}

function equal(mixed $got, mixed $expected): void
{
    if ($got !== $expected) {
        throw new RuntimeException('got ' . var_export($got, true) . ', expected ' . var_export($expected, true));
    }
}

function queue(RedisManager $redis, int $retryAfter = 60): RedisQueue
{
    $queue = new RedisQueue($redis, 'jobs', null, $retryAfter);
    $queue->setContainer(new Container());
    $queue->setConnectionName('redis');
    return $queue;
}

check('jobs run once each, in their order', function () use ($redis) {
    $queue = queue($redis);
    for ($number = 0; $number < JOBS; $number++) {
        $queue->push(Plain::class, ['number' => $number]);
    }
    equal($queue->size(), JOBS);
    while ($job = $queue->pop()) {
        equal($job->attempts(), 1);
        $job->fire();
    }
    equal(Plain::$done, range(0, JOBS - 1));
    equal($queue->size(), 0);
});

check('a job for later is moved when its time has come', function () use ($redis) {
    $queue = queue($redis);
    $queue->later(3600, Plain::class, ['number' => 'late']);
    $queue->later(1, Plain::class, ['number' => 'due']);
    equal($queue->pop(), null);
    equal($queue->size(), 2);
    usleep(2_100_000);
    equal($queue->pop()->payload()['data'], ['number' => 'due']);
    equal($queue->pop(), null);
    equal($queue->clear('jobs'), 2);
    equal($queue->size(), 0);
});

check('a job that is released comes again, and counts', function () use ($redis) {
    $queue = queue($redis);
    $queue->push(Plain::class, ['number' => 1]);
    $queue->pop()->release();
    $job = $queue->pop();
    equal($job->attempts(), 2);
    $job->delete();
    equal($queue->size(), 0);
});

check('a job whose worker is gone comes again', function () use ($redis) {
    $queue = queue($redis, 1);
    $queue->push(Plain::class, ['number' => 1]);
    equal($queue->pop()->attempts(), 1);
    equal($queue->pop(), null);
    usleep(2_100_000);
    $job = $queue->pop();
    equal($job->attempts(), 2);
    $job->delete();
    equal($queue->size(), 0);
});

check('a lock has one owner', function () use ($redis) {
    $store = new RedisStore($redis, 'cache:');
    $lock = $store->lock('report', 60);
    equal($lock->get(), true);
    equal($store->lock('report', 60)->get(), false);
    // Its script leaves the lock of another alone.
    $store->lock('report', 60)->release();
    equal($store->lock('report', 60)->get(), false);
    equal($store->restoreLock('report', $lock->owner())->release(), true);
    equal($store->lock('report', 60)->get(), true);
});

check('an entry is added once', function () use ($redis) {
    $store = new RedisStore($redis, 'cache:');
    equal([$store->add('once', 1, 60), $store->add('once', 2, 60)], [true, false]);
    equal($store->get('once'), '1');
});

check('a limit of calls at the same time', function () use ($redis) {
    $inside = 0;
    $enter = fn (callable $then) => $redis->connection()->funnel('export')->limit(2)->block(0)
        ->then($then, fn (LimiterTimeoutException $full) => 'full');
    $reply = $enter(fn () => $enter(fn () => $enter(fn () => 'in')));
    equal($reply, 'full');
    equal($enter(fn () => 'in'), 'in');
});

check('a limit of calls a minute', function () use ($redis) {
    $call = fn () => $redis->connection()->throttle('mail')->allow(3)->every(60)->block(0)
        ->then(fn () => 'sent', fn (LimiterTimeoutException $full) => 'full');
    equal([$call(), $call(), $call(), $call()], ['sent', 'sent', 'sent', 'full']);
});

check('the server is left empty', fn () => equal($redis->connection()->command('flushall'), true));
exit($failed > 0 ? 1 : 0);
