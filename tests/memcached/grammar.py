"""Random requests of memcached clients, and replies in a form that two servers can share.

CAS ids differ between servers: a request names the id that its server gave last for the key, and replies show ids as
`#same` or `#new`. Counters have keys of their own, since memcached leaves spaces after a number that gets shorter.
"""

import base64
import re

KEYS = [b"a", b"b", b"key:with:colons", b"k" * 250]
COUNTERS = [b"n1", b"n2"]
DATA = [b"", b"x", b"abc", b"two\r\nlines", b"END\r\n", b"\xff\x00\x80", b"y" * 5000]
TIMES = [b"0", b"0", b"0", b"-1", b"100", b"2592000", b"2592001", b"2000000000", b"+5", b"007"]
WRONG = [b"", b"x", b"1x", b"-", b"99999999999999999999", b"0x10"]
FLAGS = [b"0", b"1", b"17", b"4294967295"]
ID = b"<ID>"
NO_ID = b"999999999999"


def storing(random, key, verb, data):
    flags, exptime = random.choice(FLAGS), random.choice(TIMES)
    words = [verb, key, flags, exptime, str(len(data)).encode()]
    if verb == b"cas":
        words.append(random.choice([ID + key + b">", ID + key + b">", NO_ID]))
    if random.random() < 0.15:
        words.append(b"noreply")
    return b" ".join(words) + b"\r\n" + data + b"\r\n"


def flags(random, choices, most=5):
    """Some of the flags, each letter once."""
    letters, chosen = set(), []
    for flag in random.sample(choices, random.randint(0, most)):
        if flag[:1] not in letters:
            letters.add(flag[:1])
            chosen.append(flag)
    return b"".join(b" " + flag for flag in chosen)


ECHOES = [b"k", b"Oabc", b"q"]
META_TIMES = [b"T0", b"T-1"]


def meta(random):
    # A key that is always sent as base64 text: memcached shows a key as the item was stored, and not as it was asked
    # for.
    is_binary = random.random() < 0.1
    key = b"\x01\xffbinary" if is_binary else random.choice(KEYS)
    shown, own = (base64.b64encode(key), [b"b"]) if is_binary else (key, [])
    compared = random.choice([ID + key + b">", ID + key + b">", NO_ID, b"0"])
    kind = random.random()
    if kind < 0.4:
        words = flags(
            random,
            [
                *(ECHOES[1:] if is_binary else ECHOES),
                b"v", b"f", b"s", b"c", b"u", b"t",
                random.choice(META_TIMES),
                b"N0",
                b"R30",
            ],
        )
        return b"mg " + shown + words + b"".join(b" " + flag for flag in own) + b"\r\n"
    if kind < 0.7:
        data, modes = random.choice(DATA), [b"MS", b"MS", b"ME", b"MR", b"MA", b"MP"]
        words = flags(random, [*ECHOES, b"c", b"F" + random.choice(FLAGS), b"T0", b"C" + compared,
                               random.choice(modes)])
        return (
            b"ms "
            + shown
            + b" %d" % len(data)
            + words
            + b"".join(b" " + flag for flag in own)
            + b"\r\n"
            + data
            + b"\r\n"
        )
    if kind < 0.8:
        words = flags(random, [*ECHOES, b"C" + compared, b"I", random.choice(META_TIMES)])
        return b"md " + shown + words + b"".join(b" " + flag for flag in own) + b"\r\n"
    if kind < 0.95:
        words = flags(random, [*ECHOES, b"v", b"c", b"t", b"D" + random.choice([b"1", b"100"]), b"N0", b"J5",
                               b"M" + random.choice([b"I", b"D", b"+", b"-"]), b"C" + compared])
        return b"ma " + random.choice([shown, random.choice(COUNTERS)]) + words + b"\r\n"
    return random.choice(
        [
            b"mg\r\n", b"ms\r\n", b"md\r\n", b"ma\r\n", b"me\r\n", b"ms a\r\n", b"ms a x\r\n", b"ms a -1\r\n",
            b"mg a v v\r\n", b"mg a x\r\n", b"mg a Tx\r\n", b"mg a N\r\n", b"mg a Fx\r\n", b"mg a Mxx\r\n",
            b"ms a 1 x\r\nb\r\n", b"ms a 1 Mx\r\nb\r\n", b"ms a 1 Tx\r\nb\r\n", b"ms a 1\r\nbcd\r\n", b"md a x\r\n",
            b"md a q q\r\n", b"ma n1 Dx\r\n", b"ma n1 Mx\r\n", b"ma n1 N0 Jx\r\n", b"mg !!! b k\r\n",
            b"mg a O" + b"x" * 32 + b"\r\n",
            b"md a O" + b"x" * 32 + b"\r\n",
            b"mz a\r\n",
            b"mg " + b"k" * 251 + b"\r\n",
            b"ms " + b"k" * 251 + b" 1\r\n",
            b"mg a" + b" v" * 20 + b"\r\n",
            b"me absent\r\n",
        ]
    )


