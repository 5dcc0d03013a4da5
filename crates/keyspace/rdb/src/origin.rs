//! The program that wrote an RDB file, according to its first bytes.

/// Number of bytes of a file that suffice for [`origin`].
pub const HEAD_BYTES: usize = 1024;

/// The aux field with the server's version, and the server's name.
const SERVERS: [(&[u8], &str); 3] = [(b"onggi-ver", "Onggi"), (b"valkey-ver", "Valkey"), (b"redis-ver", "Redis")];

/// The writer of an RDB file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Its name; `None` if the file has no such field.
    pub server: Option<&'static str>,
    /// Its version; may be empty.
    pub version: String,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.server {
            Some(server) => write!(f, "{server} {}", self.version),
            None => f.write_str("RDB file"),
        }
    }
}

/// The writer of the file that begins with these bytes; `None` if it is not an RDB file.
pub fn origin(head: &[u8]) -> Option<Origin> {
    let rest = head.strip_prefix(b"REDIS").or_else(|| head.strip_prefix(b"VALKEY"))?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut rest = rest.get(digits..)?;
    let mut found = None;
    while let Some((name, value, after)) = remark(rest) {
        found = found.or_else(|| {
            let (_, server) = SERVERS.iter().find(|(known, _)| *known == name)?;
            Some(Origin { server: Some(server), version: String::from_utf8_lossy(value).into_owned() })
        });
        rest = after;
    }
    Some(found.unwrap_or(Origin { server: None, version: String::new() }))
}

/// An aux field at the beginning of the bytes, and the rest. None of the fields of interest is long or a number.
fn remark(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (name, rest) = short_string(bytes.strip_prefix(&[crate::format::opcode::AUX])?)?;
    let (value, rest) = short_string(rest)?;
    Some((name, value, rest))
}

/// A string of up to 63 bytes, or of a number, returned as its raw bytes.
fn short_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let length = match first {
        0..64 => usize::from(*first),
        0xC0 => 1,
        0xC1 => 2,
        0xC2 => 4,
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_names_server_and_version() {
        let name = |head: &[u8]| origin(head).map(|found| found.to_string());
        let redis = b"REDIS0011\xFA\x09redis-ver\x067.0.15\xFA\x0Aredis-bits\xC0\x40\xFE\x00";
        assert_eq!(name(redis).as_deref(), Some("Redis 7.0.15"));
        assert_eq!(
            name(b"VALKEY080\xFA\x0Aredis-bits\xC0\x40\xFA\x0Avalkey-ver\x059.1.0").as_deref(),
            Some("Valkey 9.1.0")
        );
        assert_eq!(name(b"REDIS0011\xFA\x09onggi-ver\x050.1.0\xFE\x00").as_deref(), Some("Onggi 0.1.0"));
        assert_eq!(name(b"REDIS0006\xFE\x00").as_deref(), Some("RDB file"));
        assert_eq!(name(b"REDIS0011\xFA\x09redis-v").as_deref(), Some("RDB file"), "cut short");
        assert_eq!((name(b""), name(b"*2\r\n$6\r\nSELECT")), (None, None));
    }
}
