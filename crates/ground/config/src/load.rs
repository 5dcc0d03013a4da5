//! From file and command line to settings. Every line is read, and every mistake is reported, before giving up.

use crate::directive::Kind;
use crate::redacted::redacted;
use crate::settings::UserLine;
use crate::syntax::{printable, quote, split_words};
use crate::table::nearest_name;
use crate::{
    CommandLine, Directive, FileArgument, Given, LoadError, LoadErrors, Origin, Problem, Setting, Settings, ValueError,
    Warning, find, include, rules,
};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use vfs::{FileSystem, FsError, Op, OpenOptions};

/// Files included by files included by files.
const DEPTH_MAX: usize = 16;
/// Files altogether.
const FILES_MAX: usize = 1000;
/// Bytes of one file, or of standard input.
const FILE_BYTES_MAX: usize = 4 << 20;
/// Bytes of all files together.
const BYTES_MAX: usize = 16 << 20;
/// The number of mistakes after which the rest is not reported: an operator would not read it.
const ERRORS_MAX: usize = 50;

/// A configuration a server may start with.
#[derive(Debug)]
pub struct Loaded {
    /// The values.
    pub settings: Settings,
    /// What the log should say at start.
    pub warnings: Vec<Warning>,
    /// The file as an absolute path, for CONFIG REWRITE and INFO; none for standard input.
    pub file: Option<PathBuf>,
    /// Names of the directives that the file or the command line set.
    pub given: BTreeSet<&'static str>,
}

/// Reads the file, then the options over it, and checks the whole. Later values win over earlier ones.
///
/// # Errors
/// Everything that is wrong, see [`Problem`] and [`crate::RuleError`].
pub fn load(line: &CommandLine, fs: &dyn FileSystem, stdin: &mut dyn Read) -> Result<Loaded, LoadErrors> {
    let mut loader = Loader::new(fs);
    let mut file = None;
    match &line.file {
        None => {}
        Some(FileArgument::Stdin) => loader.stdin(stdin),
        Some(FileArgument::Path(path)) => {
            // A path that cannot be made absolute cannot be read either.
            file = Some(std::path::absolute(path).unwrap_or_else(|_| path.clone()));
            if let Err(error) = loader.file(path) {
                loader.errors.push(LoadError::File(error));
            }
        }
    }
    for given in &line.options {
        loader.given(given, &Origin::CommandLine, || redacted_words(given));
    }
    let given = std::mem::take(&mut loader.set);
    let (settings, mut warnings) = loader.finish()?;
    match rules::check(&settings, &given) {
        Ok(warning) => warnings.extend(warning),
        Err(error) => return Err(LoadErrors(vec![error.into()])),
    }
    Ok(Loaded { settings, warnings, file, given })
}

/// What a file of these contents means, read as if it stood at `path`: with its includes, without the rules that only
/// the whole of file and options has to keep.
pub(crate) fn load_text(path: &Path, text: &[u8], fs: &dyn FileSystem) -> Result<Settings, LoadErrors> {
    let mut loader = Loader::new(fs);
    loader.text_of(path, text);
    loader.finish().map(|(settings, _)| settings)
}

/// The words that a field is set from: one word of the file that holds several is split again.
pub(crate) fn value_words(setting: &Setting, words: Vec<Vec<u8>>) -> Option<Vec<Vec<u8>>> {
    match words.as_slice() {
        [word] if setting.field.takes_many() && !word.is_empty() => split_words(word),
        _ => Some(words),
    }
}

fn redacted_words(given: &Given) -> String {
    let mut line = given.name.clone();
    for word in &given.words {
        line.push(b' ');
        let plain = !word.is_empty() && word.iter().all(|byte| byte.is_ascii_graphic() && !b"\"'\\".contains(byte));
        line.extend(if plain { word.clone() } else { quote(word).into_bytes() });
    }
    redacted(&line)
}

