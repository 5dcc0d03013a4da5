//! Protected mode: without a password, only clients of this host are served.

use command::clients::Address;
use config::Settings;

/// Whether protected mode refuses a new connection of this peer. `needs_login` says whether clients have to log in.
pub(crate) fn refuses(settings: &Settings, peer: &Address, needs_login: bool) -> bool {
    settings.protected_mode && !needs_login && !is_near(peer)
}

/// Whether the peer is on this host.
pub(crate) fn is_near(peer: &Address) -> bool {
    match peer {
        Address::Tcp(address) => address.ip().to_canonical().is_loopback(),
        Address::Unix(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(text: &str) -> Address {
        Address::Tcp(text.parse().unwrap())
    }

    #[test]
    fn this_host_is_told_from_others() {
        assert!(
            ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"].iter().all(|text| is_near(&tcp(text)))
        );
        assert!(is_near(&Address::Unix("/s".into())));
        assert!(["10.0.0.1:1", "[fe80::1]:1", "[::ffff:10.0.0.1]:1"].iter().all(|text| !is_near(&tcp(text))));
    }

    #[test]
    fn others_are_refused_while_there_is_no_password() {
        for (protected_mode, needs_login, expected) in
            [(true, false, true), (true, true, false), (false, false, false), (false, true, false)]
        {
            let settings = Settings { protected_mode, ..Settings::default() };
            assert_eq!(refuses(&settings, &tcp("10.0.0.1:1"), needs_login), expected);
            assert!(!refuses(&settings, &tcp("127.0.0.1:1"), needs_login));
        }
    }
}
