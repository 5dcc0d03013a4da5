"""A leaderboard: every city by its population, in one sorted set, against a sorted list."""

import random
from bisect import bisect_left

import catalogue


def run(h):
    r = h.client()
    cities = catalogue.cities()
    board = {str(number): city["population"] for number, city in cities.items()}
    rng = random.Random(1)

    def ranked():
        return sorted(board.items(), key=lambda item: (item[1], item[0].encode()))

    def fill():
        for batch in catalogue.batches(list(board.items())):
            r.zadd("board", dict(batch))
        h.equal(r.zcard("board"), len(board))

    def whole():
        expected = [(name.encode(), float(score)) for name, score in ranked()]
        h.equal(r.zrange("board", 0, -1, withscores=True), expected)
        h.equal(r.zrevrange("board", 0, 99, withscores=True), expected[:-101:-1])

    def ranks():
        order = {name: rank for rank, (name, _) in enumerate(ranked())}
        for name in rng.sample(sorted(board), 500):
            h.equal(r.zrank("board", name), order[name])
            h.equal(r.zrevrank("board", name), len(board) - 1 - order[name])
            h.equal(r.zscore("board", name), float(board[name]))

    def windows():
        scores = [score for _, score in ranked()]
        for _ in range(200):
            low, high = sorted(rng.choices(scores, k=2))
            count = bisect_left(scores, high + 1) - bisect_left(scores, low)
            h.equal(r.zcount("board", low, high), count)
            page = r.zrangebyscore("board", low, high, start=3, num=10)
            first = bisect_left(scores, low)
            h.equal(page, [name.encode() for name, _ in ranked_now[first:first + count][3:13]])

    def moves():
        for name in rng.sample(sorted(board), 2000):
            board[name] += rng.randrange(1, 1000)
            gained = r.zincrby("board", 0, name)
            h.equal(r.zincrby("board", board[name] - gained, name), float(board[name]))
        for name in rng.sample(sorted(board), 1000):
            del board[name]
            h.equal(r.zrem("board", name), 1)

    h.check("leaderboard: every city", fill)
    h.check("leaderboard: the whole order", whole)
    h.check("leaderboard: ranks and scores", ranks)
    ranked_now = ranked()
    h.check("leaderboard: windows of scores, page by page", windows)
    h.check("leaderboard: scores that change, cities that go", moves)
    h.check("leaderboard: the whole order afterwards", whole)
    r.flushall()