def wrong(random):
    """A line that is refused, or data that does not fit. Not a key to get that is too long: for it memcached 1.6.18
    drops the replies to all earlier requests of the pipeline."""
    key = random.choice(KEYS)
    lines = [
        b"\r\n", b"get\r\n", b"gets\r\n", b"GET a\r\n", b"foo bar\r\n", b"x\r\n", b"set a 0 0\r\n", b"set\r\n",
        b"delete\r\n",
        b"set " + b"k" * 251 + b" 0 0 1\r\n",
        b"delete " + b"k" * 251 + b"\r\n",
        b"incr " + b"k" * 251 + b" 1\r\n",
        b"touch " + b"k" * 251 + b" 1\r\n",
        b"delete a 1\r\n", b"delete a 0 x\r\n", b"delete a 1 noreply\r\n", b"delete a noreply noreply\r\n",
        b"incr a\r\n", b"incr a 1 2 3\r\n", b"touch a\r\n",
        b"incr n1 " + random.choice(WRONG) + b"\r\n",
        b"decr n1 -1\r\n",
        b"touch a " + random.choice(WRONG[1:4]) + b"\r\n",
        b"gat " + random.choice(WRONG[1:4]) + b" a\r\n",
        b"verbosity\r\n", b"flush_all x\r\n", b"flush_all 1 2 3\r\n", b"mx\r\n",
        b"set a " + random.choice(WRONG[1:4]) + b" 0 1\r\nb\r\n",
        b"set a 0 " + random.choice(WRONG[1:4]) + b" 1\r\nb\r\n",
        b"set a 0 0 -1\r\n",
        b"set a 0 0 " + random.choice(WRONG[1:4]) + b"\r\n",
        b"cas a 0 0 1 x\r\nb\r\n", b"set a 0 0 1\r\nabc\r\n", b"add a 0 0 1 noreply\r\nabcd\r\n",
        b"set " + key + b" 0 0 2\r\nabcdef\r\n",
    ]
    return random.choice(lines)


def request(random):
    key, kind = random.choice(KEYS), random.random()
    if kind < 0.30 and random.random() < 0.5:
        return meta(random)
    if kind < 0.22:
        verb = random.choice([b"set", b"set", b"add", b"replace", b"append", b"prepend", b"cas", b"cas"])
        return storing(random, key, verb, random.choice(DATA))
    if kind < 0.50:
        keys = random.sample(KEYS + COUNTERS, random.randint(1, 4))
        verb = random.choice(
            [b"get", b"get", b"gets", b"gets", b"gat " + random.choice(TIMES), b"gats " + random.choice(TIMES)]
        )
        return verb + random.choice([b" ", b"  "]) + b" ".join(keys) + random.choice([b"\r\n", b"\n", b" \r\n"])
    if kind < 0.64:
        counter = random.choice(COUNTERS)
        silent = random.choice([b"", b"", b"", b" noreply"])
        if random.random() < 0.3:
            return storing(random, counter, b"set", random.choice([b"0", b"10", b"99", b"18446744073709551615", b"x"]))
        delta = random.choice([b"1", b"9", b"100", b"18446744073709551615"])
        return random.choice([b"incr ", b"decr "]) + counter + b" " + delta + silent + b"\r\n"
    if kind < 0.80:
        silent = random.choice([b"", b"", b" noreply"])
        return (
            random.choice(
                [
                    b"delete " + key + silent,
                    b"delete " + key + b" 0" + silent,
                    b"touch " + key + b" " + random.choice(TIMES) + silent,
                    b"incr " + key + b" 5" + silent,
                ]
            )
            + b"\r\n"
        )
    if kind < 0.83:
        return random.choice([b"flush_all\r\n", b"flush_all 0\r\n", b"flush_all noreply\r\n", b"verbosity 0\r\n"])
    if kind < 0.84:
        size = 2 << 20
        return random.choice([b"set ", b"add "]) + key + b" 0 0 " + str(size).encode() + b"\r\n" + b"z" * size + b"\r\n"
    return wrong(random)


META = re.compile(rb"(?m)^(?:VA \d+|HD|EN|NF|NS|EX)(?: [^\r\n]*)?\r$")
VALUE = re.compile(rb"VALUE (\S+) (\d+) (\d+)(?: (\d+))?\r\n")


def without_numbers(line):
    """A line of a meta command without ids and times, but for an id of 0 and a time of -1."""
    return re.sub(rb" t\d+", b" t#", re.sub(rb" c[1-9]\d*", b" c#", line[0]))


class Ids:
    """The CAS ids that one server has given, and requests and replies with them taken out."""

    def __init__(self):
        self.last = {}

    def fill_in(self, request):
        return re.sub(re.escape(ID) + rb"(.*?)>", lambda found: self.last.get(found[1], NO_ID), request)

    def take_out(self, reply):
        """The reply with each id as `#same` or `#new`, and without the spaces after numbers."""
        out, at = b"", 0
        while found := VALUE.search(reply, at):
            key, flags, length, given = found.groups()
            data = reply[found.end(): found.end() + int(length)]
            if key in COUNTERS:
                data = data.rstrip(b" ")
            shown = b""
            if given is not None:
                shown = b" #same" if self.last.get(key) == given else b" #new"
                self.last[key] = given
            out += reply[at: found.start()] + b"VALUE %s %s %d%s\r\n%s" % (key, flags, len(data), shown, data)
            at = found.end() + int(length)
        return META.sub(without_numbers, out + reply[at:])
