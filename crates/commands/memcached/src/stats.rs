//! `stats`: what tools and exporters read. Names are those of memcached and ARCUS; what this server does not do is 0.

mod connections;
mod general;
mod items;
mod persistence;
mod settings;

use crate::arcus::prefix;
use crate::details::{self, Details};
use crate::dumps::Dumps;
use crate::get::END;
use crate::sweep::Sweeps;
use arcus::Cluster;
use command::{Ctx, Stop};
use std::fmt::Display;
use std::sync::Arc;

const UNKNOWN: Stop = Stop::error("ERROR");
const NO_STATISTICS: Stop = Stop::error("ERROR no matching stat");
const DETAIL_USAGE: Stop = Stop::error("CLIENT_ERROR usage: stats detail on|off|dump");
const LIST_USAGE: Stop = Stop::error("CLIENT_ERROR usage: stats prefixlist item|operation [prefix ...]");
const NO_DUMP: Stop = Stop::error("CLIENT_ERROR stats cachedump not allowed");

/// `stats [what]`
pub fn stats(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    match ctx.args.bytes(1) {
        None => general::lines(ctx),
        Some(b"settings") => settings::lines(ctx),
        Some(b"items") => items::items(ctx),
        Some(b"slabs") => items::slabs(ctx),
        Some(b"sizes") => line(ctx, "sizes_status", "disabled"),
        Some(b"conns") => connections::lines(ctx),
        Some(b"persistence") => persistence::lines(ctx),
        Some(b"zookeeper") => zookeeper(ctx)?,
        Some(b"scrub") => scrub(ctx),
        Some(b"dump") => dump(ctx),
        Some(b"prefixes") => return prefix::statistics(ctx, None),
        Some(b"prefixlist") => return prefix_list(ctx),
        Some(b"detail") => return detail(ctx),
        Some(b"cachedump") => return Err(NO_DUMP),
        Some(b"reset") => {
            admin::config_rows::reset_statistics(ctx);
            ctx.host.part::<crate::Needed, Arc<Details>>().clear();
            ctx.reply.text_line("RESET");
            return Ok(());
        }
        Some(_) => return Err(UNKNOWN),
    }
    ctx.reply.text_line(END);
    Ok(())
}

fn line(ctx: &mut Ctx<'_>, name: &str, value: impl Display) {
    ctx.reply.text_line(&format!("STAT {name} {value}"));
}

/// Lines for what is not there, and so is 0.
fn zeros(ctx: &mut Ctx<'_>, names: &[&str]) {
    names.iter().for_each(|name| line(ctx, name, 0));
}

fn yes(holds: bool) -> &'static str {
    if holds { "yes" } else { "no" }
}

/// `stats detail on|off|dump`
fn detail(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    match (ctx.args.bytes(2), ctx.args.len()) {
        (Some(b"on"), 3) => details::switch(ctx, true),
        (Some(b"off"), 3) => details::switch(ctx, false),
        (Some(b"dump"), 3) => {
            show_operations(ctx, None);
            return Ok(());
        }
        _ => return Err(DETAIL_USAGE),
    }
    ctx.reply.text_line("OK");
    Ok(())
}

fn show_operations(ctx: &mut Ctx<'_>, wanted: Option<&[&[u8]]>) {
    let lines = ctx.host.part::<crate::Needed, Arc<Details>>().lines(wanted);
    lines.iter().for_each(|line| ctx.reply.raw_line(line));
    ctx.reply.text_line(END);
}

/// `stats prefixlist item|operation [prefix ...]`
fn prefix_list(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let named: Vec<&[u8]> = ctx.args.from(3).collect();
    let wanted = (!named.is_empty()).then_some(&*named);
    match ctx.args.bytes(2) {
        Some(b"item") => prefix::statistics(ctx, wanted),
        Some(b"operation") => {
            show_operations(ctx, wanted);
            Ok(())
        }
        _ => Err(LIST_USAGE),
    }
}

/// `stats dump`: how far the last dump has come.
fn dump(ctx: &mut Ctx<'_>) {
    for (name, value) in ctx.host.part::<crate::Needed, Arc<Dumps>>().figures() {
        ctx.reply.raw_line(&[b"STAT ", name.as_bytes(), b" ", &value].concat());
    }
}

/// `stats zookeeper`, with the names of ARCUS.
fn zookeeper(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let figures = ctx.host.find::<Arc<Cluster>>().ok_or(NO_STATISTICS)?.figures();
    let settings = ctx.host.configuration.current();
    line(ctx, "zk_timeout", settings.arcus_zookeeper_timeout_seconds.saturating_mul(1000));
    line(ctx, "zk_failstop", if settings.arcus_zkfailstop { "on" } else { "off" });
    line(ctx, "zk_connected", figures.is_connected);
    line(ctx, "zk_ready", figures.is_ready);
    line(ctx, "zk_service_code", figures.service.as_deref().unwrap_or("unknown"));
    line(ctx, "zk_cache_nodes", figures.nodes);
    Ok(())
}

/// `stats scrub`, with the names of ARCUS.
fn scrub(ctx: &mut Ctx<'_>) {
    let scrubbed = ctx.host.part::<crate::Needed, Arc<Sweeps>>().scrubbed();
    let is_running = scrubbed.began.is_some() && scrubbed.ended.is_none();
    line(ctx, "scrubber:status", if is_running { "running" } else { "stopped" });
    if let (Some(began), Some(ended)) = (scrubbed.began, scrubbed.ended) {
        line(ctx, "scrubber:last_run", ended.saturating_sub(began).checked_div(1000).unwrap_or(0));
        line(ctx, "scrubber:visited", scrubbed.visited);
        line(ctx, "scrubber:cleaned", scrubbed.removed);
    }
}
