"""The same random requests to this server and to memcached: replies are equal, line by line."""

import random

from grammar import Ids, request
from wire import Closed, Wire

BATCH = 12


def run(ports, seed, count):
    """Compares; gives the number of requests and the first difference, shrunk, or None."""
    source, done = random.Random(seed), 0
    while done < count:
        batches = [[request(source) for _ in range(source.randint(1, BATCH))] for _ in range(20)]
        found = difference(ports, batches, source.random())
        if found:
            return done, shrink(ports, batches, found)
        done += sum(map(len, batches))
    return done, None


def difference(ports, batches, seed):
    """The first difference that these batches show on fresh data, as text."""
    cuts, wires, ids = random.Random(seed), [Wire(port) for port in ports], [Ids() for _ in ports]
    try:
        for wire in wires:
            wire.exchange(b"flush_all\r\n")
        for batch in batches:
            replies = []
            places = [cuts.random() for _ in range(cuts.choice([0, 0, 1, 3]))]
            for wire, known in zip(wires, ids):
                sent = known.fill_in(b"".join(batch))
                try:
                    reply = wire.exchange(sent, [int(place * len(sent)) for place in places])
                except Closed as closed:
                    reply = b"closed after " + closed.args[0]
                replies.append(known.take_out(reply))
            if replies[0] != replies[1]:
                return f"{batch}\n  onggi:     {replies[0][:600]}\n  memcached: {replies[1][:600]}"
    finally:
        for wire in wires:
            wire.close()
    return None


def shrink(ports, batches, found):
    """Leaves out batches and requests as long as there is a difference."""
    index = 0
    while index < len(batches):
        fewer = batches[:index] + batches[index + 1:]
        again = difference(ports, fewer, 0)
        batches, found, index = (fewer, again, index) if again else (batches, found, index + 1)
    for at in range(len(batches)):
        index = 0
        while index < len(batches[at]):
            fewer = [*batches[:at], batches[at][:index] + batches[at][index + 1:], *batches[at + 1:]]
            again = difference(ports, fewer, 0)
            batches, found, index = (fewer, again, index) if again else (batches, found, index + 1)
    shown = [[short(item) for item in batch] for batch in batches if batch]
    return f"{shown}\n{found[:2000]}"


def short(request):
    return request if len(request) < 300 else request[:60] + b"... %d bytes" % len(request)
