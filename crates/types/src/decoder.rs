//! Strings that are stored compressed, as the commands see them: what was decompressed last is kept until something changes, so
//! that a command that looks at a string twice, or looks at it and edits it, decompresses it once.
//!
//! Format of what is stored: docs/formats/stored-value.md.

use codec::stored::Stored;
use codec::{Dictionaries, Reader, Workspace};
use engine::{Engine, Entry, Key, Type, Value};
use std::sync::Arc;

/// Memory for a decompressed string, and for its key, that is kept from command to command.
const BYTES_KEPT_MAX: usize = 1 << 20;

/// Whose string was decompressed: that of the decoder's key.
struct Of {
    space: base::KeyspaceId,
    /// The access stamp it had before a command used it; `None` when none did.
    used: Option<u32>,
}

/// Decompresses strings. One for each worker.
#[derive(Default)]
pub struct Decoder {
    workspace: Workspace,
    reader: Reader,
    /// The string decompressed last.
    bytes: Vec<u8>,
    /// Whose it is.
    of: Option<Of>,
    /// The key it is under; kept for its memory when it is nobody's.
    key: Vec<u8>,
    /// Strings decompressed.
    count: u64,
}

impl Decoder {
    /// The entry with its value decompressed, unless it is so already. `dictionaries` are those of its store, here and below.
    ///
    /// # Panics
    /// When what is stored cannot be read: it was checked when it came, so that memory is damaged, or the program is wrong.
    pub fn show<'a>(&'a mut self, dictionaries: &Arc<Dictionaries>, entry: Entry<'a>) -> Entry<'a> {
        if !entry.is_compressed() {
            return entry;
        }
        self.of = None;
        self.decompress(dictionaries, entry.value.bytes());
        Entry { encoding: entry.encoding.decompressed(), value: Value::Bytes(&self.bytes), ..entry }
    }

    /// [`Decoder::show`] of the entry under this key, which is kept until [`Decoder::forget`]. Takes the entry to be compressed.
    /// `is_used` says that it counts as an access.
    ///
    /// # Panics
    /// As [`Decoder::show`].
    #[cold]
    pub fn show_and_keep<'a>(
        &'a mut self,
        dictionaries: &Arc<Dictionaries>,
        key: &Key<'_>,
        entry: Entry<'a>,
        is_used: bool,
    ) -> Entry<'a> {
        self.decompress_once(dictionaries, key, entry.value.bytes());
        if is_used && let Some(of) = &mut self.of {
            of.used.get_or_insert(entry.stamp);
        }
        Entry { encoding: entry.encoding.decompressed(), value: Value::Bytes(&self.bytes), ..entry }
    }

    /// Has the compressed string under the key stored as it is.
    ///
    /// # Panics
    /// As [`Decoder::show`]; and when nothing is stored there.
    pub fn decompress_in_place<E: Engine + ?Sized>(
        &mut self,
        dictionaries: &Arc<Dictionaries>,
        engine: &mut E,
        key: &Key<'_>,
    ) {
        let Ok(Some(entry)) = engine.read(key, false) else {
            panic!("a string that is not stored was to be decompressed")
        };
        let encoding = entry.encoding.decompressed();
        self.decompress_once(dictionaries, key, entry.value.bytes());
        engine.recode(key, encoding, Value::Bytes(&self.bytes));
    }

    /// Whether a string is kept.
    #[inline]
    pub fn keeps(&self) -> bool {
        self.of.is_some()
    }

    /// The string that is kept, if a command has used it: the stamp it had before that, where it is, and what it is.
    pub fn used(&self) -> Option<(u32, base::KeyspaceId, &[u8], &[u8])> {
        self.of.as_ref().and_then(|of| Some((of.used?, of.space, &*self.key, &*self.bytes)))
    }

    /// What is stored has changed, or may have: called before a command looks at anything, and after each change.
    #[inline]
    pub fn forget(&mut self) {
        self.of = None;
    }

    /// How many strings were decompressed since the last call.
    pub fn take_count(&mut self) -> u64 {
        std::mem::take(&mut self.count)
    }

    fn decompress_once(&mut self, dictionaries: &Arc<Dictionaries>, key: &Key<'_>, stored: &[u8]) {
        if self.of.as_ref().is_some_and(|of| of.space == key.space && self.key == key.bytes) {
            return;
        }
        self.decompress(dictionaries, stored);
        self.key.clear();
        self.key.shrink_to(BYTES_KEPT_MAX);
        self.key.extend_from_slice(key.bytes);
        self.of = Some(Of { space: key.space, used: None });
    }

    fn decompress(&mut self, dictionaries: &Arc<Dictionaries>, stored: &[u8]) {
        self.reader.follow(dictionaries);
        self.bytes.clear();
        self.bytes.shrink_to(BYTES_KEPT_MAX);
        self.count = self.count.saturating_add(1);
        if let Err(error) = self.workspace.decode(stored, &mut self.reader, &mut self.bytes) {
            panic!("a compressed string in memory cannot be read: {error}");
        }
    }
}

/// Bytes of the string in an entry, whether it is compressed or not; of another type, those of its packed form.
pub fn string_len(entry: &Entry<'_>) -> usize {
    match entry.is_compressed() {
        false => entry.value.len(),
        true => Stored::parse(entry.value.bytes()).map_or(0, |stored| stored.len),
    }
}

/// Whether a string may be stored compressed: what reads as an integer is not, so that OBJECT ENCODING can name every compressed
/// string without reading it.
pub fn may_be_compressed(kind: Type, value: &[u8]) -> bool {
    kind == Type::String && base::integer::parse_integer(value).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::Method;
    use engine::Encoding;

    /// A string is the same before and after, and its length is told without reading it.
    #[test]
    fn compressed_strings_are_shown_as_they_were() {
        let mut stored = Vec::new();
        assert!(Workspace::new().encode(Method::Lzf, &[b'x'; 300], usize::MAX, &mut stored));
        let encoding = Encoding::EDITED.compressed();
        let value = Value::Bytes(&stored);
        let entry = Entry { key: b"k", kind: Type::String, encoding, value, expire_at: Some(5), stamp: 7 };
        assert_eq!(string_len(&entry), 300);
        let (mut decoder, dictionaries) = (Decoder::default(), Arc::<Dictionaries>::default());
        let shown = decoder.show(&dictionaries, entry);
        assert_eq!((shown.value.bytes(), shown.encoding), (&[b'x'; 300][..], Encoding::EDITED));
        assert_eq!((shown.key, shown.expire_at, shown.stamp), (&b"k"[..], Some(5), 7));
        assert_eq!(decoder.take_count(), 1);
        let raw = Entry { encoding: Encoding::PLAIN, ..entry };
        assert_eq!(decoder.show(&dictionaries, raw).value.bytes(), stored);
        assert_eq!((decoder.take_count(), string_len(&raw)), (0, stored.len()));
    }
}
