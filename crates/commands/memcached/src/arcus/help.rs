//! `help`: the lines of requests, by family.

use command::{Ctx, Stop};

const UNKNOWN: Stop = Stop::error("CLIENT_ERROR bad command line format");

/// The families, each with its requests.
const FAMILIES: [(&str, &[&str]); 9] = [
    (
        "kv",
        &[
            "set|add|replace|append|prepend <key> <flags> <exptime> <bytes> [noreply]\\r\\n<data>\\r\\n",
            "cas <key> <flags> <exptime> <bytes> <cas unique> [noreply]\\r\\n<data>\\r\\n",
            "get|gets <key> [<key> ...]\\r\\n",
            "gat|gats <exptime> <key> [<key> ...]\\r\\n",
            "mget|mgets <lenkeys> <numkeys>\\r\\n<\"space separated keys\">\\r\\n",
            "incr|decr <key> <delta> [<flags> <exptime> <initial>] [noreply]\\r\\n",
            "touch <key> <exptime> [noreply]\\r\\n",
            "delete <key> [noreply]\\r\\n",
            "mg|md|ma <key> [<flag> ...]\\r\\n",
            "ms <key> <bytes> [<flag> ...]\\r\\n<data>\\r\\n",
        ],
    ),
    (
        "list",
        &[
            "lop create <key> <attributes> [noreply]\\r\\n",
            "lop insert <key> <index> <bytes> [create <attributes>] [noreply|pipe]\\r\\n<data>\\r\\n",
            "lop delete <key> <index or range> [drop] [noreply|pipe]\\r\\n",
            "lop get <key> <index or range> [delete|drop]\\r\\n",
        ],
    ),
    (
        "set",
        &[
            "sop create <key> <attributes> [noreply]\\r\\n",
            "sop insert <key> <bytes> [create <attributes>] [noreply|pipe]\\r\\n<data>\\r\\n",
            "sop delete <key> <bytes> [drop] [noreply|pipe]\\r\\n<data>\\r\\n",
            "sop get <key> <count> [delete|drop]\\r\\n",
            "sop exist <key> <bytes> [pipe]\\r\\n<data>\\r\\n",
        ],
    ),
    (
        "map",
        &[
            "mop create <key> <attributes> [noreply]\\r\\n",
            "mop insert|upsert <key> <field> <bytes> [create <attributes>] [noreply|pipe]\\r\\n<data>\\r\\n",
            "mop update <key> <field> <bytes> [noreply|pipe]\\r\\n<data>\\r\\n",
            "mop delete <key> <lenfields> <numfields> [drop] [noreply|pipe]\\r\\n[<\"space separated fields\">]\\r\\n",
            "mop get <key> <lenfields> <numfields> [delete|drop]\\r\\n[<\"space separated fields\">]\\r\\n",
        ],
    ),
    (
        "btree",
        &[
            "bop create <key> <attributes> [noreply]\\r\\n",
            "bop insert|upsert <key> <bkey> [<eflag>] <bytes> [create <attributes>] [noreply|pipe|getrim]\\r\\n<data>\\r\\n",
            "bop update <key> <bkey> [<eflag_update>] <bytes> [noreply|pipe]\\r\\n<data>\\r\\n",
            "bop delete <key> <bkey or range> [<eflag_filter>] [<count>] [drop] [noreply|pipe]\\r\\n",
            "bop get <key> <bkey or range> [<eflag_filter>] [[<offset>] <count>] [delete|drop]\\r\\n",
            "bop count <key> <bkey or range> [<eflag_filter>]\\r\\n",
            "bop incr|decr <key> <bkey> <delta> [<initial> [<eflag>]] [noreply|pipe]\\r\\n",
            "bop mget <lenkeys> <numkeys> <bkey or range> [<eflag_filter>] [<offset>] <count>\\r\\n<keys>\\r\\n",
            "bop smget <lenkeys> <numkeys> <bkey or range> [<eflag_filter>] <count> [duplicate|unique]\\r\\n<keys>\\r\\n",
            "bop position <key> <bkey> asc|desc\\r\\n",
            "bop gbp <key> asc|desc <position or range>\\r\\n",
            "bop pwg <key> <bkey> asc|desc [<count>]\\r\\n",
        ],
    ),
    ("attr", &["getattr <key> [<attribute> ...]\\r\\n", "setattr <key> <name>=<value> ...\\r\\n"]),
    (
        "scan",
        &[
            "scan key <cursor> [count <count>] [match <pattern>] [type <type>]\\r\\n",
            "scan prefix <cursor> [count <count>] [match <pattern>]\\r\\n",
        ],
    ),
    (
        "stats",
        &[
            "stats\\r\\n",
            "stats settings|items|slabs|sizes|conns|persistence|prefixes|zookeeper|scrub|dump|reset\\r\\n",
            "stats detail on|off|dump\\r\\n",
            "stats prefixlist item|operation [<prefix> ...]\\r\\n",
        ],
    ),
    (
        "admin",
        &[
            "flush_all [<delay>] [noreply]\\r\\n",
            "flush_prefix <prefix> [<delay>] [noreply]\\r\\n",
            "scrub [stale]\\r\\n",
            "config <name> [<value>]\\r\\n",
            "cmdlog start [<directory>]|stop|stats\\r\\n",
            "dump start key [<prefix>] <file>\\r\\n",
            "dump stop\\r\\n",
            "lqdetect start [<threshold>]|stop|show|stats\\r\\n",
            "verbosity <level> [noreply]\\r\\n",
            "zkensemble set <servers>|get|rejoin\\r\\n",
            "cluster join alone|begin|end\\r\\n",
            "shutdown [<seconds>]\\r\\n",
            "sasl mech\\r\\n",
            "sasl auth PLAIN <bytes>\\r\\n<data>\\r\\n",
            "ready|version|quit\\r\\n",
        ],
    ),
];

/// `help [family]`
pub fn help(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let lines = match (ctx.args.bytes(1), ctx.args.len()) {
        (None, _) => {
            let names: Vec<&str> = FAMILIES.iter().map(|(name, _)| *name).collect();
            ctx.reply.text_line(&format!("help [{}]", names.join("|")));
            return Ok(());
        }
        (Some(name), 2) => FAMILIES.iter().find(|(of, _)| of.as_bytes() == name).ok_or(UNKNOWN)?.1,
        _ => return Err(UNKNOWN),
    };
    lines.iter().for_each(|line| ctx.reply.text_line(line));
    Ok(())
}
