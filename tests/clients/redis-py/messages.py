"""Messages: a chat over channels and patterns, events of keys, and a cache that the server keeps true."""

import threading

MEMBERS = 5
LINES = 200


def take(pubsub, count):
    """The next messages, without the confirmations of subscriptions."""
    messages = []
    while len(messages) < count:
        message = pubsub.get_message(ignore_subscribe_messages=True, timeout=10)
        if message is None:
            raise AssertionError(f"{len(messages)} messages came, of {count}")
        messages.append(message)
    return messages


def run(h):
    r = h.client()

    def chat(protocol):
        rooms = [h.client(protocol=protocol).pubsub() for _ in range(MEMBERS)]
        for number, room in enumerate(rooms):
            # Half of the members listen to the room, half to all rooms.
            room.subscribe("room:1") if number % 2 else room.psubscribe("room:*")
            room.get_message(timeout=10)

        def speak(number):
            speaker = h.client(protocol=protocol)
            for line in range(LINES):
                h.equal(speaker.publish("room:1", f"{number} {line}"), MEMBERS)

        speakers = [threading.Thread(target=speak, args=(number,)) for number in range(MEMBERS)]
        for speaker in speakers:
            speaker.start()
        heard = [[message["data"] for message in take(room, MEMBERS * LINES)] for room in rooms]
        for speaker in speakers:
            speaker.join()
        h.equal([lines == heard[0] for lines in heard], [True] * MEMBERS)
        for number in range(MEMBERS):
            own = [line for line in heard[0] if line.split()[0] == str(number).encode()]
            h.equal(own, [f"{number} {line}".encode() for line in range(LINES)])
        h.equal(r.pubsub_numsub("room:1"), [(b"room:1", MEMBERS // 2)])
        h.equal((r.pubsub_channels("room:*"), r.pubsub_numpat()), ([b"room:1"], 1))
        for room in rooms:
            room.close()
        h.eventually(lambda: r.pubsub_channels() == [] and r.pubsub_numpat() == 0, 10)

    def events():
        h.equal(r.config_set("notify-keyspace-events", "KEA"), True)
        pubsub = h.client().pubsub()
        pubsub.psubscribe("__keyevent@0__:*")
        pubsub.get_message(timeout=10)
        r.set("told", "1", px=30)
        h.eventually(lambda: r.get("told") is None, 10)
        seen = [(message["channel"], message["data"]) for message in take(pubsub, 3)]
        h.equal(seen, [(b"__keyevent@0__:" + event, b"told") for event in (b"set", b"expire", b"expired")])
        h.equal(r.config_set("notify-keyspace-events", ""), True)
        pubsub.close()

    def caching():
        told = h.client(protocol=2).pubsub()
        told.subscribe("__redis__:invalidate")
        told.get_message(timeout=10)
        listener = next(client["id"] for client in r.client_list() if client["sub"] == "1")
        reader, cache = h.client(protocol=2, max_connections=1), {}
        h.equal(reader.client_tracking_on(clientid=int(listener)), b"OK")
        for value in (b"1", b"2", b"3"):
            r.set("cached", value)
            cache["cached"] = reader.get("cached")
            h.equal(cache, {"cached": value})
            r.append("cached", "0")
            for key in take(told, 1)[0]["data"]:
                del cache[key.decode()]
            h.equal(cache, {})
        h.equal(reader.client_tracking_off(), b"OK")
        told.close()

    def thread_of_a_subscriber():
        got = []
        done = threading.Event()
        pubsub = h.client().pubsub(ignore_subscribe_messages=True)
        pubsub.subscribe(**{"worker": lambda message: (got.append(message["data"]), len(got) == 3 and done.set())})
        worker = pubsub.run_in_thread(sleep_time=0.01)
        h.eventually(lambda: r.publish("worker", "0") == 1, 10)
        for text in ("1", "2"):
            r.publish("worker", text)
        h.equal(done.wait(10), True)
        h.equal(got[:3], [b"0", b"1", b"2"])
        worker.stop()
        worker.join()

    h.check("a chat over channels and patterns, RESP2", lambda: chat(2))
    h.check("a chat over channels and patterns, RESP3", lambda: chat(3))
    h.check("events of keys", events)
    h.check("a cache in the client", caching)
    h.check("a thread of a subscriber", thread_of_a_subscriber)
