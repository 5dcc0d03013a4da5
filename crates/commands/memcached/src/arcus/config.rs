//! `config`: settings of ARCUS, as directives of this server.

use super::for_administrators;
use super::prefix::LISTED_MAX;
use crate::get::END;
use command::{Ctx, Stop};
use config::Settings;
use proto::memcached::{parse_signed, parse_unsigned};

const BAD_FORMAT: Stop = Stop::error("CLIENT_ERROR bad command line format");
const BAD_VALUE: Stop = Stop::error("CLIENT_ERROR bad value");

const MEGABYTE: u64 = 1 << 20;

/// What a setting of ARCUS is here.
enum Means {
    /// A directive, whose number is this many times that of ARCUS.
    Number { directive: &'static str, factor: u64 },
    /// A directive, with its words for ARCUS' in their order.
    Words { directive: &'static str, words: &'static [(&'static str, &'static str)] },
    /// A directive whose number only becomes larger, and how large it may be. A larger or a negative number is that.
    Raised { directive: &'static str, most: u32 },
    /// Always this.
    Fixed(u64),
    /// Nothing, and why.
    Nothing(&'static str),
}

const NO_HEARTBEAT: &str = "the server has no heartbeat to itself; systemd's watchdog ends one that hangs";
/// The most elements that collections may have.
const SIZE_MAX: u32 = 1_000_000;

const SETTINGS: [(&str, Means); 18] = [
    (
        "verbosity",
        Means::Words {
            directive: "loglevel",
            words: &[("0", "notice"), ("1", "verbose"), ("2", "debug"), ("0", "warning"), ("0", "nothing")],
        },
    ),
    ("memlimit", Means::Number { directive: "maxmemory", factor: MEGABYTE }),
    ("sticky_limit", Means::Number { directive: "arcus-sticky-limit", factor: MEGABYTE }),
    ("maxconns", Means::Number { directive: "maxclients", factor: 1 }),
    ("max_list_size", Means::Raised { directive: "arcus-max-list-size", most: SIZE_MAX }),
    ("max_set_size", Means::Raised { directive: "arcus-max-set-size", most: SIZE_MAX }),
    ("max_map_size", Means::Raised { directive: "arcus-max-map-size", most: SIZE_MAX }),
    ("max_btree_size", Means::Raised { directive: "arcus-max-btree-size", most: SIZE_MAX }),
    ("max_element_bytes", Means::Number { directive: "arcus-max-element-bytes", factor: 1 }),
    ("max_stats_prefixes", Means::Fixed(LISTED_MAX as u64)),
    ("scrub_count", Means::Nothing("a scrub takes as much time as clients leave it")),
    ("zkfailstop", Means::Words { directive: "arcus-zkfailstop", words: &[("on", "yes"), ("off", "no")] }),
    ("hbtimeout", Means::Nothing(NO_HEARTBEAT)),
    ("hbfailstop", Means::Nothing(NO_HEARTBEAT)),
    ("chkpt_interval_pct_snapshot", Means::Number { directive: "auto-aof-rewrite-percentage", factor: 1 }),
    ("chkpt_interval_min_logsize", Means::Number { directive: "auto-aof-rewrite-min-size", factor: MEGABYTE }),
    (
        "async_logging",
        Means::Words { directive: "appendfsync", words: &[("on", "everysec"), ("off", "always"), ("on", "no")] },
    ),
    (
        "use_persistence",
        Means::Nothing("appendonly says whether there is a log, and CONFIG SET of a Redis client changes it"),
    ),
];

impl Means {
    /// The value in force, in the words of ARCUS.
    fn value(&self, settings: &Settings) -> String {
        let of = |directive: &str| {
            let value = settings.get(&[directive]).into_iter().next().map(|(_, value)| value).unwrap_or_default();
            String::from_utf8_lossy(&value).into_owned()
        };
        match self {
            Self::Raised { directive, .. } => of(directive),
            Self::Number { directive, factor } => {
                let number = parse_unsigned(of(directive).as_bytes()).unwrap_or(0);
                number.checked_div(*factor).unwrap_or(number).to_string()
            }
            Self::Words { directive, words } => {
                let value = of(directive);
                words.iter().find(|(_, word)| *word == value).map_or_else(String::new, |(shown, _)| (*shown).to_owned())
            }
            Self::Fixed(number) => number.to_string(),
            Self::Nothing(_) => String::new(),
        }
    }

    /// The directive and the value that give it this value of ARCUS; `None` for a wrong one.
    fn given(&self, value: &[u8]) -> Option<(&'static str, String)> {
        match self {
            Self::Number { directive, factor } => {
                Some((directive, parse_unsigned(value)?.checked_mul(*factor)?.to_string()))
            }
            Self::Words { directive, words } => {
                let word = words.iter().find(|(shown, _)| shown.as_bytes() == value);
                word.map(|(_, word)| (*directive, (*word).to_owned()))
            }
            Self::Raised { .. } | Self::Fixed(_) | Self::Nothing(_) => None,
        }
    }
}

/// Sets a directive, unless the value is a wrong one.
fn set(ctx: &Ctx<'_>, directive: &str, value: Option<String>) -> Result<(), Stop> {
    let value = value.ok_or(BAD_VALUE)?;
    let pairs = [(directive.as_bytes(), value.as_bytes())];
    admin::change_settings(ctx.host, &pairs, false).map_err(|_| BAD_VALUE)?;
    Ok(())
}

/// `config name [value]`
pub fn config(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    for_administrators(ctx)?;
    let words: Vec<&[u8]> = ctx.args.from(1).collect();
    let (name, value) = match *words.as_slice() {
        [name] => (name, None),
        [name, value] => (name, Some(value)),
        _ => return Err(BAD_FORMAT),
    };
    let (name, means) = SETTINGS.iter().find(|(of, _)| of.as_bytes() == name).ok_or(BAD_FORMAT)?;
    let configuration = &ctx.host.configuration;
    let in_force = means.value(&configuration.current());
    match (means, value) {
        (Means::Nothing(why), _) => {
            ctx.reply.text_line(&format!("SERVER_ERROR {name} is not supported: {why}"));
            return Ok(());
        }
        (_, None) => ctx.reply.text_line(&format!("{name} {in_force}")),
        (Means::Fixed(_), Some(value)) if value == in_force.as_bytes() => {}
        (Means::Fixed(_), Some(value)) => {
            parse_unsigned(value).ok_or(BAD_VALUE)?;
            ctx.reply.text_line(&format!("CLIENT_ERROR the value is out of range: {name} is always {in_force} here"));
            return Ok(());
        }
        (Means::Raised { directive, most }, Some(value)) => {
            let number = parse_signed(value).and_then(|number| i32::try_from(number).ok()).ok_or(BAD_FORMAT)?;
            let number = u32::try_from(number).unwrap_or(*most).min(*most);
            let is_more = parse_unsigned(in_force.as_bytes()).is_some_and(|before| u64::from(number) > before);
            set(ctx, directive, Some(number.to_string()).filter(|_| is_more))?;
        }
        (_, Some(value)) => {
            let (directive, value) = means.given(value).ok_or(BAD_VALUE)?;
            set(ctx, directive, Some(value))?;
        }
    }
    ctx.reply.text_line(END);
    Ok(())
}
