//! The server as a node of an ARCUS cluster: what the thread of [`arcus::Node`] needs of it.

use crate::executor::Shared;
use admin::{EndOrder, ShutdownRequest};
use arcus::{Cluster, Node, Place, Surroundings, own_address, parse_servers};
use base::DbIndex;
use config::Settings;
use memcached::{Busy, Purpose, Sweeps};
use std::sync::Arc;
use std::time::Duration;

/// The membership that the settings ask for.
pub(crate) fn cluster(settings: &Settings) -> Option<Arc<Cluster>> {
    let servers = parse_servers(&settings.arcus_zookeeper)?;
    Some(Arc::new(Cluster::new(servers, settings.arcus_join)))
}

/// The thread's state.
pub(crate) fn node(cluster: Arc<Cluster>, shared: &Arc<Shared>) -> Node {
    let settings = shared.host.configuration.current();
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let place = Place { ip: address(&cluster, &settings), host, port: settings.memcached_port };
    let timeout = Duration::from_secs(settings.arcus_zookeeper_timeout_seconds.into());
    let db = DbIndex(settings.memcached_database);
    let of = || shared.clone();
    let (loaded, limit, failstop, ended, scrubbed) = (of(), of(), of(), of(), of());
    let now = |shared: &Shared| shared.host.configuration.current();
    let surroundings = Surroundings {
        clock: shared.store.clock.clone(),
        is_loaded: Box::new(move || !loaded.store.gate.is_loading()),
        memory_bytes: Box::new(move || now(&limit).maxmemory_bytes),
        fails_stop: Box::new(move || now(&failstop).arcus_zkfailstop),
        stop: Box::new(move || drop(ended.host.part::<admin::Needed, ShutdownRequest>().ask(EndOrder::Terminate))),
        scrub: Box::new(move |ring| {
            let sweeps = scrubbed.host.part::<memcached::Needed, Arc<Sweeps>>();
            match sweeps.scrub(&scrubbed.store, db, Purpose::Stale(ring)) {
                Ok(()) => {}
                Err(Busy) => tracing::warn!(
                    "keys of a new node of the cluster stay: another scrub is running; send `scrub stale`"
                ),
            }
        }),
    };
    Node::new(cluster, place, timeout, surroundings)
}

/// The address that clients are to use.
fn address(cluster: &Cluster, settings: &Settings) -> String {
    match settings.arcus_public_ip.as_str() {
        "" => own_address(&cluster.servers()).map(|ip| ip.to_string()).unwrap_or_else(|error| {
            let address = "127.0.0.1";
            tracing::warn!(
                "no address of this host leads to ZooKeeper ({error}): clients receive {address}; set arcus-public-ip"
            );
            address.to_owned()
        }),
        public => public.to_owned(),
    }
}
