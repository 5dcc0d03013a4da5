//! Logging in, and what guessing a password costs.
//!
//! - Hashes of passwords are compared, in a time that does not depend on where they differ. For an unknown user the
//!   password is hashed as well.
//! - Failures are counted per source: an IPv4 address, an IPv6 /64, or the socket file. After a few, each attempt from
//!   there is answered only after a delay, which grows up to a second. The right password is delayed like a wrong one:
//!   a guesser that does not wait for the answer learns nothing, and no client at the same address is locked out.
//! - Argon2id hashes are checked on threads of their own, and right passwords are remembered ([`verified`]).
//! - The delay is a moment in the session ([`Session::held_until`](crate::Session::held_until)) until which the
//!   connection's replies are kept; no thread waits.

mod tokens;
mod verified;

pub use tokens::{TOKEN_BYTES_MAX, TOKEN_BYTES_MIN, TOKENS_MAX, Token, TokenError, Tokens};
pub use verified::Verification;

use crate::Args;
use crate::acl::{Hash, Hashing, Kept, Log, User, Users};
use crate::audit::Audit;
use crate::clients::Address;
use base::UnixMs;
use base::rate::OncePerSecond;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use subtle::Choice;
use verified::Verified;
use zeroize::Zeroizing;

/// Longest value of `requirepass`.
pub const PASSWORD_BYTES_MAX: usize = 512;

/// Failures of a source that cost no delay.
const FREE_FAILURES: u32 = 5;

/// The first delay; each further failure doubles it.
const DELAY_MIN_MS: i64 = 20;

/// The longest delay.
const DELAY_MAX_MS: i64 = 1000;

/// A source's failures are forgotten when it has had none for this long.
const FORGET_MS: i64 = 60_000;

/// Sources remembered. Beyond that the one that failed longest ago is forgotten.
const SOURCES_MAX: usize = 4096;

/// The error for a wrong password and for an unknown user, which a client cannot distinguish.
pub const WRONG_PASSWORD: &str = "WRONGPASS invalid username-password pair or user is disabled.";

/// A password that is longer than [`PASSWORD_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a password has at most {PASSWORD_BYTES_MAX} bytes")]
pub struct PasswordTooLong;

/// What came of an attempt to log in.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The user, if name and password were right.
    pub user: Option<Arc<User>>,
    /// How long the answer has to be kept back.
    pub delay_ms: i64,
}

/// The users, and the failures of logins so far: a part of the [`Host`](crate::Host).
#[derive(Default)]
pub struct Login {
    /// All users.
    pub users: Users,
    /// What users were denied of late.
    pub log: Log,
    /// The audit log.
    pub audit: Audit,
    /// What logs in over HTTP without a name.
    pub tokens: Tokens,
    failures: Mutex<HashMap<Source, Failures>>,
    verified: Arc<Verified>,
    /// Lines of the log about refused attempts.
    refusals: OncePerSecond,
}

/// What a first look at a password has found.
pub(crate) enum Checked {
    /// The user, if the password is right.
    Done(Option<Arc<User>>),
    /// It takes a slow hash to know.
    Slow(Verification),
}

/// Where attempts come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Source {
    /// An IPv4 address, or the network of an IPv6 address: the owner of one address of a /64 has all of them.
    Ip(IpAddr),
    /// This machine.
    Unix,
}

impl Source {
    fn of(address: &Address) -> Self {
        match address {
            Address::Unix(_) => Self::Unix,
            Address::Tcp(address) => Self::Ip(match address.ip().to_canonical() {
                IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & (!0 << 64))),
                ip => ip,
            }),
        }
    }
}

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    last_at: UnixMs,
}

impl Failures {
    fn delay_ms(&self) -> i64 {
        match self.count.checked_sub(FREE_FAILURES) {
            None => 0,
            Some(further) => DELAY_MIN_MS.saturating_mul(1 << further.min(16)).min(DELAY_MAX_MS),
        }
    }

    fn is_forgotten(&self, now: UnixMs) -> bool {
        now.saturating_sub(self.last_at) >= FORGET_MS
    }
}

