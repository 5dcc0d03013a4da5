//! ACL: users, their rules and what they were denied. The rules themselves are in [`command::acl`].

mod file;
mod settings;
mod show;

use crate::reply_help;
use base::integer::parse_integer;
use base::random::{Entropy, OsEntropy};
use command::acl::{Category, DEFAULT_USER, RulesError, check};
use command::login::Login;
use command::spec::{Argument, Docs};
use command::{Categories, CommandSpec, Ctx, Flags, Locks, Run, Stop, error};
use zeroize::Zeroizing;

pub(crate) use settings::user_lines;
pub use settings::{UsersError, set_users};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&ACL];

/// What all subcommands but HELP share.
const EVERYBODY: Flags = Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE);

/// What those for administrators share.
const ADMINISTRATORS: Flags = EVERYBODY.union(Flags::ADMIN);

/// Tips of those that a client of a cluster sends to all nodes.
const ALL_NODES: &[&str] = &["request_policy:all_nodes", "response_policy:all_succeeded"];

/// The most bits of ACL GENPASS, and its default.
const PASSWORD_BITS_MAX: i64 = 4096;
const PASSWORD_BITS_DEFAULT: i64 = 256;

static ACL: CommandSpec = CommandSpec {
    name: "acl",
    arity: -2,
    flags: Flags::empty(),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Holds the commands about users.",
        since: "6.0.0",
        group: "server",
        complexity: "Depends on subcommand.",
        ..Docs::NONE
    },
    run: Run::Container(&[
        &ACL_CAT,
        &ACL_DELUSER,
        &ACL_DRYRUN,
        &ACL_GENPASS,
        &ACL_GETUSER,
        &ACL_HELP,
        &ACL_LIST,
        &ACL_LOAD,
        &ACL_LOG,
        &ACL_SAVE,
        &ACL_SETUSER,
        &ACL_USERS,
        &ACL_WHOAMI,
    ]),
};

/// A row of a subcommand, for which its documentation says the rest.
const fn row(name: &'static str, arity: i16, flags: Flags, docs: &'static Docs, run: command::Handler) -> CommandSpec {
    CommandSpec {
        name,
        arity,
        flags,
        categories: Categories::empty(),
        keys: &[],
        locks: Locks::None,
        docs,
        run: Run::Call(run),
    }
}

/// Documentation that all subcommands share.
const fn docs(summary: &'static str, since: &'static str, complexity: &'static str) -> Docs {
    Docs { summary, since, group: "server", complexity, ..Docs::NONE }
}

static ACL_CAT: CommandSpec = row(
    "cat",
    -2,
    EVERYBODY,
    &Docs {
        arguments: &[Argument::string("category").optional()],
        ..docs(
            "Lists the categories of commands, or the commands of one.",
            "6.0.0",
            "O(1) since the categories and commands are a fixed set.",
        )
    },
    cat,
);

static ACL_DELUSER: CommandSpec = row(
    "deluser",
    -3,
    ADMINISTRATORS,
    &Docs {
        tips: ALL_NODES,
        arguments: &[Argument::string("username").repeated()],
        ..docs(
            "Deletes users and closes their connections.",
            "6.0.0",
            "O(1) amortized time considering the typical user.",
        )
    },
    delete_user,
);

static ACL_DRYRUN: CommandSpec = row(
    "dryrun",
    -4,
    ADMINISTRATORS,
    &Docs {
        arguments: &[
            Argument::string("username"),
            Argument::string("command"),
            Argument::string("arg").optional().repeated(),
        ],
        ..docs("Says whether a user may run a command, without running it.", "7.0.0", "O(1).")
    },
    dry_run,
);

static ACL_GENPASS: CommandSpec = row(
    "genpass",
    -2,
    EVERYBODY,
    &Docs { arguments: &[Argument::integer("bits").optional()], ..docs("Draws a random password.", "6.0.0", "O(1)") },
    generate_password,
);

static ACL_GETUSER: CommandSpec = row(
    "getuser",
    3,
    ADMINISTRATORS,
    &Docs {
        history: &[
            ("6.2.0", "Shows patterns of channels."),
            ("7.0.0", "Shows selectors, and patterns of keys and channels as rules instead of lists."),
            ("9.1.0", "Shows rules about databases."),
        ],
        arguments: &[Argument::string("username")],
        ..docs(
            "Gives the rules of a user, by what they are about.",
            "6.0.0",
            "O(N). Where N is the number of password, command and pattern rules that the user has.",
        )
    },
    show::get_user,
);

