//! CLIENT TRACKING and its relatives: clients that cache what they read receive an invalidation when it changes.

use crate::Session;
use crate::caching::{Caching, CachingMode};
use crate::error::{self, Stop};
use crate::spec::{Argument, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, Host, Locks, Run};
use push::Tracker;

/// Ends tracking for a connection.
pub fn stop_tracking(session: &mut Session, host: &Host) {
    if let Some(caching) = session.tracking.take() {
        host.tracking.leave(session.id, caching.prefixes.iter().map(|prefix| &**prefix));
        session.publish_tracking();
    }
}

pub(super) static TRACKING: CommandSpec = CommandSpec {
    name: "tracking",
    arity: -3,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE).union(Flags::KEEPS_CACHING),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Has the connection told when keys that it has read change.",
        since: "6.0.0",
        group: "connection",
        complexity: "O(1). Some options may introduce additional complexity.",
        arguments: &[
            Argument::one_of("status", &[Argument::word("on", "ON"), Argument::word("off", "OFF")]),
            Argument::integer("client-id").after("REDIRECT").optional(),
            Argument::string("prefix").after("PREFIX").optional().repeated_with_token(),
            Argument::word("bcast", "BCAST").optional(),
            Argument::word("optin", "OPTIN").optional(),
            Argument::word("optout", "OPTOUT").optional(),
            Argument::word("noloop", "NOLOOP").optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(tracking),
};

fn tracking(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let options = Options::parse(ctx)?;
    match () {
        () if ctx.is_word(2, "on") => track(ctx, &options)?,
        () if ctx.is_word(2, "off") => stop_tracking(ctx.session, ctx.host),
        () => return Err(error::SYNTAX),
    }
    ctx.reply.ok();
    Ok(())
}

/// The options after ON or OFF.
#[derive(Default)]
struct Options<'a> {
    redirect: Option<push::Receiver>,
    is_broadcast: bool,
    is_opt_in: bool,
    is_opt_out: bool,
    is_noloop: bool,
    prefixes: Vec<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn parse(ctx: &Ctx<'a>) -> Result<Self, Stop> {
        let mut options = Self::default();
        let mut at = 3;
        while at < ctx.args.len() {
            let value = at.saturating_add(1);
            let has_value = value < ctx.args.len();
            match () {
                () if ctx.is_word(at, "redirect") && has_value => {
                    options.redirect = Some(options.redirect_to(ctx, value)?);
                    at = value;
                }
                () if ctx.is_word(at, "prefix") && has_value => {
                    options.prefixes.extend(ctx.args.bytes(value));
                    at = value;
                }
                () if ctx.is_word(at, "bcast") => options.is_broadcast = true,
                () if ctx.is_word(at, "optin") => options.is_opt_in = true,
                () if ctx.is_word(at, "optout") => options.is_opt_out = true,
                () if ctx.is_word(at, "noloop") => options.is_noloop = true,
                () => return Err(error::SYNTAX),
            }
            at = at.saturating_add(1);
        }
        Ok(options)
    }

    /// The connection that receives the invalidations in place of this one.
    fn redirect_to(&self, ctx: &Ctx<'_>, index: usize) -> Result<push::Receiver, Stop> {
        if self.redirect.is_some() {
            return Err(Stop::error("ERR A client can only redirect to a single other client"));
        }
        let target = u64::try_from(ctx.integer(index)?).ok().and_then(|id| ctx.host.clients.find(id));
        let target = target.ok_or(Stop::error("ERR The client ID you want redirect to does not exist"))?;
        Ok(target.receiver())
    }

    fn mode(&self) -> CachingMode {
        match () {
            () if self.is_broadcast => CachingMode::Broadcast,
            () if self.is_opt_in => CachingMode::OptIn,
            () if self.is_opt_out => CachingMode::OptOut,
            () => CachingMode::All,
        }
    }

    /// What speaks against these options, for a connection that is tracked so already.
    fn check(&self, present: Option<&Caching>) -> Result<(), Stop> {
        let mode = self.mode();
        let switches = |a, b| present.is_some_and(|caching| caching.mode == a && mode == b);
        if !self.is_broadcast && !self.prefixes.is_empty() {
            return Err(Stop::error("ERR PREFIX option requires BCAST mode to be enabled"));
        }
        if present.is_some_and(|caching| (caching.mode == CachingMode::Broadcast) != self.is_broadcast) {
            return Err(Stop::error(
                "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it \
                 with a different mode.",
            ));
        }
        if self.is_broadcast && (self.is_opt_in || self.is_opt_out) {
            return Err(Stop::error("ERR OPTIN and OPTOUT are not compatible with BCAST"));
        }
        if self.is_opt_in && self.is_opt_out {
            return Err(Stop::error("ERR You can't specify both OPTIN mode and OPTOUT mode"));
        }
        if switches(CachingMode::OptIn, CachingMode::OptOut) || switches(CachingMode::OptOut, CachingMode::OptIn) {
            return Err(Stop::error(
                "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it \
                 with a different mode.",
            ));
        }
        self.check_prefixes(present)
    }

    /// If one prefix began with another, keys would be announced twice.
    fn check_prefixes(&self, present: Option<&Caching>) -> Result<(), Stop> {
        let overlap = |a: &[u8], b: &[u8]| a.starts_with(b) || b.starts_with(a);
        let refused = |prefix: &[u8], kind: &[u8], other: &[u8]| {
            let text = [
                b"ERR Prefix '",
                error::up_to_zero(prefix),
                b"' overlaps with ",
                kind,
                b" prefix '",
                error::up_to_zero(other),
                b"'. Prefixes for a single client must not overlap.",
            ];
            Err(Stop::error_with(text.concat()))
        };
        for (number, prefix) in self.prefixes.iter().enumerate() {
            let existing = present.into_iter().flat_map(|caching| &caching.prefixes);
            if let Some(other) = existing.into_iter().find(|other| overlap(prefix, other)) {
                return refused(prefix, b"an existing", other);
            }
            let further = self.prefixes.iter().skip(number.saturating_add(1));
            if let Some(other) = further.into_iter().find(|other| overlap(prefix, other)) {
                return refused(prefix, b"another provided", other);
            }
        }
        Ok(())
    }
}

