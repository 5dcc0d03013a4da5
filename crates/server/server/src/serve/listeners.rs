//! The addresses that the settings name, and their listeners.

use super::ServeError;
use crate::dialect::Language;
use crate::listen::{Endpoint, Entrance, Kind, Place, listen_unix};
use config::Settings;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The TCP addresses that the settings name.
pub(super) fn places(settings: &Settings) -> Vec<Place> {
    let ports = [
        (settings.port, Kind::plain(Language::Resp)),
        (settings.tls_port, Kind::tls(Language::Resp)),
        (settings.ssdb_port, Kind { language: Language::Ssdb, tls: settings.ssdb_tls }),
        (settings.memcached_port, Kind { language: Language::Memcached, tls: settings.memcached_tls }),
    ];
    let place = |bind: &config::Address, port: u16, kind: Kind| {
        let ip = match bind.host {
            config::Host::AnyV4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            config::Host::AnyV6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            config::Host::Localhost => IpAddr::V4(Ipv4Addr::LOCALHOST),
            config::Host::Ip(ip) => ip,
        };
        Place { address: SocketAddr::new(ip, port), optional: bind.optional, kind }
    };
    let open = ports.into_iter().filter(|(port, _)| *port != 0);
    open.flat_map(|(port, kind)| settings.bind.iter().map(move |bind| place(bind, port, kind))).collect()
}

pub(super) fn backlog(settings: &Settings) -> i32 {
    i32::try_from(settings.tcp_backlog).unwrap_or(i32::MAX)
}

/// Listens where the settings say.
///
/// # Errors
/// [`ServeError::Listen`] names the address; an address marked optional that this machine lacks is skipped.
pub fn listen(settings: &Settings) -> Result<Vec<Entrance>, ServeError> {
    let failed = |endpoint: &Endpoint, source| ServeError::Listen { address: endpoint.to_string(), source };
    let mut entrances = Vec::new();
    for place in places(settings) {
        let listened = place.listen(backlog(settings));
        entrances.extend(listened.map_err(|error| failed(&Endpoint::Tcp(place.address), error))?);
    }
    if let Some(path) = &settings.unixsocket {
        let endpoint = Endpoint::Unix(path.clone());
        let listener = listen_unix(path, settings.unixsocketperm).map_err(|error| failed(&endpoint, error))?;
        entrances.push(Entrance { endpoint, kind: Kind::default(), listener });
    }
    if entrances.is_empty() { Err(ServeError::NoListener) } else { Ok(entrances) }
}
