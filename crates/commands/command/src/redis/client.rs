//! CLIENT: what a client says about itself and asks of the server. What concerns other connections is in
//! `client_list` and `client_pause`.

use super::client_line::Line;
use super::client_list::{KILL, LIST, own_command};
use super::client_pause::{PAUSE, UNBLOCK, UNPAUSE};
use super::client_tracking::{CACHING, GETREDIR, TRACKING, TRACKINGINFO};
use crate::error::{self, Stop};
use crate::session::Replies;
use crate::spec::{Argument, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, Locks, Run, Session};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&CLIENT];

static CLIENT: CommandSpec = CommandSpec {
    name: "client",
    arity: -2,
    flags: Flags::empty(),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Commands about client connections.",
        since: "2.4.0",
        group: "connection",
        complexity: "Depends on subcommand.",
        ..Docs::NONE
    },
    run: Run::Container(&[
        &GETREDIR,
        &HELP,
        &LIST,
        &TRACKING,
        &TRACKINGINFO,
        &UNPAUSE,
        &CACHING,
        &CAPA,
        &IMPORT_SOURCE,
        &NO_EVICT,
        &GETNAME,
        &ID,
        &INFO,
        &NO_TOUCH,
        &SETNAME,
        &UNBLOCK,
        &KILL,
        &PAUSE,
        &REPLY,
        &SETINFO,
    ]),
};

/// ON or OFF.
fn on_or_off(ctx: &Ctx<'_>) -> Result<bool, Stop> {
    match () {
        () if ctx.is_word(2, "on") => Ok(true),
        () if ctx.is_word(2, "off") => Ok(false),
        () => Err(error::SYNTAX),
    }
}

/// Names appear in lines of fields with spaces between them, so they have none, nor anything that is not printable
/// ASCII. As in Valkey a name is looked at, and shown, up to its first zero byte; gives that part and the rest.
pub(super) fn check_name<'n>(name: &'n [u8], what: &[u8]) -> Result<(&'n str, &'n [u8]), Stop> {
    let (shown, rest) = name.split_at(error::up_to_zero(name).len());
    match std::str::from_utf8(shown) {
        Ok(text) if shown.iter().all(u8::is_ascii_graphic) => Ok((text, rest)),
        _ => Err(error::repeating("ERR ", what, " cannot contain spaces, newlines or special characters.")),
    }
}

/// Notes what the connection is called.
pub(super) fn name_connection(session: &Session, (shown, rest): (&str, &[u8])) {
    session.info.rename(|names| {
        names.name = shown.to_owned();
        names.name_rest = rest.to_vec();
    });
}

static CAPA: CommandSpec = CommandSpec {
    name: "capa",
    arity: -3,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::ALLOW_BUSY)
        .union(Flags::KEEPS_CACHING),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Names what the client is able to do.",
        since: "8.0.0",
        group: "connection",
        complexity: "O(1)",
        arguments: &[Argument::string("capability").repeated()],
        ..Docs::NONE
    },
    run: Run::Call(capa),
};

/// Words that are not known are ignored: they may be capabilities of later versions.
fn capa(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    if ctx.args.from(2).any(|word| word.eq_ignore_ascii_case(b"redirect")) {
        ctx.session.can_redirect = true;
    }
    ctx.reply.ok();
    Ok(())
}

static GETNAME: CommandSpec = CommandSpec {
    name: "getname",
    arity: 2,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::ALLOW_BUSY)
        .union(Flags::KEEPS_CACHING),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Tells the name of the connection.",
        since: "2.6.9",
        group: "connection",
        complexity: "O(1)",
        ..Docs::NONE
    },
    run: Run::Call(getname),
};

fn getname(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let names = ctx.session.info.names();
    let name = [names.name.as_bytes(), &names.name_rest].concat();
    if name.is_empty() {
        ctx.reply.null()
    } else {
        ctx.reply.bulk(&name)
    }
    Ok(())
}

static SETNAME: CommandSpec = CommandSpec {
    name: "setname",
    arity: 3,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::ALLOW_BUSY)
        .union(Flags::KEEPS_CACHING),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Names the connection.",
        since: "2.6.9",
        group: "connection",
        complexity: "O(1)",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        arguments: &[Argument::string("connection-name")],
        ..Docs::NONE
    },
    run: Run::Call(setname),
};

fn setname(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let name = check_name(&ctx.args[2], b"Client names")?;
    name_connection(ctx.session, name);
    ctx.reply.ok();
    Ok(())
}

