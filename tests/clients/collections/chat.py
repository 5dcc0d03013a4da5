"""A chat: rooms are channels, moderators listen to a pattern, and everybody reads the same in the same order."""

import threading

ROOMS = 3
PEOPLE = 12
LINES = 150


def run(h):
    def talk(protocol):
        heard = {number: [] for number in range(PEOPLE)}
        watched, ready = [], []

        def listen(number):
            feed = h.client(protocol=protocol).pubsub(ignore_subscribe_messages=True)
            feed.subscribe(f"room:{number % ROOMS}", "everywhere")
            ready.append(number)
            for message in feed.listen():
                if message["data"] == b"good night":
                    return feed.close()
                heard[number].append((message["channel"], message["data"]))

        def moderate():
            feed = h.client(protocol=protocol).pubsub(ignore_subscribe_messages=True)
            feed.psubscribe("room:*")
            ready.append("moderator")
            for message in feed.listen():
                h.equal((message["type"], message["pattern"]), ("pmessage", b"room:*"))
                watched.append((message["channel"], message["data"]))
                if len(watched) == ROOMS * LINES:
                    return feed.close()

        threads = [threading.Thread(target=listen, args=(number,)) for number in range(PEOPLE)]
        threads.append(threading.Thread(target=moderate))
        for thread in threads:
            thread.start()
        r = h.client()
        expected = [(f"room:{room}", PEOPLE // ROOMS) for room in range(ROOMS)]
        h.eventually(lambda: r.pubsub_numsub(*[room for room, _ in expected])
                     == [(room.encode(), count) for room, count in expected] and r.pubsub_numpat() == 1, 10)

        def speak(room):
            mine = h.client()
            for line in range(LINES):
                h.equal(mine.publish(f"room:{room}", f"line {line}"), PEOPLE // ROOMS + 1)

        speakers = [threading.Thread(target=speak, args=(room,)) for room in range(ROOMS)]
        for speaker in speakers:
            speaker.start()
        for speaker in speakers:
            speaker.join()
        h.equal(r.publish("everywhere", "good night"), PEOPLE)
        for thread in threads:
            thread.join()
        for number, lines in heard.items():
            room = f"room:{number % ROOMS}".encode()
            h.equal(lines, [(room, f"line {line}".encode()) for line in range(LINES)])
        for room in range(ROOMS):
            name = f"room:{room}".encode()
            h.equal([data for channel, data in watched if channel == name],
                    [f"line {line}".encode() for line in range(LINES)])
        h.eventually(lambda: r.pubsub_channels() == [] and r.pubsub_numpat() == 0, 10)

    for protocol in (2, 3):
        h.check(f"chat: everybody reads every line in order, RESP{protocol}", lambda protocol=protocol: talk(protocol))