impl Login {
    /// Sets `requirepass`, the password of the user `default`; `None` or an empty one lets everybody in. Connections
    /// that are logged in stay so.
    ///
    /// # Errors
    /// [`PasswordTooLong`]; the old one stays.
    pub fn set_password(&self, password: Option<&[u8]>) -> Result<(), PasswordTooLong> {
        let password = password.filter(|password| !password.is_empty());
        if password.is_some_and(|password| password.len() > PASSWORD_BYTES_MAX) {
            return Err(PasswordTooLong);
        }
        self.users.change_default(|rules| rules.set_password(password));
        Ok(())
    }

    /// Whether a login is needed to run commands.
    pub fn needs_password(&self) -> bool {
        !self.users.default_user().rules().is_open()
    }

    /// Checks a user and password from this address, with slow hashes on this thread. The caller notes a refusal in
    /// [`Self::log`].
    pub fn attempt(&self, user: &[u8], password: &[u8], from: &Address, now: UnixMs) -> Attempt {
        let found = match self.check(user, password) {
            Checked::Done(found) => found,
            Checked::Slow(slow) => {
                let user = slow.user.clone();
                slow.run().and(user)
            }
        };
        self.conclude(found, from, now)
    }

    /// Checks a token from this address. The caller notes a refusal in [`Self::log`].
    pub fn attempt_by_token(&self, token: &[u8], from: &Address, now: UnixMs) -> Attempt {
        let user = self.tokens.user(token).and_then(|name| self.enabled(&name));
        self.conclude(user, from, now)
    }

    /// The user of this name, if there is one and it may log in.
    pub fn enabled(&self, name: &[u8]) -> Option<Arc<User>> {
        self.users.find(name).filter(|user| user.rules().is_enabled)
    }

    /// Checks what is fast to check. An unknown user takes as long as a known one: its password is hashed as well, and
    /// slowly if new passwords are.
    pub(crate) fn check(&self, name: &[u8], password: &[u8]) -> Checked {
        let user = self.users.find(name);
        let rules = user.as_ref().map(|user| user.rules()).filter(|rules| rules.is_enabled);
        let user = user.filter(|_| rules.is_some());
        let hash = Hash::of(password);
        let (mut slow, mut is_known) = (Vec::new(), Choice::from(0));
        for kept in rules.iter().flat_map(|rules| rules.passwords()) {
            match kept {
                Kept::Fast(known) => is_known |= known.is(&hash),
                Kept::Slow(known) => slow.push(known.clone()),
            }
        }
        let needs_none = rules.is_some_and(|rules| rules.needs_no_password);
        if bool::from(is_known) || needs_none || slow.iter().any(|hash| self.verified.has(name, hash, password)) {
            return Checked::Done(user);
        }
        if slow.is_empty() && self.users.defaults().hashing == Hashing::Sha256 {
            return Checked::Done(None);
        }
        let (verified, password) = (self.verified.clone(), Zeroizing::new(password.to_vec()));
        Checked::Slow(Verification { verified, user, hashes: slow, password })
    }

    /// Counts an attempt, and gives its delay.
    pub(crate) fn conclude(&self, user: Option<Arc<User>>, from: &Address, now: UnixMs) -> Attempt {
        if user.is_none()
            && let Some(others) = self.refusals.pass(now)
        {
            tracing::warn!("login refused: client {from} ({others} others refused since the last such line)");
        }
        let delay_ms = self.count(Source::of(from), user.is_some(), now);
        Attempt { user, delay_ms }
    }

    /// Counts the attempt and gives its delay.
    fn count(&self, source: Source, accepted: bool, now: UnixMs) -> i64 {
        let mut failures = self.failures.lock();
        let before = failures.get(&source).filter(|earlier| !earlier.is_forgotten(now)).copied();
        let delay_ms = before.map_or(0, |earlier| earlier.delay_ms());
        if accepted {
            failures.remove(&source);
            return delay_ms;
        }
        if before.is_none() && failures.len() >= SOURCES_MAX {
            failures.retain(|_, earlier| !earlier.is_forgotten(now));
            let oldest = failures.iter().min_by_key(|(_, earlier)| earlier.last_at).map(|(source, _)| *source);
            if let Some(oldest) = oldest.filter(|_| failures.len() >= SOURCES_MAX) {
                failures.remove(&oldest);
            }
        }
        let count = before.map_or(0, |earlier| earlier.count).saturating_add(1);
        failures.insert(source, Failures { count, last_at: now });
        delay_ms
    }
}

