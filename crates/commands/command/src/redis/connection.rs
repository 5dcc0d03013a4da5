//! AUTH, HELLO, PING, ECHO, QUIT, RESET, SELECT: the connection itself.

use crate::acl::{Origin, Reason, User};
use crate::audit::Proof;
use crate::error::{self, Stop};
use crate::login::{Attempt, Checked, WRONG_PASSWORD};
use crate::redis::client::{check_name, name_connection};
use crate::redis::client_line;
use crate::redis::client_tracking::stop_tracking;
use crate::redis::pubsub::{is_confined, leave_all};
use crate::session::Replies;
use crate::spec::{Argument, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, Host, Locks, Run, Session};
use base::{DbIndex, UnixMs};
use proto::Protocol;
use std::sync::Arc;
use types::string::parse_integer;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&AUTH, &HELLO, &PING, &ECHO, &QUIT, &RESET, &SELECT];

/// The server's name in HELLO.
pub const SERVER_NAME: &str = "onggi";

/// The Redis version whose commands clients may expect, in HELLO and INFO.
pub const COMPATIBLE_VERSION: &str = "7.2.4";

static AUTH: CommandSpec = CommandSpec {
    name: "auth",
    arity: -2,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::FAST)
        .union(Flags::NO_AUTH)
        .union(Flags::ALLOW_BUSY),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Logs the connection in.",
        since: "1.0.0",
        group: "connection",
        complexity: "O(N) where N is the number of passwords defined for the user",
        history: &[("6.0.0", "Takes a user name before the password.")],
        arguments: &[Argument::string("username").since("6.0.0").optional(), Argument::string("password")],
        ..Docs::NONE
    },
    run: Run::Call(auth),
};

fn auth(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let args = ctx.args;
    let (user, password): (&[u8], usize) = match args.len() {
        2 if ctx.host.login.users.default_user().rules().needs_no_password => {
            return Err(Stop::error(
                "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
                 configuration is correct?",
            ));
        }
        2 => (b"default", 1),
        3 => (args.bytes(1).unwrap_or_default(), 2),
        _ => return Err(error::SYNTAX),
    };
    let password = args.bytes(password).unwrap_or_default();
    let attempt = attempt(ctx, user, password)?;
    admit(ctx, user, attempt)?;
    ctx.reply.ok();
    Ok(())
}

/// Lets the connection in or not, after the delay that the attempt costs.
fn admit(ctx: &mut Ctx<'_>, name: &[u8], attempt: Attempt) -> Result<(), Stop> {
    ctx.session.hold(ctx.ks.now(), attempt.delay_ms);
    let Some(user) = attempt.user else {
        note_refusal(ctx.session, ctx.host, ctx.spec.name, &ctx.args[0], name, ctx.now());
        return Err(Stop::error(WRONG_PASSWORD));
    };
    let now = ctx.now();
    accept(ctx.session, ctx.host, user, Proof::Password, now);
    Ok(())
}

/// Checks a user and password of the client that asks. The caller notes a refusal in ACL LOG.
///
/// # Errors
/// A thread has to compute a slow hash first; the request then runs again.
pub fn attempt(ctx: &mut Ctx<'_>, user: &[u8], password: &[u8]) -> Result<Attempt, Stop> {
    let login = &ctx.host.login;
    let found = match login.check(user, password) {
        Checked::Done(found) => found,
        Checked::Slow(slow) => {
            let (user, hashes) = (slow.user.clone(), slow.hashes.clone());
            // The user may have lost this password meanwhile.
            let matching = ctx.made_of_passwords(move || slow.run())?.filter(|hash| hashes.contains(hash));
            matching.and(user)
        }
    };
    Ok(login.conclude(found, &ctx.session.info.address, ctx.now()))
}

/// Logs a connection in, and notes it in the audit log.
pub fn accept(session: &mut Session, host: &Host, user: Arc<User>, proof: Proof<'_>, now: UnixMs) {
    session.log_in(user);
    host.login.audit.login(&session.info, (session.user.name(), proof), true, now);
}

