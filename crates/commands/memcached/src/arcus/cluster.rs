//! Commands about the cluster of ARCUS: `ready`, `zkensemble`, `cluster`, `scrub`; and those that have other ways here.

use crate::sweep::{Busy, Purpose, Sweeps};
use arcus::{Cluster, parse_servers};
use command::blocking::{Awaited, Block};
use command::clients::Address;
use command::{Ctx, Stop};
use std::sync::Arc;
use store::Store;

const BAD_FORMAT: Stop = Stop::error("CLIENT_ERROR bad command line format");
const NO_CLUSTER: Stop = Stop::error("ERROR not using ZooKeeper");
const NOT_LEFT: Stop = Stop::error("ERROR failed to rejoin ensemble");
const BAD_SERVERS: Stop = Stop::error("ERROR failed to set the new ensemble address (check logs)");
const NOT_SUPPORTED: Stop = Stop::error("NOT_SUPPORTED");
const BUSY: Stop = Stop::error("BUSY");
const UNAUTHORIZED: Stop = Stop::error("CLIENT_ERROR unauthorized");

fn cluster<'h>(ctx: &Ctx<'h>) -> Result<&'h Arc<Cluster>, Stop> {
    ctx.host.find::<Arc<Cluster>>().ok_or(NO_CLUSTER)
}

/// Refuses a client of another host that has not logged in. Rights of users are in the rows.
pub fn for_administrators(ctx: &Ctx<'_>) -> Result<(), Stop> {
    let is_near = match &ctx.session.info.address {
        Address::Tcp(address) => address.ip().to_canonical().is_loopback(),
        Address::Unix(_) => true,
    };
    let needs_no_login = ctx.host.login.users.default_user().rules().is_open();
    if is_near || !needs_no_login { Ok(()) } else { Err(UNAUTHORIZED) }
}

/// `ready`: whether clients find this node. Without ZooKeeper, whether it serves.
pub fn ready(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let is_loading = ctx.host.part::<crate::Needed, Arc<Store>>().gate.is_loading();
    let is_ready = ctx.host.find::<Arc<Cluster>>().is_none_or(|cluster| cluster.is_ready());
    ctx.reply.text_line(if is_ready && !is_loading { "READY" } else { "NOT_READY" });
    Ok(())
}

/// `zkensemble set list|get|rejoin`
pub fn ensemble(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    for_administrators(ctx)?;
    let cluster = cluster(ctx)?;
    let words: Vec<&[u8]> = ctx.args.from(1).collect();
    match *words.as_slice() {
        [b"get"] => ctx.reply.text_line(&format!("{}\r\n\n", cluster.servers().join(","))),
        [b"set", list] => {
            let servers = std::str::from_utf8(list).ok().and_then(parse_servers).ok_or(BAD_SERVERS)?;
            cluster.set_servers(servers);
            ctx.reply.text_line("OK");
        }
        [b"rejoin"] => {
            let order = cluster.rejoin().ok_or(NOT_LEFT)?;
            ctx.session.block = Some(Block::begin(&ctx.session.info, Awaited::Task(Arc::new(order)), None));
        }
        _ => return Err(BAD_FORMAT),
    }
    Ok(())
}

/// `cluster join alone|begin|end`: puts a node on the list that has started with `arcus-join no`.
pub fn join(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    for_administrators(ctx)?;
    let cluster = cluster(ctx)?;
    let words: Vec<&[u8]> = ctx.args.from(1).collect();
    match *words.as_slice() {
        [b"join", b"alone" | b"begin" | b"end"] => cluster.join(),
        _ => return Err(BAD_FORMAT),
    }
    ctx.reply.text_line("OK");
    Ok(())
}

/// `scrub [stale]`
pub fn scrub(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    for_administrators(ctx)?;
    let words: Vec<&[u8]> = ctx.args.from(1).collect();
    let purpose = match *words.as_slice() {
        [] => Purpose::Expired,
        [b"stale"] => {
            let ring = ctx.host.find::<Arc<Cluster>>().and_then(|cluster| cluster.ring());
            Purpose::Stale(ring.ok_or(NOT_SUPPORTED)?)
        }
        _ => return Err(BAD_FORMAT),
    };
    let store = ctx.host.part::<crate::Needed, Arc<Store>>();
    ctx.host.part::<crate::Needed, Arc<Sweeps>>().scrub(store, ctx.session.db, purpose).map_err(|Busy| BUSY)?;
    ctx.reply.text_line("OK");
    Ok(())
}