/// What stands in the place of a secret.
pub const REDACTED: &[u8] = b"(redacted)";

/// Settings whose values are secrets.
const SECRET_SETTINGS: [&str; 8] = [
    "requirepass",
    "masterauth",
    "primaryauth",
    "masteruser",
    "primaryuser",
    "tls-key-file-pass",
    "tls-client-key-file-pass",
    "user",
];

/// Whether the value of a setting is a secret.
pub fn is_secret_setting(name: &[u8]) -> bool {
    SECRET_SETTINGS.iter().any(|secret| name.eq_ignore_ascii_case(secret.as_bytes()))
}

/// The arguments of a request as the slow log, MONITOR and logs may show them: passwords replaced by [`REDACTED`].
pub fn redacted<'a>(args: &Args<'a>) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let args = *args;
    let mut hide = 0usize;
    (0..args.len()).map(move |index| {
        let bytes = args.bytes(index).unwrap_or_default();
        if hide > 0 {
            hide = hide.saturating_sub(1);
            return REDACTED;
        }
        hide = secrets_after(&args, index);
        bytes
    })
}

/// How many arguments after this one are secret.
fn secrets_after(args: &Args<'_>, index: usize) -> usize {
    let is = |index: usize, word: &str| args[index].eq_ignore_ascii_case(word.as_bytes());
    // After HELLO's AUTH nothing is shown: a client whose name is "auth" must not shift what is hidden.
    if (index == 0 && is(0, "auth")) || (index >= 2 && is(0, "hello") && is(index, "auth")) {
        return usize::MAX;
    }
    if is(0, "config") && is(1, "set") && index >= 2 && index.is_multiple_of(2) && is_secret_setting(&args[index]) {
        return 1;
    }
    if is(0, "acl") && is(1, "setuser") && index == 2 {
        return usize::MAX;
    }
    if is(0, "migrate") && index >= 6 {
        return if is(index, "auth2") { 2 } else { usize::from(is(index, "auth")) };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::Span;

    fn tcp(ip: &str) -> Address {
        Address::Tcp((ip.parse::<IpAddr>().unwrap(), 1000).into())
    }

    fn accepted(login: &Login, user: &str, password: &str) -> bool {
        login.attempt(user.as_bytes(), password.as_bytes(), &tcp("10.0.0.1"), 0).user.is_some()
    }

    #[test]
    fn only_the_password_itself_is_right() {
        let login = Login::default();
        login.set_password(Some(b"secret")).unwrap();
        assert!(login.needs_password());
        assert!(accepted(&login, "default", "secret"));
        for (user, password) in
            [("default", "secreT"), ("default", "secret\0"), ("default", ""), ("other", "secret"), ("", "secret")]
        {
            assert!(!accepted(&login, user, password), "{user} {password:?}");
        }
        login.set_password(Some(b"new")).unwrap();
        assert!(!accepted(&login, "default", "secret"));
        assert!(accepted(&login, "default", "new"));
    }

    #[test]
    fn without_a_password_the_default_user_needs_none() {
        let login = Login::default();
        assert!(accepted(&login, "default", "anything"));
        assert!(!accepted(&login, "other", "anything"));
        login.set_password(Some(b"x")).unwrap();
        login.set_password(Some(b"")).unwrap();
        assert!(!login.needs_password());
    }

    #[test]
    fn passwords_up_to_the_limit_work_and_longer_ones_never_match() {
        let login = Login::default();
        let longest = "x".repeat(PASSWORD_BYTES_MAX);
        login.set_password(Some(longest.as_bytes())).unwrap();
        assert!(accepted(&login, "default", &longest));
        assert!(!accepted(&login, "default", &format!("{longest}x")), "cut to the same bytes, but longer");
        assert_eq!(login.set_password(Some(format!("{longest}x").as_bytes())), Err(PasswordTooLong));
        assert!(accepted(&login, "default", &longest), "the old one stays");
    }

    #[test]
    fn delays_grow_after_five_failures_and_end_with_success_or_time() {
        let login = Login::default();
        login.set_password(Some(b"secret")).unwrap();
        let here = tcp("10.0.0.1");
        let delay = |password: &[u8], from: &Address, now| login.attempt(b"default", password, from, now).delay_ms;
        let delays: Vec<_> = (0..14).map(|_| delay(b"wrong", &here, 0)).collect();
        assert_eq!(delays, [0, 0, 0, 0, 0, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000]);
        assert_eq!(delay(b"wrong", &tcp("10.0.0.2"), 0), 0, "another source");
        assert_eq!(delay(b"secret", &here, 1), 1000, "the right one is delayed alike");
        assert_eq!(delay(b"wrong", &here, 2), 0, "and ends it");
        (0..20).for_each(|_| assert!(delay(b"wrong", &here, 3) <= DELAY_MAX_MS));
        assert_eq!(delay(b"wrong", &here, 3 + FORGET_MS), 0);
    }

    #[test]
    fn a_token_is_the_login_of_its_user_while_that_is_enabled() {
        let (login, here) = (Login::default(), tcp("10.0.0.1"));
        login.tokens.put(Token::parse_all(b"default token-of-default\nnobody token-of-nobody-").unwrap());
        let by = |token: &[u8]| login.attempt_by_token(token, &here, 0).user.is_some();
        assert!(by(b"token-of-default"));
        assert!(!by(b"token-of-nobody-"), "there is no such user");
        login.users.change_default(|rules| rules.is_enabled = false);
        assert!(!by(b"token-of-default"));
        let delays: Vec<_> = (0..5).map(|_| login.attempt_by_token(b"wrong", &here, 0).delay_ms).collect();
        assert_eq!(delays, [0, 0, 0, 20, 40], "failures of tokens and passwords are counted together");
    }

    #[test]
    fn ipv6_sources_are_networks() {
        assert_eq!(Source::of(&tcp("2001:db8::1")), Source::of(&tcp("2001:db8::ffff:1")));
        assert_ne!(Source::of(&tcp("2001:db8:0:1::1")), Source::of(&tcp("2001:db8::1")));
        assert_eq!(Source::of(&tcp("::ffff:10.0.0.1")), Source::of(&tcp("10.0.0.1")));
    }

    #[test]
    fn the_memory_of_failures_is_bounded() {
        let login = Login::default();
        login.set_password(Some(b"secret")).unwrap();
        for number in 0..SOURCES_MAX as u32 + 100 {
            let ip = IpAddr::V4(std::net::Ipv4Addr::from_bits(number));
            login.attempt(b"default", b"wrong", &Address::Tcp((ip, 1).into()), i64::from(number));
        }
        let failures = login.failures.lock();
        assert_eq!(failures.len(), SOURCES_MAX);
        assert!(!failures.contains_key(&Source::of(&tcp("0.0.0.0"))), "the oldest went");
    }

    fn shown(line: &str) -> String {
        let (mut input, mut spans) = (Vec::new(), Vec::new());
        for word in line.split(' ') {
            spans.push(Span::new(input.len(), word.len()).unwrap());
            input.extend_from_slice(word.as_bytes());
        }
        let words: Vec<_> = redacted(&Args::new(&input, &spans, &[])).collect();
        String::from_utf8(words.join(&b' ')).unwrap()
    }

    #[test]
    fn secrets_are_not_shown() {
        for (request, expected) in [
            ("auth x", "auth (redacted)"),
            ("AUTH default x", "AUTH (redacted) (redacted)"),
            ("hello 3 AUTH default x SETNAME n", "hello 3 AUTH (redacted) (redacted) (redacted) (redacted)"),
            ("hello 3 setname auth auth u p", "hello 3 setname auth (redacted) (redacted) (redacted)"),
            ("config set maxmemory 1 requirePass x", "config set maxmemory 1 requirePass (redacted)"),
            ("config get requirepass", "config get requirepass"),
            ("migrate h 1 k 0 10 auth x keys a", "migrate h 1 k 0 10 auth (redacted) keys a"),
            ("migrate h 1 k 0 10 auth2 u x", "migrate h 1 k 0 10 auth2 (redacted) (redacted)"),
            ("acl setuser joe >x", "acl setuser joe (redacted)"),
            ("set auth x", "set auth x"),
        ] {
            assert_eq!(shown(request), expected);
        }
    }
}
