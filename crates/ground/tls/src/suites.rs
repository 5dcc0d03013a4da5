//! Protocols and cipher suites by the names that OpenSSL gives them.

use crate::TlsError;
use rustls::crypto::{CryptoProvider, ring};
use rustls::version::{TLS12, TLS13};
use rustls::{SupportedCipherSuite, SupportedProtocolVersion};
use std::collections::VecDeque;
use std::sync::Arc;

/// The suites of TLS 1.2, in the order of preference, by OpenSSL's names.
const OLD: [(&str, SupportedCipherSuite); 6] = [
    ("ECDHE-ECDSA-AES256-GCM-SHA384", ring::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-ECDSA-AES128-GCM-SHA256", ring::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", ring::cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("ECDHE-RSA-AES256-GCM-SHA384", ring::cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-RSA-AES128-GCM-SHA256", ring::cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-RSA-CHACHA20-POLY1305", ring::cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
];

/// The suites of TLS 1.3.
const NEW: [(&str, SupportedCipherSuite); 3] = [
    ("TLS_AES_256_GCM_SHA384", ring::cipher_suite::TLS13_AES_256_GCM_SHA384),
    ("TLS_AES_128_GCM_SHA256", ring::cipher_suite::TLS13_AES_128_GCM_SHA256),
    ("TLS_CHACHA20_POLY1305_SHA256", ring::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256),
];

/// Words that stand for all suites offered here.
const ALL: [&str; 8] = ["DEFAULT", "ALL", "HIGH", "ECDHE", "kECDHE", "EECDH", "kEECDH", "TLSv1.2"];

/// Classes of which nothing is offered here: excluding them changes nothing.
const ABSENT: [&str; 31] = [
    "aNULL",
    "eNULL",
    "NULL",
    "COMPLEMENTOFDEFAULT",
    "EXP",
    "EXPORT",
    "LOW",
    "MEDIUM",
    "MD5",
    "SHA",
    "SHA1",
    "DES",
    "3DES",
    "RC4",
    "RC2",
    "IDEA",
    "SEED",
    "CAMELLIA",
    "ARIA",
    "PSK",
    "SRP",
    "DSS",
    "aDSS",
    "kRSA",
    "DH",
    "DHE",
    "kDHE",
    "ADH",
    "AECDH",
    "SSLv3",
    "CBC",
];

const PROTOCOLS: &str = "tls-protocols";
const CIPHERS: &str = "tls-ciphers";
const CIPHERSUITES: &str = "tls-ciphersuites";

/// What a side of a connection may use.
pub(crate) struct Offer {
    pub(crate) versions: Vec<&'static SupportedProtocolVersion>,
    pub(crate) provider: Arc<CryptoProvider>,
}

impl Offer {
    /// What the three settings name; empty ones leave it to this program.
    pub(crate) fn of(protocols: &str, ciphers: &str, ciphersuites: &str) -> Result<Self, TlsError> {
        let versions = versions(protocols)?;
        let mut suites = Vec::new();
        if versions.contains(&&TLS13) {
            suites.extend(new_suites(ciphersuites)?);
        }
        if versions.contains(&&TLS12) {
            suites.extend(old_suites(ciphers)?);
        }
        let provider = CryptoProvider { cipher_suites: suites, ..ring::default_provider() };
        Ok(Self { versions, provider: Arc::new(provider) })
    }
}

fn wrong(directive: &'static str, reason: String) -> TlsError {
    TlsError::Word { directive, reason }
}

fn versions(words: &str) -> Result<Vec<&'static SupportedProtocolVersion>, TlsError> {
    let mut versions: Vec<&'static SupportedProtocolVersion> = Vec::new();
    for word in words.split_ascii_whitespace() {
        let version = match word.to_ascii_lowercase().as_str() {
            "tlsv1.3" => &TLS13,
            "tlsv1.2" => &TLS12,
            "tlsv1" | "tlsv1.1" => {
                let reason = format!("{word} is not offered, since it is broken: give TLSv1.2, TLSv1.3 or both");
                return Err(wrong(PROTOCOLS, reason));
            }
            _ => {
                return Err(wrong(PROTOCOLS, format!("'{word}' is not a protocol: give TLSv1.2, TLSv1.3 or both")));
            }
        };
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    Ok(if versions.is_empty() { vec![&TLS13, &TLS12] } else { versions })
}

fn new_suites(words: &str) -> Result<Vec<SupportedCipherSuite>, TlsError> {
    let mut suites = Vec::new();
    for word in split(words) {
        let known = NEW.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
        let (_, suite) = known.ok_or_else(|| {
            let names = NEW.map(|(name, _)| name).join(", ");
            wrong(CIPHERSUITES, format!("'{word}' is not offered: the suites of TLS 1.3 here are {names}"))
        })?;
        if !suites.contains(suite) {
            suites.push(*suite);
        }
    }
    Ok(if suites.is_empty() { NEW.map(|(_, suite)| suite).to_vec() } else { suites })
}

/// A list as `openssl ciphers` takes it: names and classes that are added, `!` and `-` before those that are removed,
/// `+` before those that move to the end.
fn old_suites(words: &str) -> Result<Vec<SupportedCipherSuite>, TlsError> {
    if words.is_empty() {
        return Ok(OLD.map(|(_, suite)| suite).to_vec());
    }
    let (mut chosen, mut banned) = (VecDeque::new(), Vec::new());
    for word in split(words) {
        if word.eq_ignore_ascii_case("@STRENGTH") || word.to_ascii_uppercase().starts_with("@SECLEVEL=") {
            continue;
        }
        let (sign, name) = match word.split_at_checked(1) {
            Some((sign @ ("!" | "-" | "+"), name)) => (sign, name),
            _ => ("", word),
        };
        let is_absent = ABSENT.iter().any(|class| class.eq_ignore_ascii_case(name));
        let members: Vec<usize> = (0..OLD.len()).filter(|at| belongs(OLD[*at].0, name)).collect();
        if members.is_empty() && (sign.is_empty() || !is_absent) {
            let names = OLD.map(|(name, _)| name).join(", ");
            return Err(wrong(CIPHERS, format!("'{word}' is not offered: the ciphers of TLS 1.2 here are {names}")));
        }
        match sign {
            "" => {
                let new = members.into_iter().filter(|at| !chosen.contains(at) && !banned.contains(at));
                let new: Vec<usize> = new.collect();
                chosen.extend(new);
            }
            "+" => {
                let (moved, stay): (Vec<usize>, Vec<usize>) = chosen.iter().partition(|at| members.contains(at));
                chosen = stay.into_iter().chain(moved).collect();
            }
            _ => {
                chosen.retain(|at| !members.contains(at));
                if sign == "!" {
                    banned.extend(members);
                }
            }
        }
    }
    if chosen.is_empty() {
        return Err(wrong(CIPHERS, format!("'{words}' leaves no cipher")));
    }
    Ok(chosen.into_iter().map(|at| OLD[at].1).collect())
}

/// Whether a suite has this name, or is of this class. Classes joined by `+` must all hold.
fn belongs(suite: &str, name: &str) -> bool {
    suite.eq_ignore_ascii_case(name) || name.split('+').all(|class| is_of_class(suite, class))
}

fn is_of_class(suite: &str, class: &str) -> bool {
    let has = |part: &str| suite.contains(part);
    match class.to_ascii_uppercase().as_str() {
        "AESGCM" | "AES" => has("GCM"),
        "AES128" => has("AES128"),
        "AES256" => has("AES256"),
        "CHACHA20" => has("CHACHA20"),
        "ECDSA" | "AECDSA" => has("-ECDSA-"),
        "RSA" | "ARSA" => has("-RSA-"),
        "SHA256" => has("SHA256"),
        "SHA384" => has("SHA384"),
        _ => ALL.iter().any(|all| all.eq_ignore_ascii_case(class)),
    }
}

fn split(words: &str) -> impl Iterator<Item = &str> {
    words.split([':', ',', ' ']).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(offer: &Offer) -> Vec<String> {
        offer.provider.cipher_suites.iter().map(|suite| format!("{:?}", suite.suite())).collect()
    }

    #[test]
    fn everything_is_offered_unless_told_otherwise() {
        let offer = Offer::of("", "", "").unwrap();
        assert_eq!((offer.versions.len(), offer.provider.cipher_suites.len()), (2, OLD.len() + NEW.len()));
    }

    #[test]
    fn protocols_choose_suites() {
        let offer = Offer::of("tlsv1.3", "", "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256").unwrap();
        assert_eq!(offer.versions, [&TLS13]);
        assert_eq!(names(&offer), ["TLS13_CHACHA20_POLY1305_SHA256", "TLS13_AES_128_GCM_SHA256"]);
        let offer = Offer::of("TLSv1.2 TLSv1.2", "ECDHE-RSA-AES128-GCM-SHA256", "").unwrap();
        assert_eq!(offer.versions, [&TLS12]);
        assert_eq!(names(&offer), ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]);
    }

    /// Lists that people copy from recommendations for web servers.
    #[test]
    fn lists_of_openssl_are_read() {
        for (list, count) in [
            ("HIGH:!aNULL:!MD5", 6),
            ("DEFAULT:!CHACHA20", 4),
            ("ECDHE+AESGCM:ECDHE+CHACHA20:DHE+AESGCM:!aNULL", 0),
            ("EECDH+AESGCM", 4),
            ("ALL:!AES128:@STRENGTH", 4),
            ("ECDHE-RSA-AES256-GCM-SHA384,ECDHE-RSA-AES128-GCM-SHA256", 2),
            ("!ECDHE-RSA-AES256-GCM-SHA384:ALL", 5),
            ("AES128:-RSA:RSA", 4),
        ] {
            let offer = Offer::of("TLSv1.2", list, "");
            match count {
                0 => assert!(offer.is_err(), "{list}: DHE is asked for and not offered"),
                count => assert_eq!(offer.unwrap().provider.cipher_suites.len(), count, "{list}"),
            }
        }
        let moved = names(&Offer::of("TLSv1.2", "ECDSA:RSA:+ECDSA", "").unwrap());
        assert!(moved[0].contains("_RSA_") && moved[5].contains("_ECDSA_"), "{moved:?}");
    }

    #[test]
    fn unknown_words_are_named() {
        for (settings, expected) in [
            (
                ("TLSv1.1", "", ""),
                "tls-protocols: TLSv1.1 is not offered, since it is broken: give TLSv1.2, TLSv1.3 or both",
            ),
            (("SSLv3", "", ""), "tls-protocols: 'SSLv3' is not a protocol: give TLSv1.2, TLSv1.3 or both"),
            (("", "AES128-SHA", ""), "tls-ciphers: 'AES128-SHA' is not offered"),
            (("", "aNULL", ""), "tls-ciphers: 'aNULL' is not offered"),
            (("", "ALL:!ALL", ""), "tls-ciphers: 'ALL:!ALL' leaves no cipher"),
            (("", "", "TLS_AES_128_CCM_SHA256"), "tls-ciphersuites: 'TLS_AES_128_CCM_SHA256' is not offered"),
        ] {
            let error = Offer::of(settings.0, settings.1, settings.2).err().unwrap().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
