//! What the server reads of a certificate for its own use: serial number, end of validity, common name, URI. Whether a
//! certificate is valid is for `rustls` to say.
//!
//! ```text
//! Certificate ::= SEQUENCE { TBSCertificate, algorithm, signature }
//! TBSCertificate ::= SEQUENCE { [0] version, serial, algorithm, issuer, validity, subject, key, ..., [3] extensions }
//! ```
//!
//! RFC 5280, section 4.1.

use crate::der::{INTEGER, OBJECT, OCTETS, Reader, SEQUENCE};

/// The attribute "common name": 2.5.4.3.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
/// The extension "subject alternative name": 2.5.29.17.
const ALTERNATIVE_NAME: [u8; 3] = [0x55, 0x1d, 0x11];

const SET: u8 = 0x31;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const URI: u8 = 0x86;

/// Facts about one certificate, as INFO shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The serial number in upper-case hexadecimal digits, as OpenSSL prints it.
    pub serial: String,
    /// The last second of its validity, since 1970.
    pub expires_at: i64,
}

/// The parts of a certificate that are read.
struct Parts<'a> {
    serial: &'a [u8],
    validity: &'a [u8],
    subject: &'a [u8],
    /// What follows the subject: the key, and then extensions.
    rest: Reader<'a>,
}

fn parts(der: &[u8]) -> Option<Parts<'_>> {
    let mut body = Reader(Reader(Reader(der).expect(SEQUENCE)?).expect(SEQUENCE)?);
    if body.0.first() == Some(&VERSION) {
        body.next()?;
    }
    let serial = body.expect(INTEGER)?;
    let (_algorithm, _issuer) = (body.next()?, body.next()?);
    let (validity, subject) = (body.expect(SEQUENCE)?, body.expect(SEQUENCE)?);
    Some(Parts { serial, validity, subject, rest: body })
}

/// Facts about a certificate; `None` when it cannot be read.
pub fn facts(der: &[u8]) -> Option<Facts> {
    let parts = parts(der)?;
    let mut validity = Reader(parts.validity);
    validity.next()?;
    let (tag, text) = validity.next()?;
    let digits = parts.serial.strip_prefix(&[0]).filter(|rest| !rest.is_empty()).unwrap_or(parts.serial);
    let serial = digits.iter().map(|byte| format!("{byte:02X}")).collect();
    Some(Facts { serial, expires_at: seconds(tag, text)? })
}

/// The common name of the subject: of several the last, the most specific one.
pub fn common_name(der: &[u8]) -> Option<String> {
    let mut names = Reader(parts(der)?.subject);
    let mut found = None;
    while let Some((SET, set)) = names.next() {
        let mut attributes = Reader(set);
        while let Some((SEQUENCE, attribute)) = attributes.next() {
            let mut attribute = Reader(attribute);
            if attribute.expect(OBJECT) == Some(&COMMON_NAME) {
                found = attribute.next().map(|(_, text)| text);
            }
        }
    }
    String::from_utf8(found?.to_vec()).ok().filter(|name| !name.contains('\0'))
}

/// The URIs among the alternative names of the subject, in their order.
pub fn uris(der: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let mut names = Reader(alternative_names(der).unwrap_or_default());
    while let Some((tag, text)) = names.next() {
        let uri = Some(text).filter(|_| tag == URI).and_then(|text| str::from_utf8(text).ok());
        found.extend(uri.filter(|uri| !uri.contains('\0')).map(str::to_owned));
    }
    found
}

/// The content of the extension with alternative names.
fn alternative_names(der: &[u8]) -> Option<&[u8]> {
    let mut rest = parts(der)?.rest;
    let extensions = loop {
        if let (EXTENSIONS, extensions) = rest.next()? {
            break extensions;
        }
    };
    let mut extensions = Reader(Reader(extensions).expect(SEQUENCE)?);
    loop {
        let mut extension = Reader(extensions.expect(SEQUENCE)?);
        if extension.expect(OBJECT)? != ALTERNATIVE_NAME {
            continue;
        }
        // Whether it is critical may stand before the content.
        while let Some((tag, content)) = extension.next() {
            if tag == OCTETS {
                return Reader(content).expect(SEQUENCE);
            }
        }
    }
}

