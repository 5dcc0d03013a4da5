//! MONITOR: a connection that is shown every command of the server.

use base::UnixMs;
use command::login::redacted;
use command::spec::Docs;
use command::{Args, Categories, CommandSpec, Ctx, Flags, Locks, Run, Session, Stop};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&MONITOR];

static MONITOR: CommandSpec = CommandSpec {
    name: "monitor",
    arity: 1,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Shows every request the server gets.",
        since: "1.0.0",
        group: "server",
        complexity: "",
        ..Docs::NONE
    },
    run: Run::Call(monitor),
};

fn monitor(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.session.monitor = true;
    ctx.reply.ok();
    Ok(())
}

/// The line that monitors are shown about a request, to be sent as a simple string: time, database, client, arguments
/// in quotes, secrets replaced. `None` for commands that are not shown.
pub fn line(spec: &CommandSpec, args: &Args<'_>, session: &Session, now: UnixMs) -> Option<Vec<u8>> {
    if spec.flags.intersects(Flags::SKIP_MONITOR | Flags::ADMIN) {
        return None;
    }
    let (seconds, ms) = (now.div_euclid(1000), now.rem_euclid(1000));
    let mut line = format!("{seconds}.{:06} [{} {}]", ms * 1000, session.db.0, session.info.address).into_bytes();
    for arg in redacted(args) {
        line.extend_from_slice(b" \"");
        arg.iter().for_each(|byte| escape(*byte, &mut line));
        line.push(b'"');
    }
    Some(line)
}

/// Writes a byte so that it can stand in a quoted word of one line.
fn escape(byte: u8, line: &mut Vec<u8>) {
    match byte {
        b'\\' | b'"' => line.extend_from_slice(&[b'\\', byte]),
        b'\n' => line.extend_from_slice(b"\\n"),
        b'\r' => line.extend_from_slice(b"\\r"),
        b'\t' => line.extend_from_slice(b"\\t"),
        7 => line.extend_from_slice(b"\\a"),
        8 => line.extend_from_slice(b"\\b"),
        b' '..=b'~' => line.push(byte),
        _ => line.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::Span;

    #[test]
    fn lines_are_quoted() {
        let input = b"set\x00\"\r\xff a";
        let spans = [Span::new(0, 3).unwrap(), Span::new(3, 6).unwrap()];
        let args = Args::new(input, &spans, &[]);
        let session = Session::new(1, true, 0);
        let shown = line(&crate::lolwut::LOLWUT, &args, &session, 1_500_000_000_042).unwrap();
        let expected = r#"1500000000.042000 [0 0.0.0.0:0] "set" "\x00\"\r\xff a""#;
        assert_eq!(String::from_utf8(shown).unwrap(), expected);
        assert!(line(&MONITOR, &args, &session, 0).is_none());
    }
}