/// Notes a wrong password or an unknown user in ACL LOG and in the audit log.
pub fn note_refusal(session: &Session, host: &Host, command: &str, object: &[u8], user: &[u8], now: UnixMs) {
    note_wrong(session, host, (command, object), (user, Proof::Password), now);
}

/// Notes a proof that is wrong, and for which user it was.
pub fn note_wrong(
    session: &Session,
    host: &Host,
    (command, object): (&str, &[u8]),
    (user, proof): (&[u8], Proof<'_>),
    now: UnixMs,
) {
    let origin = if session.running.is_some() { Origin::Multi } else { Origin::TopLevel };
    let client = client_line::shown(&host.clients, &session.info, command, now);
    let login = &host.login;
    login.log.note(Reason::Login, origin, object, user, client, now);
    login.audit.login(&session.info, (user, proof), false, now);
}

/// Notes a certificate whose name is not that of a user who may log in.
pub fn note_certificate(session: &Session, host: &Host, name: &str, now: UnixMs) {
    let client = client_line::shown(&host.clients, &session.info, "", now);
    let (login, user) = (&host.login, name.as_bytes());
    login.log.note(Reason::Certificate, Origin::TopLevel, b"", user, client, now);
    login.audit.login(&session.info, (user, Proof::Certificate(name)), false, now);
}

static HELLO: CommandSpec = CommandSpec {
    name: "hello",
    arity: -1,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::FAST)
        .union(Flags::NO_AUTH)
        .union(Flags::ALLOW_BUSY),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Chooses the protocol, and may log in and name the connection.",
        since: "6.0.0",
        group: "connection",
        complexity: "O(1)",
        history: &[
            ("8.1.0", "Shows the `availability_zone` when one is configured."),
            ("6.2.0", "May be called without a version, to ask for the reply alone."),
        ],
        arguments: &[Argument::block(
            "arguments",
            &[
                Argument::integer("protover"),
                Argument::block("auth", &[Argument::string("username"), Argument::string("password")])
                    .after("AUTH")
                    .optional(),
                Argument::string("clientname").after("SETNAME").optional(),
            ],
        )
        .optional()],
        ..Docs::NONE
    },
    run: Run::Call(hello),
};

/// Everything is checked before anything is changed; the login comes first, since it may fail.
fn hello(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let args = ctx.args;
    let protocol = args.bytes(1).map(protocol).transpose()?;
    let (mut login, mut name) = (None, None);
    let mut at = 2;
    while let Some(option) = args.bytes(at) {
        let value = |offset: usize| args.bytes(at.saturating_add(offset));
        at = match (value(1), value(2)) {
            (Some(user), Some(password)) if ctx.is_word(at, "auth") => {
                login = Some((user, password));
                at.saturating_add(3)
            }
            (Some(wanted), _) if ctx.is_word(at, "setname") => {
                name = Some(check_name(wanted, b"Client names")?);
                at.saturating_add(2)
            }
            _ => return Err(error::repeating("ERR Syntax error in HELLO option '", option, "'")),
        };
    }
    if let Some((user, password)) = login {
        let attempt = attempt(ctx, user, password)?;
        admit(ctx, user, attempt)?;
    }
    if !ctx.session.authenticated {
        return Err(Stop::error(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> \
             <pass> option can be used to authenticate the client and select the RESP protocol version at the same time",
        ));
    }
    if let Some(name) = name {
        name_connection(ctx.session, name);
    }
    if let Some(protocol) = protocol {
        ctx.reply.set_protocol(protocol);
    }
    reply_hello(ctx);
    Ok(())
}

fn protocol(version: &[u8]) -> Result<Protocol, Stop> {
    match parse_integer(version) {
        None => Err(Stop::error("ERR Protocol version is not an integer or out of range")),
        Some(2) => Ok(Protocol::Resp2),
        Some(3) => Ok(Protocol::Resp3),
        Some(_) => Err(Stop::error("NOPROTO unsupported protocol version")),
    }
}