static SETINFO: CommandSpec = CommandSpec {
    name: "setinfo",
    arity: 4,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::ALLOW_BUSY)
        .union(Flags::KEEPS_CACHING),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Notes the client library's name or version.",
        since: "7.2.0",
        group: "connection",
        complexity: "O(1)",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        arguments: &[Argument::one_of(
            "attr",
            &[Argument::string("libname").after("LIB-NAME"), Argument::string("libver").after("LIB-VER")],
        )],
        ..Docs::NONE
    },
    run: Run::Call(setinfo),
};

fn setinfo(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let value = &ctx.args[3];
    if ctx.is_word(2, "lib-name") {
        let (name, _) = check_name(value, &ctx.args[2])?;
        ctx.session.info.rename(|names| names.library_name = name.to_owned());
    } else if ctx.is_word(2, "lib-ver") {
        let (version, _) = check_name(value, &ctx.args[2])?;
        ctx.session.info.rename(|names| names.library_version = version.to_owned());
    } else {
        return Err(error::repeating("ERR Unrecognized option '", &ctx.args[2], "'"));
    }
    ctx.reply.ok();
    Ok(())
}

static ID: CommandSpec = CommandSpec {
    name: "id",
    arity: 2,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::ALLOW_BUSY)
        .union(Flags::KEEPS_CACHING),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Tells the number of the connection.",
        since: "5.0.0",
        group: "connection",
        complexity: "O(1)",
        ..Docs::NONE
    },
    run: Run::Call(id),
};

fn id(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.reply.integer(ctx.session.id.cast_signed());
    Ok(())
}

static INFO: CommandSpec = CommandSpec {
    name: "info",
    arity: 2,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE).union(Flags::KEEPS_CACHING),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Describes this connection.",
        since: "6.2.0",
        group: "connection",
        complexity: "O(1)",
        tips: &["nondeterministic_output"],
        ..Docs::NONE
    },
    run: Run::Call(info),
};

fn info(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (info, now) = (&ctx.session.info, ctx.now());
    ctx.session.publish_state(ctx.reply.protocol(), now);
    let command = Some(own_command(ctx.session, "client|info"));
    let line = Line { clients: &ctx.host.clients, info, command, now };
    ctx.reply.verbatim("txt", line.to_string().as_bytes());
    Ok(())
}

static IMPORT_SOURCE: CommandSpec = CommandSpec {
    name: "import-source",
    arity: 3,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE).union(Flags::KEEPS_CACHING),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Marks the connection as the source of an import.",
        since: "8.1.0",
        group: "connection",
        complexity: "O(1)",
        arguments: &[Argument::one_of("enabled", &[Argument::word("on", "ON"), Argument::word("off", "OFF")])],
        ..Docs::NONE
    },
    run: Run::Call(import_source),
};

/// There is no import mode, in which alone a connection could be a source.
fn import_source(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    if !ctx.is_word(2, "off") {
        return Err(Stop::error("ERR Server is not in import mode"));
    }
    ctx.reply.ok();
    Ok(())
}

static NO_EVICT: CommandSpec = CommandSpec {
    name: "no-evict",
    arity: 3,
    flags: Flags::ADMIN
        .union(Flags::NOSCRIPT)
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::ALLOW_BUSY)
        .union(Flags::KEEPS_CACHING),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Exempts the connection from being closed for the memory of all clients.",
        since: "7.0.0",
        group: "connection",
        complexity: "O(1)",
        arguments: &[Argument::one_of("enabled", &[Argument::word("on", "ON"), Argument::word("off", "OFF")])],
        ..Docs::NONE
    },
    run: Run::Call(no_evict),
};

fn no_evict(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.session.no_evict = on_or_off(ctx)?;
    ctx.reply.ok();
    Ok(())
}

static NO_TOUCH: CommandSpec = CommandSpec {
    name: "no-touch",
    arity: 3,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::ALLOW_BUSY)
        .union(Flags::KEEPS_CACHING),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Lets the connection's commands leave the access times of keys alone.",
        since: "7.2.0",
        group: "connection",
        complexity: "O(1)",
        arguments: &[Argument::one_of("enabled", &[Argument::word("on", "ON"), Argument::word("off", "OFF")])],
        ..Docs::NONE
    },
    run: Run::Call(no_touch),
};

fn no_touch(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.session.no_touch = on_or_off(ctx)?;
    ctx.reply.ok();
    Ok(())
}

