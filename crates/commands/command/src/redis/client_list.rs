//! CLIENT LIST and CLIENT KILL.

use super::client_filter::Filter;
use super::client_line::Line;
use crate::clients::Clients;
use crate::error::Stop;
use crate::spec::{Argument, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, Locks, Run, Session, error};

pub(super) static LIST: CommandSpec = CommandSpec {
    name: "list",
    arity: -2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE).union(Flags::KEEPS_CACHING),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Describes client connections, a line each.",
        since: "2.4.0",
        group: "connection",
        complexity: "O(N) where N is the number of client connections",
        history: &[
            ("2.8.12", "Shows `id`."),
            ("5.0.0", "Takes `TYPE`."),
            ("6.0.0", "Shows `user`."),
            ("6.2.0", "Shows `argv-mem`, `tot-mem`, `laddr` and `redir`; takes `ID`."),
            ("7.0.0", "Shows `resp`, `multi-mem`, `rbs` and `rbp`."),
            ("7.0.3", "Shows `ssub`."),
            ("8.0.0", "`TYPE` takes `primary`, which `master` still means."),
            ("8.1.0", "Takes USER, ADDR, LADDR, SKIPME and MAXAGE."),
            (
                "9.0.0",
                "Takes NAME, IDLE, FLAGS, LIB-NAME, LIB-VER, DB, CAPA and IP, and NOT- before every filter but IDLE, MAXAGE and SKIPME.",
            ),
        ],
        tips: &["nondeterministic_output"],
        arguments: &[
            Argument::one_of(
                "client-type",
                &[
                    Argument::word("normal", "NORMAL"),
                    Argument::word("master", "MASTER"),
                    Argument::word("replica", "REPLICA"),
                    Argument::word("pubsub", "PUBSUB"),
                ],
            )
            .after("TYPE")
            .since("5.0.0")
            .optional(),
            Argument::integer("client-id").after("ID").since("6.2.0").optional().repeated(),
            Argument::string("username").after("USER").since("8.1.0").optional(),
            Argument::string("addr").after("ADDR").displayed("ip:port").since("8.1.0").optional(),
            Argument::string("laddr").after("LADDR").displayed("ip:port").since("8.1.0").optional(),
            Argument::one_of("skipme", &[Argument::word("yes", "YES"), Argument::word("no", "NO")])
                .after("SKIPME")
                .since("8.1.0")
                .optional(),
            Argument::integer("maxage").after("MAXAGE").since("8.1.0").optional(),
            Argument::string("name").after("NAME").since("9.0.0").optional(),
            Argument::integer("idle").after("IDLE").since("9.0.0").optional(),
            Argument::string("flags").after("FLAGS").since("9.0.0").optional(),
            Argument::string("lib-name").after("LIB-NAME").since("9.0.0").optional(),
            Argument::string("lib-ver").after("LIB-VER").since("9.0.0").optional(),
            Argument::integer("db").after("DB").since("9.0.0").optional(),
            Argument::string("capa").after("CAPA").since("9.0.0").optional(),
            Argument::string("ip").after("IP").since("9.0.0").optional(),
            Argument::one_of(
                "not-client-type",
                &[
                    Argument::word("normal", "NORMAL"),
                    Argument::word("master", "MASTER"),
                    Argument::word("replica", "REPLICA"),
                    Argument::word("pubsub", "PUBSUB"),
                ],
            )
            .after("NOT-TYPE")
            .since("9.0.0")
            .optional(),
            Argument::integer("not-client-id").after("NOT-ID").since("9.0.0").optional().repeated(),
            Argument::string("not-username").after("NOT-USER").since("9.0.0").optional(),
            Argument::string("not-addr").after("NOT-ADDR").displayed("ip:port").since("9.0.0").optional(),
            Argument::string("not-laddr").after("NOT-LADDR").displayed("ip:port").since("9.0.0").optional(),
            Argument::string("not-name").after("NOT-NAME").since("9.0.0").optional(),
            Argument::string("not-flags").after("NOT-FLAGS").since("9.0.0").optional(),
            Argument::string("not-lib-name").after("NOT-LIB-NAME").since("9.0.0").optional(),
            Argument::string("not-lib-ver").after("NOT-LIB-VER").since("9.0.0").optional(),
            Argument::integer("not-db").after("NOT-DB").since("9.0.0").optional(),
            Argument::string("not-capa").after("NOT-CAPA").since("9.0.0").optional(),
            Argument::string("not-ip").after("NOT-IP").since("9.0.0").optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(list),
};

fn list(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    // A filter has a name and a value.
    if ctx.args.len() == 3 {
        return Err(error::SYNTAX);
    }
    let (filter, now) = (Filter::parse(ctx, 2)?, ctx.now());
    let (clients, own) = (&ctx.host.clients, ctx.session.id);
    ctx.session.publish_state(ctx.reply.protocol(), now);
    let mut lines = String::new();
    for info in clients.all() {
        let is_own = info.id == own;
        if filter.passes(&info, now) && !(is_own && filter.skip_self == Some(true)) {
            let command = is_own.then(|| own_command(ctx.session, "client|list"));
            lines.push_str(&Line { clients, info: &info, command, now }.to_string());
        }
    }
    ctx.reply.verbatim("txt", lines.as_bytes());
    Ok(())
}