/// Begins to track, or changes how.
fn track(ctx: &mut Ctx<'_>, options: &Options<'_>) -> Result<(), Stop> {
    options.check(ctx.session.tracking.as_deref())?;
    let mut caching = ctx.session.tracking.take().unwrap_or_default();
    let all: &[&[u8]] = &[b""];
    let prefixes = match options.is_broadcast {
        true if options.prefixes.is_empty() => all,
        _ => &options.prefixes,
    };
    caching.mode = options.mode();
    caching.is_noloop = options.is_noloop;
    caching.redirect = options.redirect.map_or(0, |target| target.client);
    caching.is_broken = false;
    caching.prefixes.extend(prefixes.iter().map(|prefix| Box::from(*prefix)));
    ctx.session.tracking = Some(caching);
    let client = ctx.session.info.receiver();
    let Options { redirect, is_noloop, is_broadcast, .. } = *options;
    let tracker = Tracker { client, redirect, is_noloop, is_broadcast };
    ctx.host.tracking.enter(tracker, prefixes);
    ctx.session.publish_tracking();
    Ok(())
}

pub(super) static CACHING: CommandSpec = CommandSpec {
    name: "caching",
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
        summary: "Says whether the keys of the next command are tracked.",
        since: "6.0.0",
        group: "connection",
        complexity: "O(1)",
        arguments: &[Argument::one_of("mode", &[Argument::word("yes", "YES"), Argument::word("no", "NO")])],
        ..Docs::NONE
    },
    run: Run::Call(caching),
};

fn caching(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (is_yes, is_no) = (ctx.is_word(2, "yes"), ctx.is_word(2, "no"));
    let Some(caching) = &mut ctx.session.tracking else {
        return Err(Stop::error(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        ));
    };
    match caching.mode {
        CachingMode::OptIn if is_yes => caching.is_called = true,
        CachingMode::OptOut if is_no => caching.is_called = true,
        _ if is_yes => {
            return Err(Stop::error("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode."));
        }
        _ if is_no => {
            return Err(Stop::error("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode."));
        }
        _ => return Err(error::SYNTAX),
    }
    ctx.reply.ok();
    Ok(())
}

pub(super) static GETREDIR: CommandSpec = CommandSpec {
    name: "getredir",
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
        summary: "Tells which connection gets the invalidation messages of this one.",
        since: "6.0.0",
        group: "connection",
        complexity: "O(1)",
        ..Docs::NONE
    },
    run: Run::Call(getredir),
};

/// 0 is the connection itself; -1: keys are not tracked.
fn getredir(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.reply.integer(ctx.session.info.redirect());
    Ok(())
}

pub(super) static TRACKINGINFO: CommandSpec = CommandSpec {
    name: "trackinginfo",
    arity: 2,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE).union(Flags::KEEPS_CACHING),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Tells how the keys this connection reads are tracked.",
        since: "6.2.0",
        group: "connection",
        complexity: "O(1)",
        ..Docs::NONE
    },
    run: Run::Call(trackinginfo),
};

fn trackinginfo(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (caching, reply) = (ctx.session.tracking.as_deref(), &mut *ctx.reply);
    let mut flags = vec![if caching.is_some() { "on" } else { "off" }];
    if let Some(caching) = caching {
        flags.extend(match caching.mode {
            CachingMode::All => None,
            CachingMode::Broadcast => Some("bcast"),
            CachingMode::OptIn => Some("optin"),
            CachingMode::OptOut => Some("optout"),
        });
        match caching.mode {
            CachingMode::OptIn if caching.is_called => flags.push("caching-yes"),
            CachingMode::OptOut if caching.is_called => flags.push("caching-no"),
            _ => {}
        }
        flags.extend(caching.is_noloop.then_some("noloop"));
        flags.extend(caching.is_broken.then_some("broken_redirect"));
    }
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"redirect");
    reply.integer(ctx.session.info.redirect());
    reply.bulk(b"prefixes");
    reply.array(caching.map_or(0, |caching| caching.prefixes.len()));
    caching.into_iter().flat_map(|caching| &caching.prefixes).for_each(|prefix| reply.bulk(prefix));
    Ok(())
}