static REPLY: CommandSpec = CommandSpec {
    name: "reply",
    arity: 3,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::NO_MULTI)
        .union(Flags::ALLOW_BUSY)
        .union(Flags::KEEPS_CACHING),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Turns the replies to this connection off and on.",
        since: "3.2.0",
        group: "connection",
        complexity: "O(1)",
        arguments: &[Argument::one_of(
            "action",
            &[Argument::word("on", "ON"), Argument::word("off", "OFF"), Argument::word("skip", "SKIP")],
        )],
        ..Docs::NONE
    },
    run: Run::Call(reply),
};

/// OFF and SKIP have no reply themselves: the executor takes replies back as [`Session::reply_wanted`] says.
///
/// [`Session::reply_wanted`]: crate::Session::reply_wanted
fn reply(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    if ctx.is_word(2, "on") {
        ctx.session.replies = Replies::On;
        ctx.reply.ok();
    } else if ctx.is_word(2, "off") {
        ctx.session.replies = Replies::Off;
    } else if !ctx.is_word(2, "skip") {
        return Err(error::SYNTAX);
    } else if ctx.session.replies != Replies::Off {
        ctx.session.replies = Replies::SkipNext;
    }
    Ok(())
}

static HELP: CommandSpec = CommandSpec {
    name: "help",
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE).union(Flags::KEEPS_CACHING),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Lists what CLIENT can do.",
        since: "5.0.0",
        group: "connection",
        complexity: "O(1)",
        ..Docs::NONE
    },
    run: Run::Call(help),
};

fn help(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.reply.array(HELP_LINES.len());
    HELP_LINES.iter().for_each(|line| ctx.reply.simple(line));
    Ok(())
}

const HELP_LINES: &[&str] = &[
    "CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CACHING (YES|NO)",
    "    Track, or do not track, the keys of the next command.",
    "CAPA <capability> [<capability> ...]",
    "    Name what the client is able to do. Known is REDIRECT: it follows",
    "    redirections.",
    "GETNAME",
    "    Tell the name of this connection.",
    "GETREDIR",
    "    Tell which connection gets the invalidation messages of this one; -1 when",
    "    keys are not tracked.",
    "ID",
    "    Tell the number of this connection.",
    "IMPORT-SOURCE (ON|OFF)",
    "    Mark this connection as the source of an import.",
    "INFO",
    "    Describe this connection.",
    "KILL <ip:port>",
    "    Close the connection from this address.",
    "KILL <filter> <value> [<filter> <value> ...]",
    "    Close the connections that pass all filters. SKIPME is yes unless given.",
    "LIST [<filter> <value> ...]",
    "    Describe the connections that pass all filters, a line each. SKIPME is no",
    "    unless given. The filters of KILL and LIST, which all but IDLE, MAXAGE and",
    "    SKIPME may have NOT- before them:",
    "    * ADDR <ip:port>, LADDR <ip:port>: the client's or the server's end.",
    "    * CAPA <letters>, FLAGS <letters>: all these letters in the field.",
    "    * DB <number>: the database selected.",
    "    * ID <number> [<number> ...]: one of these connections.",
    "    * IDLE <seconds>, MAXAGE <seconds>: unused or connected for at least this time.",
    "    * IP <ip>: the client's host.",
    "    * LIB-NAME <name>, LIB-VER <version>, NAME <name>: what it calls itself.",
    "    * SKIPME (YES|NO): leave this connection out.",
    "    * TYPE (NORMAL|PRIMARY|REPLICA|PUBSUB): what it is to the server.",
    "    * USER <name>: whom it logged in as.",
    "NO-EVICT (ON|OFF)",
    "    Exempt this connection from being closed for the memory of all clients.",
    "NO-TOUCH (ON|OFF)",
    "    Leave the access times of keys alone.",
    "PAUSE <milliseconds> [WRITE|ALL]",
    "    Hold back all commands, or only those that write.",
    "REPLY (ON|OFF|SKIP)",
    "    Reply to commands, do not, or do not to the next.",
    "SETINFO (LIB-NAME <name>|LIB-VER <version>)",
    "    Note the client library's name or version.",
    "SETNAME <name>",
    "    Name this connection.",
    "TRACKING (ON|OFF) [REDIRECT <number>] [BCAST] [PREFIX <prefix> [...]] [OPTIN]",
    "         [OPTOUT] [NOLOOP]",
    "    Tell this connection, or another, when keys that it has read change.",
    "TRACKINGINFO",
    "    Tell how the keys this connection reads are tracked.",
    "UNBLOCK <number> [TIMEOUT|ERROR]",
    "    Wake the connection if it waits in a blocking command.",
    "UNPAUSE",
    "    End the pause.",
    "HELP",
    "    Print this help.",
];