pub(super) static KILL: CommandSpec = CommandSpec {
    name: "kill",
    arity: -3,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE).union(Flags::KEEPS_CACHING),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Closes client connections.",
        since: "2.4.0",
        group: "connection",
        complexity: "O(N) where N is the number of client connections",
        history: &[
            ("2.8.12", "Takes filters."),
            ("2.8.12", "Takes `ID`."),
            ("3.2.0", "`TYPE` takes `master`."),
            ("5.0.0", "`TYPE` takes `replica`, which `slave` still means."),
            ("6.2.0", "Takes `LADDR`."),
            ("8.0.0", "Takes `MAXAGE`."),
            ("8.0.0", "`TYPE` takes `primary`, which `master` still means."),
            ("8.1.0", "`ID` takes several numbers."),
            (
                "9.0.0",
                "Takes NAME, IDLE, FLAGS, LIB-NAME, LIB-VER, DB, CAPA and IP, and NOT- before every filter but IDLE, MAXAGE and SKIPME.",
            ),
        ],
        arguments: &[Argument::one_of(
            "filter",
            &[
                Argument::string("old-format").displayed("ip:port").deprecated_since("2.8.12"),
                Argument::one_of(
                    "new-format",
                    &[
                        Argument::integer("client-id").after("ID").since("2.8.12").optional().repeated(),
                        Argument::one_of(
                            "client-type",
                            &[
                                Argument::word("normal", "NORMAL"),
                                Argument::word("master", "MASTER").since("3.2.0"),
                                Argument::word("primary", "PRIMARY").since("8.0.0"),
                                Argument::word("slave", "SLAVE"),
                                Argument::word("replica", "REPLICA").since("5.0.0"),
                                Argument::word("pubsub", "PUBSUB"),
                            ],
                        )
                        .after("TYPE")
                        .since("2.8.12")
                        .optional(),
                        Argument::string("username").after("USER").optional(),
                        Argument::string("addr").after("ADDR").displayed("ip:port").optional(),
                        Argument::string("laddr").after("LADDR").displayed("ip:port").since("6.2.0").optional(),
                        Argument::one_of("skipme", &[Argument::word("yes", "YES"), Argument::word("no", "NO")])
                            .after("SKIPME")
                            .optional(),
                        Argument::integer("maxage").after("MAXAGE").since("8.0.0").optional(),
                        Argument::string("name").after("NAME").since("9.0.0").optional(),
                        Argument::integer("idle").after("IDLE").since("9.0.0").optional(),
                        Argument::string("flags").after("FLAGS").since("9.0.0").optional(),
                        Argument::string("lib-name").after("LIB-NAME").since("9.0.0").optional(),
                        Argument::string("lib-ver").after("LIB-VER").since("9.0.0").optional(),
                        Argument::integer("db").after("DB").since("9.0.0").optional(),
                        Argument::string("capa").after("CAPA").since("9.0.0").optional(),
                        Argument::string("ip").after("IP").since("9.0.0").optional(),
                        Argument::one_of(
                            "not-client-type",
                            &[
                                Argument::word("normal", "NORMAL"),
                                Argument::word("master", "MASTER"),
                                Argument::word("primary", "PRIMARY"),
                                Argument::word("slave", "SLAVE"),
                                Argument::word("replica", "REPLICA"),
                                Argument::word("pubsub", "PUBSUB"),
                            ],
                        )
                        .after("NOT-TYPE")
                        .since("9.0.0")
                        .optional(),
                        Argument::integer("not-client-id").after("NOT-ID").since("9.0.0").optional().repeated(),
                        Argument::string("not-username").after("NOT-USER").since("9.0.0").optional(),
                        Argument::string("not-addr").after("NOT-ADDR").displayed("ip:port").since("9.0.0").optional(),
                        Argument::string("not-laddr").after("NOT-LADDR").displayed("ip:port").since("9.0.0").optional(),
                        Argument::string("not-name").after("NOT-NAME").since("9.0.0").optional(),
                        Argument::string("not-flags").after("NOT-FLAGS").since("9.0.0").optional(),
                        Argument::string("not-lib-name").after("NOT-LIB-NAME").since("9.0.0").optional(),
                        Argument::string("not-lib-ver").after("NOT-LIB-VER").since("9.0.0").optional(),
                        Argument::integer("not-db").after("NOT-DB").since("9.0.0").optional(),
                        Argument::string("not-capa").after("NOT-CAPA").since("9.0.0").optional(),
                        Argument::string("not-ip").after("NOT-IP").since("9.0.0").optional(),
                    ],
                )
                .repeated(),
            ],
        )],
        ..Docs::NONE
    },
    run: Run::Call(kill),
};

fn kill(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (clients, now) = (&ctx.host.clients, ctx.now());
    ctx.session.publish_state(ctx.reply.protocol(), now);
    // One argument is an address, and its connection is closed even if it is this one.
    if ctx.args.len() == 3 {
        let address = &ctx.args[2];
        let found = clients.all().into_iter().find(|info| info.address.to_string().as_bytes() == address);
        let Some(found) = found else { return Err(Stop::error("ERR No such client")) };
        close(ctx, clients, found.id);
        ctx.reply.ok();
        return Ok(());
    }
    let filter = Filter::parse(ctx, 2)?;
    let mut count = 0i64;
    for info in clients.all() {
        let spared = info.id == ctx.session.id && filter.skip_self != Some(false);
        if !spared && filter.passes(&info, now) && close(ctx, clients, info.id) {
            count = count.saturating_add(1);
        }
    }
    ctx.reply.integer(count);
    Ok(())
}

/// Closes a connection; this one when its reply is sent. False when it had gone already.
fn close(ctx: &mut Ctx<'_>, clients: &Clients, id: u64) -> bool {
    if id == ctx.session.id {
        ctx.session.close_after_replies = true;
        return true;
    }
    clients.kill(id)
}

/// The command that the connection is seen to run: inside a transaction that is EXEC.
pub(super) fn own_command(session: &Session, asking: &'static str) -> &'static str {
    if session.running.is_some() { "exec" } else { asking }
}
