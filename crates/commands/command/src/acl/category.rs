//! The categories of commands.

use crate::spec::{Categories, Flags, Spec};

/// A category: `@read` and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Category(&'static str);

/// All categories, in the order of Redis and Valkey.
const NAMES: [&str; 21] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

impl Category {
    /// All categories, in the order of Redis and Valkey.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        NAMES.into_iter().map(Self)
    }

    /// The category of this name, in any case and without `@`.
    pub fn find(name: &[u8]) -> Option<Self> {
        NAMES.into_iter().find(|known| name.eq_ignore_ascii_case(known.as_bytes())).map(Self)
    }

    /// Its name without `@`.
    pub fn name(self) -> &'static str {
        self.0
    }

    /// Whether a command belongs to it.
    pub fn has<R>(self, spec: &Spec<R>) -> bool {
        categories(spec).any(|category| category == self)
    }
}

/// The categories of a command, in the order of [`Category::all`].
pub fn categories<R>(spec: &Spec<R>) -> impl Iterator<Item = Category> + use<R> {
    let (flags, own) = (spec.flags, spec.categories);
    let is_in = move |name: &str| match name {
        "keyspace" => own.contains(Categories::KEYSPACE),
        "read" => flags.contains(Flags::READONLY) && !own.contains(Categories::SCRIPTING),
        "write" => flags.contains(Flags::WRITE),
        "set" => own.contains(Categories::SET),
        "sortedset" => own.contains(Categories::SORTED_SET),
        "list" => own.contains(Categories::LIST),
        "hash" => own.contains(Categories::HASH),
        "string" => own.contains(Categories::STRING),
        "bitmap" => own.contains(Categories::BITMAP),
        "hyperloglog" => own.contains(Categories::HYPERLOGLOG),
        "geo" => own.contains(Categories::GEO),
        "stream" => own.contains(Categories::STREAM),
        "pubsub" => flags.contains(Flags::PUBSUB),
        "admin" => flags.contains(Flags::ADMIN),
        "fast" => flags.contains(Flags::FAST),
        "slow" => !flags.contains(Flags::FAST),
        "blocking" => flags.contains(Flags::BLOCKING),
        "dangerous" => own.contains(Categories::DANGEROUS) || flags.contains(Flags::ADMIN),
        "connection" => own.contains(Categories::CONNECTION),
        "transaction" => own.contains(Categories::TRANSACTION),
        "scripting" => own.contains(Categories::SCRIPTING),
        _ => false,
    };
    NAMES.into_iter().filter(move |name| is_in(name)).map(Category)
}
