//! Tokens that programs show over HTTP in place of a name and a password. They are made by a machine and long, so their
//! hashes are fast and only the hashes are kept.
//!
//! ```text
//! # USER TOKEN, or USER and # with the SHA-256 hash of the token
//! prometheus mF_9.B5f-4.1JqM-7d1c
//! grafana    #9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//! ```

use crate::acl::Hash;
use parking_lot::RwLock;
use std::sync::Arc;

/// Fewest bytes of a token: with the digits of base64 they have 96 bits.
pub const TOKEN_BYTES_MIN: usize = 16;

/// Most bytes of a token.
pub const TOKEN_BYTES_MAX: usize = 512;

/// Most tokens. A login compares all of them.
pub const TOKENS_MAX: usize = 1000;

/// A line that is no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {number}: {why}")]
pub struct TokenError {
    /// The line, from 1.
    pub number: usize,
    /// What is wrong with it, and what to write.
    pub why: String,
}

/// A token, and whose login it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The name of the user.
    pub user: Vec<u8>,
    hash: Hash,
}

impl Token {
    /// The tokens of a file.
    ///
    /// # Errors
    /// The first line that is no token. No text of it is shown, since it may be a secret.
    pub fn parse_all(text: &[u8]) -> Result<Vec<Self>, TokenError> {
        let mut found = Vec::new();
        for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
            let words: Vec<_> = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
            if words.first().is_none_or(|word| word.starts_with(b"#")) {
                continue;
            }
            let refused = |why: String| TokenError { number, why };
            let [user, token] = words[..] else {
                return Err(refused(format!("it has {} words: write USER TOKEN", words.len())));
            };
            if found.len() >= TOKENS_MAX {
                return Err(refused(format!("there are at most {TOKENS_MAX} tokens")));
            }
            let hash = hash(token).map_err(refused)?;
            if found.iter().any(|other: &Self| bool::from(other.hash.is(&hash))) {
                return Err(refused("this token is given above: give each user one of its own".to_owned()));
            }
            found.push(Self { user: user.to_vec(), hash });
        }
        Ok(found)
    }
}

fn hash(token: &[u8]) -> Result<Hash, String> {
    if let Some(digits) = token.strip_prefix(b"#") {
        let why = "after # comes the SHA-256 hash of a token, 64 digits 0-9a-f: make it by printf %s TOKEN | sha256sum";
        return Hash::parse(digits).ok_or_else(|| why.to_owned());
    }
    if !(TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&token.len()) {
        return Err(format!(
            "the token has {} characters, and has to have {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX}: make one by openssl \
             rand -hex 32",
            token.len()
        ));
    }
    // RFC 6750 allows these in a header.
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(byte);
    match token.iter().all(is_allowed) {
        true => Ok(Hash::of(token)),
        false => {
            Err("the token has other characters than A-Z a-z 0-9 - . _ ~ + / =: make one by openssl rand -hex 32"
                .into())
        }
    }
}

/// The tokens in force. None at first.
#[derive(Default)]
pub struct Tokens(RwLock<Arc<[Token]>>);

impl Tokens {
    /// Puts tokens into force, in place of all others. Whether these are not the same.
    pub fn put(&self, tokens: Vec<Token>) -> bool {
        let mut current = self.0.write();
        let has_changed = **current != *tokens;
        *current = tokens.into();
        has_changed
    }

    /// Whether this is one of them.
    pub fn has(&self, token: &[u8]) -> bool {
        self.user(token).is_some()
    }

    /// The user of a token, in a time that does not depend on where it differs from those that are known.
    pub(super) fn user(&self, token: &[u8]) -> Option<Vec<u8>> {
        let hash = Hash::of(token);
        let tokens = self.0.read().clone();
        let mut found = None;
        for token in &*tokens {
            if bool::from(token.hash.is(&hash)) {
                found = Some(&token.user);
            }
        }
        found.cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_tokens_and_comments() {
        let kept = Hash::of(b"another-long-token");
        let text = b"# comment\r\n\r\n  scraper\tmF_9.B5f-4.1JqM-7d1c \r\n#scraper 0123456789abcdef0123\n\
            grafana #d2be0f1a5cbf0a4a7f9a5d2c4c0d6a86fb1a5b4c3d2e1f00112233445566778f";
        let found = Token::parse_all(text).unwrap();
        assert_eq!(found.iter().map(|token| &*token.user).collect::<Vec<_>>(), [&b"scraper"[..], b"grafana"]);
        assert!(Token::parse_all(b"").unwrap().is_empty());
        let tokens = Tokens::default();
        assert_eq!(tokens.user(b"mF_9.B5f-4.1JqM-7d1c"), None);
        let all = [found, vec![Token { user: b"last".to_vec(), hash: kept }]].concat();
        assert!(tokens.put(all.clone()) && !tokens.put(all));
        assert_eq!(tokens.user(b"mF_9.B5f-4.1JqM-7d1c").as_deref(), Some(&b"scraper"[..]));
        assert_eq!(tokens.user(b"another-long-token").as_deref(), Some(&b"last"[..]));
        for wrong in ["", "mF_9.B5f-4.1JqM-7d1", "mF_9.B5f-4.1JqM-7d1c ", "scraper"] {
            assert_eq!(tokens.user(wrong.as_bytes()), None, "{wrong:?}");
        }
        assert!(tokens.put(Vec::new()));
        assert_eq!(tokens.user(b"another-long-token"), None);
    }

    #[test]
    fn what_is_wrong_is_said_without_the_secret() {
        let many = (0..=TOKENS_MAX).map(|number| format!("u token-{number:020}\n")).collect::<String>();
        for (text, expected) in [
            ("\nscraper", "line 2: it has 1 words: write USER TOKEN"),
            ("scraper mF_9.B5f-4.1JqM-7d1c x", "line 1: it has 3 words: write USER TOKEN"),
            ("scraper secret", "line 1: the token has 6 characters, and has to have 16 to 512: make one by openssl"),
            ("scraper secret-secret-secret\"", "line 1: the token has other characters than"),
            ("scraper #secret", "line 1: after # comes the SHA-256 hash"),
            ("a secret-secret-secret\nb secret-secret-secret", "line 2: this token is given above"),
            (&format!("a {}", "x".repeat(513)), "line 1: the token has 513 characters"),
            (&many, "line 1001: there are at most 1000 tokens"),
        ] {
            let error = Token::parse_all(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
        // Bytes that are no text.
        assert!(
            Token::parse_all(b"\xff\xfe \xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff").is_err()
        );
    }
}