static ACL_HELP: CommandSpec =
    row("help", 2, Flags::LOADING.union(Flags::STALE), &docs("Lists the subcommands.", "6.0.0", "O(1)"), help);

static ACL_LIST: CommandSpec = row(
    "list",
    2,
    ADMINISTRATORS,
    &docs(
        "Lists the users with their rules, as an ACL file has them.",
        "6.0.0",
        "O(N). Where N is the number of configured users.",
    ),
    show::list,
);

static ACL_LOAD: CommandSpec = row(
    "load",
    2,
    ADMINISTRATORS,
    &docs("Replaces all users by those of the ACL file.", "6.0.0", "O(N). Where N is the number of configured users."),
    file::load,
);

static ACL_LOG: CommandSpec = row(
    "log",
    -2,
    ADMINISTRATORS,
    &Docs {
        history: &[("7.2.0", "Shows the number of an entry, and when it was made and updated.")],
        arguments: &[
            Argument::one_of("operation", &[Argument::integer("count"), Argument::word("reset", "RESET")]).optional()
        ],
        ..docs(
            "Lists what users were denied of late, or forgets it.",
            "6.0.0",
            "O(N) with N being the number of entries shown.",
        )
    },
    show::log,
);

static ACL_SAVE: CommandSpec = row(
    "save",
    2,
    ADMINISTRATORS,
    &Docs {
        tips: ALL_NODES,
        ..docs("Writes all users to the ACL file.", "6.0.0", "O(N). Where N is the number of configured users.")
    },
    file::save,
);

static ACL_SETUSER: CommandSpec = row(
    "setuser",
    -3,
    ADMINISTRATORS,
    &Docs {
        history: &[
            ("6.2.0", "Takes patterns of channels."),
            ("7.0.0", "Takes selectors, and permissions to read and to write keys."),
            ("9.1.0", "Takes rules about databases."),
        ],
        tips: ALL_NODES,
        arguments: &[Argument::string("username"), Argument::string("rule").optional().repeated()],
        ..docs("Creates a user or changes its rules.", "6.0.0", "O(N). Where N is the number of rules provided.")
    },
    set_user,
);

static ACL_USERS: CommandSpec = row(
    "users",
    2,
    ADMINISTRATORS,
    &docs("Lists the names of the users.", "6.0.0", "O(N). Where N is the number of configured users."),
    show::users,
);

static ACL_WHOAMI: CommandSpec =
    row("whoami", 2, EVERYBODY, &docs("Gives the user of this connection.", "6.0.0", "O(1)"), who_am_i);

fn login<'c>(ctx: &Ctx<'c>) -> &'c Login {
    &ctx.host.login
}

/// More arguments than a subcommand takes.
fn wrong_form(ctx: &Ctx<'_>) -> Stop {
    error::repeating("ERR unknown subcommand or wrong number of arguments for '", &ctx.args[1], "'. Try ACL HELP.")
}

fn who_am_i(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.reply.bulk(ctx.session.user.name());
    Ok(())
}

fn cat(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    match ctx.args.len() {
        2 => {
            let all = Category::all();
            ctx.reply.array(all.len());
            all.for_each(|category| ctx.reply.bulk(category.name().as_bytes()));
        }
        3 => {
            let wanted = &ctx.args[2];
            let category =
                Category::find(wanted).ok_or_else(|| error::repeating("ERR Unknown category '", wanted, "'"))?;
            let rows = ctx.host.table.resp_rows();
            let found: Vec<&str> =
                rows.iter().filter(|(_, spec)| category.has(spec)).map(|(name, _)| name.as_str()).collect();
            ctx.reply.array(found.len());
            found.iter().for_each(|name| ctx.reply.bulk(name.as_bytes()));
        }
        _ => return Err(wrong_form(ctx)),
    }
    Ok(())
}

