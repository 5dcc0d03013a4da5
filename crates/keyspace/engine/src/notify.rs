//! Keyspace notifications: what happens to keys, by class, for clients that have subscribed.

bitflags::bitflags! {
    /// A kind of event, and the letters of `notify-keyspace-events` that ask for it. The last two choose the channel of
    /// an event.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct NotifyClass: u16 {
        /// `g`: commands for any type, such as DEL, EXPIRE, RENAME.
        const GENERIC = 1 << 0;
        /// `$`: strings.
        const STRING = 1 << 1;
        /// `l`: lists.
        const LIST = 1 << 2;
        /// `s`: sets.
        const SET = 1 << 3;
        /// `h`: hashes.
        const HASH = 1 << 4;
        /// `z`: sorted sets.
        const ZSET = 1 << 5;
        /// `x`: keys removed because their time had come.
        const EXPIRED = 1 << 6;
        /// `e`: keys removed to make room.
        const EVICTED = 1 << 7;
        /// `t`: streams.
        const STREAM = 1 << 8;
        /// `m`: reads of keys that are not there; not part of `A`.
        const MISS = 1 << 9;
        /// `d`: types of modules.
        const MODULE = 1 << 10;
        /// `n`: keys that come to be; not part of `A`.
        const NEW = 1 << 11;
        /// `K`: published on the key's channel, with the event as the message.
        const KEYSPACE = 1 << 12;
        /// `E`: published on the event's channel, with the key as the message.
        const KEYEVENT = 1 << 13;
    }
}

impl NotifyClass {
    /// What `A` stands for.
    pub const ALL: Self = Self::GENERIC
        .union(Self::STRING)
        .union(Self::LIST)
        .union(Self::SET)
        .union(Self::HASH)
        .union(Self::ZSET)
        .union(Self::EXPIRED)
        .union(Self::EVICTED)
        .union(Self::STREAM)
        .union(Self::MODULE);

    /// The class of a letter of `notify-keyspace-events`; `None` for any other.
    pub const fn of_letter(letter: char) -> Option<Self> {
        Some(match letter {
            'A' => Self::ALL,
            'g' => Self::GENERIC,
            '$' => Self::STRING,
            'l' => Self::LIST,
            's' => Self::SET,
            'h' => Self::HASH,
            'z' => Self::ZSET,
            'x' => Self::EXPIRED,
            'e' => Self::EVICTED,
            't' => Self::STREAM,
            'm' => Self::MISS,
            'd' => Self::MODULE,
            'n' => Self::NEW,
            'K' => Self::KEYSPACE,
            'E' => Self::KEYEVENT,
            _ => return None,
        })
    }
}
