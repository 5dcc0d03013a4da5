//! What the store refuses while the server is a replica.

use command::Host;
use config::Settings;
use replication::Role;
use replication::role::LinkState;
use std::sync::Arc;
use store::Store;

/// Has the gate of the store follow the role and the settings: after a change of either, or of the link.
pub fn adjust_role(host: &Host, settings: &Settings) {
    let (Some(role), Some(store)) = (host.find::<Arc<Role>>(), host.find::<Arc<Store>>()) else { return };
    let is_replica = role.primary().is_some();
    store.gate.set_replica(is_replica, settings.replica_read_only, settings.replica_ignore_maxmemory);
    store.gate.set_stale(is_replica && !settings.replica_serve_stale_data && role.link() != LinkState::Connected);
}
