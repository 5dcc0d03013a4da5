//! How a node is called: by clients, by the mapping that gives its service, and in the list of nodes.

use std::io;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};

/// A port to ask the system by which of its addresses it would reach a server. Nothing is sent there.
const ASKED_PORT: u16 = 514;

/// Where clients reach this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its address.
    pub ip: String,
    /// The name of its host.
    pub host: String,
    /// The port of memcached clients.
    pub port: u16,
}

impl Place {
    /// What the ring knows it by.
    pub fn name(&self) -> String {
        format!("{}:{}", self.ip, self.port)
    }

    /// The name of its ephemeral node.
    pub(crate) fn node_name(&self) -> String {
        format!("{}-{}", self.name(), self.host)
    }

    /// Under which names an administrator may have said which service it belongs to, in the order they are tried.
    pub(crate) fn mapped_names(&self) -> [String; 3] {
        [self.name(), format!("{}:{}", self.host, self.port), self.ip.clone()]
    }
}

/// The name on the ring of a node in the list: what stands before the first `-`.
pub(crate) fn ring_name(node: &str) -> &str {
    node.split_once('-').map_or(node, |(name, _)| name)
}

/// The address by which this host reaches the first of these servers that it can.
///
/// # Errors
/// No server can be resolved, or no address leads there.
pub fn own_address(servers: &[String]) -> io::Result<IpAddr> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for server in servers {
        let host = server.rsplit_once(':').map_or(server.as_str(), |(host, _)| host);
        let asked = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
            socket.connect((host, ASKED_PORT))?;
            socket.local_addr()
        });
        match asked {
            Ok(address) => return Ok(address.ip()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_node() {
        let place = Place { ip: "10.0.0.7".into(), host: "cache-7.example".into(), port: 11211 };
        assert_eq!(place.node_name(), "10.0.0.7:11211-cache-7.example");
        assert_eq!(ring_name(&place.node_name()), place.name());
        assert_eq!(place.mapped_names(), ["10.0.0.7:11211", "cache-7.example:11211", "10.0.0.7"]);
        assert_eq!(ring_name("10.0.0.7:11211"), "10.0.0.7:11211");
    }

    #[test]
    fn loopback_is_reached_from_loopback() {
        let servers = ["127.0.0.1:2181".to_owned()];
        assert_eq!(own_address(&servers).unwrap(), IpAddr::V4(Ipv4Addr::LOCALHOST));
        assert!(own_address(&[]).is_err());
    }
}
