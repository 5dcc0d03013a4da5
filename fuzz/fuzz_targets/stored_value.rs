//! Stored values: arbitrary bytes, read with an available dictionary; the same bytes as a value to store; and as a
//! dictionary file.
#![no_main]

use codec::dictionary::DictionaryFile;
use codec::stored::Stored;
use codec::{Dictionaries, Dictionary, DictionaryNumber, Encoder, Method, Reader, Workspace, zstd};
use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use vfs::SimFs;

/// The state of a thread: created once, used for every input, as in the server.
struct Thread {
    workspace: Workspace,
    reader: Reader,
    encoder: Encoder,
}

impl Thread {
    fn new() -> Self {
        let samples: Vec<String> = (0..500u32)
            .map(|n| format!("{{\"id\": {n}, \"name\": \"user{}\", \"active\": {}}}", n * 7919 % 1000, n % 3 == 0))
            .collect();
        let samples: Vec<&[u8]> = samples.iter().map(String::as_bytes).collect();
        let content = zstd::train(&samples, 2048).expect("samples enough");
        let file = DictionaryFile { number: DictionaryNumber(NonZeroU32::MIN), class: b"users".to_vec(), content };
        let dictionary = Dictionary::create(&SimFs::new(1), Path::new("/"), file).expect("a dictionary");
        let all = Arc::<Dictionaries>::default();
        let encoder = all.insert(dictionary).into_encoder(1).expect("memory");
        Self { workspace: Workspace::new(), reader: all.reader(), encoder }
    }
}

thread_local! {
    static THREAD: RefCell<Thread> = RefCell::new(Thread::new());
}

fuzz_target!(|input: &[u8]| THREAD.with_borrow_mut(|Thread { workspace, reader, encoder }| {
    let mut out = Vec::new();
    match workspace.decode(input, reader, &mut out) {
        Ok(()) => assert_eq!(out.len(), Stored::parse(input).expect("it was read").len),
        Err(_) => assert!(out.is_empty()),
    }

    for method in [Method::Lzf, Method::Lz4, Method::Zstd(1), Method::Dictionary(encoder)] {
        let (mut stored, mut again) = (Vec::new(), Vec::new());
        if workspace.encode(method, input, usize::MAX, &mut stored) {
            assert!(stored.len() < input.len());
            workspace.decode(&stored, reader, &mut again).expect("what was stored is good");
            assert_eq!(again, input);
        }
    }

    if let Ok(file) = DictionaryFile::decode(input) {
        assert_eq!(file.encode().expect("it was accepted"), input);
    }
}));