fn set_user(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let name = ctx.args.bytes(2).unwrap_or_default();
    if name.iter().any(|byte| byte.is_ascii_whitespace() || matches!(byte, 0 | 0x0B)) {
        return Err(Stop::error("ERR Usernames can't contain spaces or null characters"));
    }
    let rules: Vec<&[u8]> = ctx.args.from(3).collect();
    let (users, table) = (&login(ctx).users, &ctx.host.table);
    let (before, defaults) = (users.before(name), users.defaults());
    let refused = |error: RulesError| Stop::error_with(error.to_text());
    let is_done = before.1.is_slow(&rules, defaults) && {
        let (table, rules) = (table.clone(), owned(&rules));
        let make = move || before.1.with(&rules, &table, defaults).map(|after| (before, after));
        let (before, after) = ctx.made_of_passwords(make)?.map_err(refused)?;
        users.set_made(name, &before, after)
    };
    if !is_done {
        // Nothing slow is in it; or, seldom, another client has changed the user meanwhile.
        users.set(name, &rules, table).map_err(refused)?;
    }
    follow_users(ctx);
    ctx.reply.ok();
    Ok(())
}

/// Copies of rules, which may be passwords.
fn owned(rules: &[&[u8]]) -> Vec<Zeroizing<Vec<u8>>> {
    rules.iter().map(|rule| Zeroizing::new(rule.to_vec())).collect()
}

fn delete_user(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    if ctx.args.from(2).any(|name| name == DEFAULT_USER) {
        return Err(Stop::error("ERR The 'default' user cannot be removed"));
    }
    let deleted = ctx.args.from(2).filter(|name| login(ctx).users.delete(name)).count();
    follow_users(ctx);
    ctx.reply.integer(deleted as i64);
    Ok(())
}

/// Has connections follow a change of users: this one at once, and others before their next request.
fn follow_users(ctx: &mut Ctx<'_>) {
    let generation = login(ctx).users.generation().load(std::sync::atomic::Ordering::Acquire);
    if ctx.session.follow_users(generation) {
        // It still gets the reply.
        ctx.session.close_after_replies = true;
    }
    ctx.host.clients.follow_users(ctx.session.id);
}

fn dry_run(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (name, command) = (&ctx.args[2], &ctx.args[3]);
    let user = login(ctx).users.find(name);
    let user = user.ok_or_else(|| error::repeating("ERR User '", name, "' not found"))?;
    let args = ctx.args.skip(3);
    let table = &ctx.host.table;
    let row = table.named(&args).ok_or_else(|| error::repeating("ERR Command '", command, "' not found"))?;
    let full_name = table.rows().get(usize::from(row.index)).map_or(row.spec.name, |(name, _)| name);
    if !row.spec.accepts(args.len()) {
        return Err(error::wrong_arity(full_name));
    }
    match check(&user.rules(), &row, &args, login(ctx).users.scope(ctx.session.db)) {
        Ok(()) => ctx.reply.ok(),
        Err(denied) => ctx.reply.bulk(&denied.text(user.name(), denied.object_typed(full_name, &args), true)),
    }
    Ok(())
}

fn generate_password(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let bits = match ctx.args.len() {
        2 => PASSWORD_BITS_DEFAULT,
        3 => parse_integer(&ctx.args[2]).ok_or(error::NOT_INTEGER)?,
        _ => return Err(wrong_form(ctx)),
    };
    if !(1..=PASSWORD_BITS_MAX).contains(&bits) {
        return Err(Stop::error(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096",
        ));
    }
    let digits = usize::try_from(bits).unwrap_or_default().div_ceil(4);
    let mut bytes = vec![0; digits.div_ceil(2)];
    OsEntropy.fill(&mut bytes);
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    ctx.reply.bulk(text.get(..digits).unwrap_or(&text).as_bytes());
    Ok(())
}

fn help(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    reply_help(
        ctx,
        &[
            "ACL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "CAT [<category>]",
            "    List the categories of commands, or the commands of one.",
            "DELUSER <username> [<username> ...]",
            "    Delete users and close their connections.",
            "DRYRUN <username> <command> [<arg> ...]",
            "    Say whether a user may run a command, without running it.",
            "GENPASS [<bits>]",
            "    Draw a random password of 256 bits, or of this many.",
            "GETUSER <username>",
            "    Give the rules of a user, by what they are about.",
            "LIST",
            "    List the users with their rules, as an ACL file has them.",
            "LOAD",
            "    Replace all users by those of the ACL file.",
            "LOG [<count> | RESET]",
            "    List what users were denied of late, or forget it.",
            "SAVE",
            "    Write all users to the ACL file.",
            "SETUSER <username> <rule> [<rule> ...]",
            "    Create a user or change its rules.",
            "USERS",
            "    List the names of the users.",
            "WHOAMI",
            "    Give the user of this connection.",
            "HELP",
            "    Print this help.",
        ],
    );
    Ok(())
}
