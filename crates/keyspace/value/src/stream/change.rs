//! What can happen to a stream, and its bytes. Format: docs/formats/collections.md.

use super::{Claims, Fields, Id, Ids};
use crate::wire::{put_string, take_byte, take_string};
use base::{UnixMs, varint};

/// One change. A group or consumer that it names and that is not there makes it do nothing, unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<'a> {
    /// Adds an entry at the end.
    Add {
        /// Its id, above all that the stream has had.
        id: Id,
        /// What it holds.
        fields: Fields<'a>,
    },
    /// Removes entries, wherever they are, and remembers that there is a gap.
    Delete {
        /// Which; one that is not there counts for nothing.
        ids: Ids<'a>,
    },
    /// Removes the first entries.
    Trim {
        /// How many; none make an empty stream of one that is absent.
        count: u64,
    },
    /// Says what the stream has seen.
    SetId {
        /// The id that new ones are above.
        last: Id,
        /// How many entries were ever added.
        added: u64,
        /// The highest id deleted.
        deleted: Id,
    },
    /// Makes a group, or moves one.
    SetGroup {
        /// Its name.
        group: &'a [u8],
        /// The last id it delivered.
        last: Id,
        /// How many entries up to there were ever added; `None` when that is not known.
        read: Option<u64>,
    },
    /// Removes a group with its consumers and pending entries.
    DestroyGroup {
        /// Its name.
        group: &'a [u8],
    },
    /// Makes a consumer, or says when it was there.
    SetConsumer {
        /// The group, which exists.
        group: &'a [u8],
        /// The consumer's name.
        consumer: &'a [u8],
        /// When it last asked.
        seen: UnixMs,
        /// When it last was given an entry.
        active: Option<UnixMs>,
    },
    /// Removes a consumer with its pending entries.
    DeleteConsumer {
        /// The group.
        group: &'a [u8],
        /// The consumer's name.
        consumer: &'a [u8],
    },
    /// Makes entries pending for a consumer, whichever consumer had them before.
    Deliver {
        /// The group.
        group: &'a [u8],
        /// The consumer, which exists.
        consumer: &'a [u8],
        /// Which entries, when, and how often by now.
        claims: Claims<'a>,
    },
    /// Entries are pending no more.
    Acknowledge {
        /// The group.
        group: &'a [u8],
        /// Which.
        ids: Ids<'a>,
    },
}

/// Whether the encoded changes of one command concern entries, and not only groups or the stream's counters: changes of
/// entries come first.
pub fn are_about_entries(changes: &[u8]) -> bool {
    matches!(changes.first(), Some(&(ADD | DELETE | TRIM)))
}

const ADD: u8 = 1;
const DELETE: u8 = 2;
const TRIM: u8 = 3;
const SET_ID: u8 = 4;
const SET_GROUP: u8 = 5;
const DESTROY_GROUP: u8 = 6;
const SET_CONSUMER: u8 = 7;
const DELETE_CONSUMER: u8 = 8;
const DELIVER: u8 = 9;
const ACKNOWLEDGE: u8 = 10;

impl<'a> Change<'a> {
    /// Appends its encoded form.
    pub fn put(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Add { id, ref fields } => {
                out.push(ADD);
                id.put(out);
                fields.put(out);
            }
            Self::Delete { ref ids } => {
                out.push(DELETE);
                ids.put(out);
            }
            Self::Trim { count } => {
                out.push(TRIM);
                varint::put(out, count);
            }
            Self::SetId { last, added, deleted } => {
                out.push(SET_ID);
                last.put(out);
                varint::put(out, added);
                deleted.put(out);
            }
            Self::SetGroup { group, last, read } => {
                out.push(SET_GROUP);
                put_string(out, group);
                last.put(out);
                put_option(out, read);
            }
            Self::DestroyGroup { group } => {
                out.push(DESTROY_GROUP);
                put_string(out, group);
            }
            Self::SetConsumer { group, consumer, seen, active } => {
                out.push(SET_CONSUMER);
                put_string(out, group);
                put_string(out, consumer);
                varint::put(out, varint::zigzag(seen));
                put_option(out, active.map(varint::zigzag));
            }
            Self::DeleteConsumer { group, consumer } => {
                out.push(DELETE_CONSUMER);
                put_string(out, group);
                put_string(out, consumer);
            }
            Self::Deliver { group, consumer, ref claims } => {
                out.push(DELIVER);
                put_string(out, group);
                put_string(out, consumer);
                claims.put(out);
            }
            Self::Acknowledge { group, ref ids } => {
                out.push(ACKNOWLEDGE);
                put_string(out, group);
                ids.put(out);
            }
        }
    }

    /// Appends [`Change::Add`], with the names and values where they are. There is at least one pair.
    pub fn put_add<'s>(out: &mut Vec<u8>, id: Id, pairs: u64, strings: impl Iterator<Item = &'s [u8]>) {
        out.push(ADD);
        id.put(out);
        Fields::put_strings(pairs, strings, out);
    }

    /// Takes one from the front; `None` when the bytes are no change in its only form.
    pub fn take(from: &mut &'a [u8]) -> Option<Self> {
        Some(match take_byte(from)? {
            ADD => Self::Add { id: Id::take(from)?, fields: Fields::take(from)? },
            DELETE => Self::Delete { ids: Ids::take(from)? },
            TRIM => Self::Trim { count: varint::take(from)? },
            SET_ID => Self::SetId { last: Id::take(from)?, added: varint::take(from)?, deleted: Id::take(from)? },
            SET_GROUP => Self::SetGroup { group: take_string(from)?, last: Id::take(from)?, read: take_option(from)? },
            DESTROY_GROUP => Self::DestroyGroup { group: take_string(from)? },
            SET_CONSUMER => Self::SetConsumer {
                group: take_string(from)?,
                consumer: take_string(from)?,
                seen: varint::unzigzag(varint::take(from)?),
                active: take_option(from)?.map(varint::unzigzag),
            },
            DELETE_CONSUMER => Self::DeleteConsumer { group: take_string(from)?, consumer: take_string(from)? },
            DELIVER => {
                Self::Deliver { group: take_string(from)?, consumer: take_string(from)?, claims: Claims::take(from)? }
            }
            ACKNOWLEDGE => Self::Acknowledge { group: take_string(from)?, ids: Ids::take(from)? },
            _ => return None,
        })
    }
}

/// Appends 0 for none, 1 and the number for one.
fn put_option(out: &mut Vec<u8>, number: Option<u64>) {
    out.push(u8::from(number.is_some()));
    if let Some(number) = number {
        varint::put(out, number);
    }
}

fn take_option(from: &mut &[u8]) -> Option<Option<u64>> {
    match take_byte(from)? {
        0 => Some(None),
        1 => varint::take(from).map(Some),
        _ => None,
    }
}