/// The moment that a time of DER names, in seconds since 1970.
fn seconds(tag: u8, text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
    let (year, rest) = match tag {
        UTC_TIME => {
            let year = number(text.get(..2))?;
            (if year < 50 { 2000 + year } else { 1900 + year }, text.get(2..)?)
        }
        GENERALIZED_TIME => (number(text.get(..4))?, text.get(4..)?),
        _ => return None,
    };
    let part = |at: usize| number(rest.get(at..at + 2));
    let (month, day, hour, minute, second) = (part(0)?, part(2)?, part(4)?, part(6)?, part(8)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    Some(((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
}

/// Days from 1970-01-01 to a day of the Gregorian calendar. Years begin in March, so that the leap day is the last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (153 * month + 2) / 5 + day
        - 1
        - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair, SanType, SerialNumber, date_time_ymd};

    fn certificate(change: impl FnOnce(&mut CertificateParams)) -> Vec<u8> {
        let mut params = CertificateParams::default();
        change(&mut params);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn facts_are_those_of_the_certificate() {
        for (year, month, day, expected) in [
            (2030, 2, 28, 1_898_467_200),
            (2049, 12, 31, 2_524_521_600),
            (2050, 1, 1, 2_524_608_000),
            (2100, 3, 1, 4_107_542_400),
        ] {
            let der = certificate(|params| {
                params.serial_number = Some(SerialNumber::from_slice(&[0xab, 0x01, 0x00, 0xff]));
                params.not_after = date_time_ymd(year, month, day);
            });
            let facts = facts(&der).unwrap();
            assert_eq!((facts.serial.as_str(), facts.expires_at), ("AB0100FF", expected));
        }
    }

    #[test]
    fn the_common_name_is_read() {
        let named = |name: &str| certificate(|params| params.distinguished_name.push(DnType::CommonName, name));
        assert_eq!(common_name(&named("app-1")).as_deref(), Some("app-1"));
        assert_eq!(common_name(&named("rcgen\0x")), None, "a NUL byte would shorten the name for others");
        let without = certificate(|params| params.distinguished_name = rcgen::DistinguishedName::new());
        assert_eq!(common_name(&without), None);
    }

    #[test]
    fn uris_are_read_in_their_order() {
        let names = |names: &[SanType]| certificate(|params| params.subject_alt_names = names.to_vec());
        let uri = |text: &str| SanType::URI(text.try_into().unwrap());
        let dns = SanType::DnsName("localhost".try_into().unwrap());
        assert_eq!(uris(&names(&[uri("urn:a"), dns.clone(), uri("spiffe://b/c")])), ["urn:a", "spiffe://b/c"]);
        assert_eq!(uris(&names(&[dns, uri("urn:x\0y")])), Vec::<String>::new());
        assert_eq!(uris(&names(&[])), Vec::<String>::new());
    }

    /// Certificates come from strangers: any damage is read without a panic.
    #[test]
    fn damage_is_no_panic() {
        let der = certificate(|params| {
            params.distinguished_name.push(DnType::CommonName, "app");
            params.subject_alt_names = vec![SanType::URI("urn:a".try_into().unwrap())];
        });
        for at in 0..der.len() {
            let _ = (facts(&der[..at]), common_name(&der[..at]), uris(&der[..at]));
            for byte in [0, 1, 0x30, 0x7f, 0x80, 0x84, 0xff] {
                let mut damaged = der.clone();
                damaged[at] = byte;
                let _ = (facts(&damaged), common_name(&damaged), uris(&damaged));
            }
        }
    }
}
