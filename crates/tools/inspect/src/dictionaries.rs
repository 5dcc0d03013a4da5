//! The dictionaries in a directory, whether or not a manifest names them.

use checkpoint::{DictionaryInfo, Name};
use codec::{CodecError, Dictionaries, Dictionary, DictionaryNumber};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use vfs::{FileSystem, FsError};

/// The whole dictionaries, by number. If two have one number, which no server writes, the last by name counts.
fn found(fs: &dyn FileSystem, dir: &Path) -> Result<BTreeMap<DictionaryNumber, Dictionary>, FsError> {
    let mut all = BTreeMap::new();
    let mut names: Vec<Name> = fs.read_dir(dir)?.iter().map(|entry| Name::parse(&entry.name)).collect();
    names.sort_by_key(Name::to_string);
    for name in names {
        let Name::Dictionary(hash) = name else { continue };
        match Dictionary::open(fs, dir, hash) {
            Ok(dictionary) => drop(all.insert(dictionary.number(), dictionary)),
            Err(CodecError::Fs(error)) if !error.is_not_found() => return Err(error),
            Err(_) => {}
        }
    }
    Ok(all)
}

/// These dictionaries, for reading values.
pub(crate) fn known(fs: &dyn FileSystem, dir: &Path) -> Result<Arc<Dictionaries>, FsError> {
    let known = Arc::<Dictionaries>::default();
    found(fs, dir)?.into_values().for_each(|dictionary| drop(known.insert(dictionary)));
    Ok(known)
}

/// These dictionaries, as a manifest would list them without further knowledge.
pub(crate) fn gathered(fs: &dyn FileSystem, dir: &Path) -> Result<Vec<DictionaryInfo>, FsError> {
    let info = |(number, dictionary): (DictionaryNumber, Dictionary)| DictionaryInfo {
        number,
        hash: dictionary.hash(),
        unneeded_from: None,
    };
    Ok(found(fs, dir)?.into_iter().map(info).collect())
}
