//! Configuration: a file up to the first zero byte, then lines of CONFIG SET with a name and a value each. CONFIG
//! REWRITE must write back what the loader accepts, with the same meaning, and a second rewrite must change nothing.
#![no_main]

use config::{CommandLine, FileArgument, RewriteError, Settings, load, rewrite};
use libfuzzer_sys::fuzz_target;
use std::path::Path;
use std::time::{Duration, Instant};
use vfs::{SimFs, read_file, replace_file};

const PATH: &str = "/c.conf";
const INCLUDED: &str = "/d.conf";

fuzz_target!(|input: &[u8]| {
    let end = input.iter().position(|byte| *byte == 0).unwrap_or(input.len());
    let (text, changes) = (&input[..end], input.get(end + 1..).unwrap_or_default());
    let fs = SimFs::new(1);
    replace_file(&fs, Path::new(PATH), text).unwrap();
    replace_file(&fs, Path::new(INCLUDED), b"timeout 3\nport 7001\n").unwrap();

    let start = Instant::now();
    let Some(mut settings) = start_from(&fs) else { return };
    assert!(start.elapsed() < Duration::from_secs(1), "{:?} for {} bytes", start.elapsed(), text.len());

    for line in changes.split(|byte| *byte == b'\n') {
        let space = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
        let (name, value) = (&line[..space], line.get(space + 1..).unwrap_or_default());
        if let Ok(change) = settings.change(&[(name, value)]) {
            settings = change.apply(|_, _| Ok(()), |_| Ok(())).unwrap();
            let answered = settings.get(&[name]);
            assert_eq!(answered.len(), 1);
        }
    }

    match rewrite(&settings, Some(Path::new(PATH)), &fs) {
        Ok(()) => {}
        Err(RewriteError::Invalid(errors)) => panic!("the rewritten file does not load: {errors}"),
        Err(error) => panic!("{error}"),
    }
    let written = read_file(&fs, Path::new(PATH), usize::MAX).unwrap();
    rewrite(&settings, Some(Path::new(PATH)), &fs).unwrap();
    assert_eq!(read_file(&fs, Path::new(PATH), usize::MAX).unwrap(), written, "a second rewrite changes nothing");
    if let Some(again) = start_from(&fs) {
        assert_eq!(again.get(&["*"]), settings.get(&["*"]), "the written file means something else");
    }
});

/// The settings of the file, if a server would start with them and a unix socket.
fn start_from(fs: &SimFs) -> Option<Settings> {
    let mut line = CommandLine::parse(["--unixsocket".into(), "/s".into()]).unwrap();
    line.file = Some(FileArgument::Path(PATH.into()));
    Some(load(&line, fs, &mut std::io::empty()).ok()?.settings)
}