struct Loader<'a> {
    fs: &'a dyn FileSystem,
    settings: Settings,
    /// Names of the directives that were set.
    set: BTreeSet<&'static str>,
    errors: Vec<LoadError>,
    /// Refused values; a later value of the same directive takes its place, and may be fine.
    refused: Vec<(&'static Directive, LoadError)>,
    not_needed: Vec<(&'static Directive, Origin)>,
    /// The files being read, each included by the one before it.
    open: Vec<PathBuf>,
    file_count: usize,
    byte_count: usize,
}

impl<'a> Loader<'a> {
    fn new(fs: &'a dyn FileSystem) -> Self {
        Self {
            fs,
            settings: Settings::default(),
            set: BTreeSet::new(),
            errors: Vec::new(),
            refused: Vec::new(),
            not_needed: Vec::new(),
            open: Vec::new(),
            file_count: 0,
            byte_count: 0,
        }
    }

    fn finish(mut self) -> Result<(Settings, Vec<Warning>), LoadErrors> {
        self.errors.extend(self.refused.into_iter().map(|(_, error)| error));
        if !self.errors.is_empty() {
            return Err(LoadErrors(self.errors));
        }
        let mut warnings: Vec<Warning> = Vec::new();
        for (directive, origin) in self.not_needed {
            let Kind::NotNeeded { reason, .. } = directive.kind else { continue };
            let same = warnings.iter_mut().find_map(|warning| match warning {
                Warning::NotNeeded { given, reason: other } if *other == reason => Some(given),
                _ => None,
            });
            match same {
                Some(given) => given.push((directive.name, origin)),
                None => warnings.push(Warning::NotNeeded { given: vec![(directive.name, origin)], reason }),
            }
        }
        Ok((self.settings, warnings))
    }

    fn stdin(&mut self, stdin: &mut dyn Read) {
        let mut text = Vec::new();
        match stdin.take(FILE_BYTES_MAX as u64).read_to_end(&mut text) {
            Err(error) => self.errors.push(LoadError::Stdin(error)),
            Ok(FILE_BYTES_MAX) => self.errors.push(LoadError::Stdin(io::ErrorKind::FileTooLarge.into())),
            Ok(_) => self.text(&text, |line| Origin::Stdin { line }),
        }
    }

    fn file(&mut self, path: &Path) -> Result<(), FsError> {
        let text = read_text(self.fs, path)?;
        self.text_of(path, &text);
        Ok(())
    }

    fn text_of(&mut self, path: &Path, text: &[u8]) {
        self.file_count = self.file_count.saturating_add(1);
        self.byte_count = self.byte_count.saturating_add(text.len());
        self.open.push(identity(path));
        self.text(text, |line| Origin::File { path: path.to_owned(), line });
        self.open.pop();
    }

    fn text(&mut self, text: &[u8], origin: impl Fn(usize) -> Origin) {
        for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
            if self.errors.len() >= ERRORS_MAX {
                return;
            }
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            self.line(line, &origin(number));
        }
    }

    fn line(&mut self, line: &[u8], origin: &Origin) {
        if line.contains(&0) {
            return self.error(origin, redacted(line), Problem::NulByte);
        }
        let Some(mut words) = split_words(line) else {
            return self.error(origin, redacted(line), Problem::Quotes);
        };
        let name = words.remove(0);
        self.given(&Given { name, words }, origin, || redacted(line));
    }

    /// Takes one directive, from wherever it comes.
    fn given(&mut self, given: &Given, origin: &Origin, text: impl Fn() -> String) {
        let Given { name, words } = given;
        let Some(row) = find(name) else {
            let problem = Problem::Unknown { name: printable(name), nearest: nearest_name(name) };
            return self.error(origin, text(), problem);
        };
        let value_problem = |error| Problem::Value { name: row.name, error };
        match &row.kind {
            Kind::Supported(setting) => {
                let words = if words.is_empty() { None } else { value_words(setting, words.clone()) };
                let set = match words {
                    Some(words) => setting.field.set(&mut self.settings, &words),
                    None => Err(ValueError::WordCount),
                };
                match set {
                    Ok(()) => _ = self.set.insert(row.name),
                    Err(error) => self.error(origin, text(), value_problem(error)),
                }
            }
            Kind::NotNeeded { inert, .. } => {
                // A value without effect never fails a start. CONFIG GET then answers the value before it.
                if let Ok(value) = inert.read(words) {
                    self.settings.inert.set(row.name, inert, value);
                }
                self.not_needed.retain(|(other, _)| other.name != row.name);
                self.not_needed.push((row, origin.clone()));
            }
            Kind::Refused(_) if words.is_empty() => self.error(origin, text(), value_problem(ValueError::WordCount)),
            Kind::Refused(refusal) => {
                self.refused.retain(|(other, _)| other.name != row.name);
                if !refusal.accepts(words) {
                    let problem = Problem::Refused { name: row.name, reason: refusal.reason };
                    self.refused.push((row, LoadError::Line { origin: origin.clone(), text: text(), problem }));
                }
            }
            Kind::User => match words.as_slice() {
                [] => self.error(origin, text(), value_problem(ValueError::WordCount)),
                [name, ..] if self.settings.users.iter().any(|user| user.name() == name) => {
                    self.error(origin, text(), Problem::DuplicateUser);
                }
                _ => self.settings.users.push(UserLine { words: words.clone() }),
            },
            Kind::Include => match words.as_slice() {
                [path] => {
                    if let Err(problem) = self.include(path) {
                        self.error(origin, text(), problem);
                    }
                }
                _ => self.error(origin, text(), value_problem(ValueError::WordCount)),
            },
        }
    }

    /// Reads the file, or the files of a pattern. A relative path begins where the server was started.
    fn include(&mut self, path: &[u8]) -> Result<(), Problem> {
        let pattern = Path::new(OsStr::from_bytes(path));
        let paths = if include::is_pattern(path) {
            include::expand(self.fs, pattern).ok_or(Problem::IncludeLimit("256 directories for one pattern"))?
        } else {
            vec![pattern.to_owned()]
        };
        for path in paths {
            if self.open.contains(&identity(&path)) {
                return Err(Problem::IncludeCycle { path });
            }
            if self.open.len() >= DEPTH_MAX {
                return Err(Problem::IncludeLimit("16 files within each other"));
            }
            if self.file_count >= FILES_MAX || self.byte_count >= BYTES_MAX {
                return Err(Problem::IncludeLimit("1000 files and 16 MB"));
            }
            self.file(&path).map_err(Problem::Include)?;
        }
        Ok(())
    }

    fn error(&mut self, origin: &Origin, text: String, problem: Problem) {
        self.errors.push(LoadError::Line { origin: origin.clone(), text, problem });
    }
}

/// The path by which a file is recognised when it is included again. A cycle through links is ended by its depth.
fn identity(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// All bytes of a file, whose length is found by reading: what has no length, such as a pipe, is an error, not empty.
pub(crate) fn read_text(fs: &dyn FileSystem, path: &Path) -> Result<Vec<u8>, FsError> {
    const STEP: usize = 64 << 10;
    let file = fs.open(path, OpenOptions::read())?;
    let mut text = Vec::new();
    let mut buffer = vec![0; STEP];
    while text.len() < FILE_BYTES_MAX {
        match file.read_at(&mut buffer, text.len() as u64) {
            Ok(0) => return Ok(text),
            Ok(length) => text.extend_from_slice(buffer.get(..length).unwrap_or_default()),
            Err(error) if error.is_interrupted() => {}
            Err(error) => return Err(error),
        }
    }
    Err(FsError::io(Op::Read, path, io::ErrorKind::FileTooLarge))
}