fn reply_hello(ctx: &mut Ctx<'_>) {
    let reply = &mut *ctx.reply;
    reply.map(7);
    reply.bulk(b"server");
    reply.bulk(SERVER_NAME.as_bytes());
    reply.bulk(b"version");
    reply.bulk(COMPATIBLE_VERSION.as_bytes());
    reply.bulk(b"proto");
    reply.integer(if reply.protocol() == Protocol::Resp3 { 3 } else { 2 });
    reply.bulk(b"id");
    reply.integer(ctx.session.id.cast_signed());
    reply.bulk(b"mode");
    reply.bulk(b"standalone");
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"modules");
    reply.array(0);
}

static PING: CommandSpec = CommandSpec {
    name: "ping",
    arity: -1,
    flags: Flags::FAST.union(Flags::FOR_SUBSCRIBERS),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Answers PONG, or the message.",
        since: "1.0.0",
        group: "connection",
        complexity: "O(1)",
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        arguments: &[Argument::string("message").optional()],
        ..Docs::NONE
    },
    run: Run::Call(ping),
};

fn ping(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    match ctx.args.len() {
        1 | 2 if is_confined(ctx.session, ctx.reply.protocol()) => {
            // In the form of a message, since these clients read nothing else.
            ctx.reply.array(2);
            ctx.reply.bulk(b"pong");
            ctx.reply.bulk(ctx.args.bytes(1).unwrap_or_default());
        }
        1 => ctx.reply.simple("PONG"),
        2 => ctx.reply.bulk(&ctx.args[1]),
        _ => return Err(error::wrong_arity("ping")),
    }
    Ok(())
}

static ECHO: CommandSpec = CommandSpec {
    name: "echo",
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE).union(Flags::FAST),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Answers the message.",
        since: "1.0.0",
        group: "connection",
        complexity: "O(1)",
        arguments: &[Argument::string("message")],
        ..Docs::NONE
    },
    run: Run::Call(echo),
};

fn echo(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.reply.bulk(&ctx.args[1]);
    Ok(())
}

static QUIT: CommandSpec = CommandSpec {
    name: "quit",
    arity: -1,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::FAST)
        .union(Flags::NO_AUTH)
        .union(Flags::ALLOW_BUSY)
        .union(Flags::NOT_QUEUED)
        .union(Flags::FOR_SUBSCRIBERS),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Closes the connection.",
        since: "1.0.0",
        group: "connection",
        complexity: "O(1)",
        ..Docs::NONE
    },
    run: Run::Call(quit),
};

fn quit(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.session.close_after_replies = true;
    ctx.reply.ok();
    Ok(())
}

static RESET: CommandSpec = CommandSpec {
    name: "reset",
    arity: 1,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::FAST)
        .union(Flags::NO_AUTH)
        .union(Flags::ALLOW_BUSY)
        .union(Flags::NOT_QUEUED)
        .union(Flags::FOR_SUBSCRIBERS),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Puts the connection back to how it began.",
        since: "6.2.0",
        group: "connection",
        complexity: "O(1)",
        ..Docs::NONE
    },
    run: Run::Call(reset),
};

/// The client library's name and capabilities stay: they belong to the program at the other end, not to what it was
/// doing.
fn reset(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    leave_all(ctx.session, ctx.host);
    stop_tracking(ctx.session, ctx.host);
    let session = &mut *ctx.session;
    session.transaction = None;
    session.watch = Default::default();
    session.monitor = false;
    session.replies = Replies::On;
    session.no_touch = false;
    session.no_evict = false;
    session.read_only = false;
    session.log_out(ctx.host.login.users.default_user());
    name_connection(session, Default::default());
    session.db = DbIndex(0);
    ctx.ks.select(DbIndex(0));
    ctx.reply.set_protocol(Protocol::Resp2);
    ctx.reply.simple("RESET");
    Ok(())
}

static SELECT: CommandSpec = CommandSpec {
    name: "select",
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE).union(Flags::FAST).union(Flags::ALLOW_BUSY),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Chooses the database for the commands that follow.",
        since: "1.0.0",
        group: "connection",
        complexity: "O(1)",
        arguments: &[Argument::integer("index")],
        ..Docs::NONE
    },
    run: Run::Call(select),
};

fn select(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let db = ctx.database(1)?;
    ctx.session.db = db;
    ctx.ks.select(db);
    ctx.reply.ok();
    Ok(())
}
