//! The users of a server.

use super::check::{Scope, permits_channel};
use super::password::Hashing;
use super::rules::{Defaults, Rules, RulesError};
use crate::spec::Runs;
use crate::table::Table;
use base::DbIndex;
use parking_lot::{Mutex, RwLock};
use push::{Kind, Subscriptions};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The user of connections that have not named one. It always exists.
pub const DEFAULT_USER: &[u8] = b"default";

/// A user: the same for all of its connections, while its rules change.
pub struct User {
    name: Box<[u8]>,
    rules: RwLock<Arc<Rules>>,
    /// It was deleted: its connections close.
    is_gone: AtomicBool,
    /// The generation since which it may use fewer channels than before.
    revoked_at: AtomicU64,
}

impl User {
    fn new(name: &[u8], rules: Rules) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            rules: RwLock::new(Arc::new(rules)),
            is_gone: AtomicBool::new(false),
            revoked_at: AtomicU64::new(0),
        })
    }

    /// A user with every right that is in no list: for replay and tests.
    pub fn unrestricted() -> Arc<Self> {
        Self::new(DEFAULT_USER, Rules::all())
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Its rules at this moment.
    pub fn rules(&self) -> Arc<Rules> {
        self.rules.read().clone()
    }

    /// Whether it was deleted.
    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }

    /// Whether a connection that was last looked at in this generation has to close: its user is gone, or may no longer
    /// use a channel that the connection has subscribed to.
    pub fn expels(&self, seen: u64, subscriptions: Option<&Subscriptions>) -> bool {
        if self.is_gone() {
            return true;
        }
        let Some(subscriptions) = subscriptions.filter(|_| self.revoked_at.load(Ordering::Acquire) > seen) else {
            return false;
        };
        let rules = self.rules();
        let is_forbidden =
            |kind| subscriptions.names(kind).iter().any(|name| !permits_channel(&rules, name, kind == Kind::Pattern));
        Kind::ALL.into_iter().any(is_forbidden)
    }
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "User({:?})", String::from_utf8_lossy(&self.name))
    }
}

/// All users.
pub struct Users {
    all: RwLock<BTreeMap<Box<[u8]>, Arc<User>>>,
    default: Arc<User>,
    /// Held while users are changed: changes are made one after the other.
    changing: Mutex<()>,
    /// Advances after every change.
    generation: Arc<AtomicU64>,
    /// `acl-pubsub-default allchannels`
    has_all_channels: AtomicBool,
    /// `acl-password-hash argon2id`
    has_slow_hashes: AtomicBool,
    database_count: AtomicU32,
}

impl Default for Users {
    fn default() -> Self {
        let default = User::unrestricted();
        Self {
            all: RwLock::new(BTreeMap::from([(DEFAULT_USER.into(), default.clone())])),
            default,
            changing: Mutex::default(),
            generation: Arc::default(),
            has_all_channels: AtomicBool::new(false),
            has_slow_hashes: AtomicBool::new(false),
            database_count: AtomicU32::new(u32::MAX),
        }
    }
}

impl Users {
    /// The user `default`.
    pub fn default_user(&self) -> &Arc<User> {
        &self.default
    }

    /// The user of this name.
    pub fn find(&self, name: &[u8]) -> Option<Arc<User>> {
        self.all.read().get(name).cloned()
    }

    /// All users in the order of their names.
    pub fn all(&self) -> Vec<Arc<User>> {
        self.all.read().values().cloned().collect()
    }

    /// Advances after every change of a user. Workers hold it and compare it before each batch.
    pub fn generation(&self) -> Arc<AtomicU64> {
        self.generation.clone()
    }

    /// Sets `acl-pubsub-default`: whether users begin with all channels.
    pub fn set_default_channels(&self, are_all: bool) {
        self.has_all_channels.store(are_all, Ordering::Relaxed);
    }

    /// Sets `databases`.
    pub fn set_database_count(&self, count: u32) {
        self.database_count.store(count, Ordering::Relaxed);
    }

    /// Where a request runs that has selected this database.
    pub fn scope(&self, db: DbIndex) -> Scope {
        Scope { db, database_count: self.database_count.load(Ordering::Relaxed) }
    }

    /// Sets `acl-password-hash`, for new passwords.
    pub fn set_hashing(&self, hashing: Hashing) {
        self.has_slow_hashes.store(hashing == Hashing::Argon2id, Ordering::Relaxed);
    }

    /// What new users and passwords are like.
    pub fn defaults(&self) -> Defaults {
        let hashing = match self.has_slow_hashes.load(Ordering::Relaxed) {
            true => Hashing::Argon2id,
            false => Hashing::Sha256,
        };
        Defaults { has_all_channels: self.has_all_channels.load(Ordering::Relaxed), hashing }
    }

    /// The rules of a user before a change: those of a new one if there is none of this name.
    pub fn before(&self, name: &[u8]) -> (Option<Arc<User>>, Arc<Rules>) {
        let user = self.find(name);
        let new = || Arc::new(Rules::new(self.defaults().has_all_channels));
        let rules = user.as_ref().map_or_else(new, |user| user.rules());
        (user, rules)
    }

    /// Creates or changes a user: all rules, or none of them when one is wrong.
    ///
    /// # Errors
    /// The first rule that cannot be applied.
    pub fn set(&self, name: &[u8], rules: &[impl AsRef<[u8]>], table: &Table<impl Runs>) -> Result<(), RulesError> {
        let _changing = self.changing.lock();
        let (user, before) = self.before(name);
        let after = before.with(rules, table, self.defaults())?;
        self.put(name, user, after);
        Ok(())
    }

    /// Gives a user the rules that were made of those before, [`Self::before`]. False if it has others by now.
    pub fn set_made(&self, name: &[u8], before: &(Option<Arc<User>>, Arc<Rules>), after: Rules) -> bool {
        let _changing = self.changing.lock();
        let user = self.find(name);
        let is_same = match (&user, &before.0) {
            (None, None) => true,
            (Some(now), Some(then)) => Arc::ptr_eq(now, then) && Arc::ptr_eq(&now.rules(), &before.1),
            _ => false,
        };
        if is_same {
            self.put(name, user, after);
        }
        is_same
    }

    fn put(&self, name: &[u8], user: Option<Arc<User>>, rules: Rules) {
        match user {
            Some(user) => self.replace(&user, rules),
            None => _ = self.all.write().insert(name.into(), User::new(name, rules)),
        }
        self.advance();
    }

    /// Changes the user `default` by code instead of rules: `requirepass`.
    pub fn change_default(&self, change: impl FnOnce(&mut Rules)) {
        let _changing = self.changing.lock();
        let mut rules = Rules::clone(&self.default.rules());
        change(&mut rules);
        self.replace(&self.default, rules);
        self.advance();
    }

    /// Deletes a user; its connections have to be closed. False when there is none of this name, and for `default`.
    pub fn delete(&self, name: &[u8]) -> bool {
        let _changing = self.changing.lock();
        if name == DEFAULT_USER {
            return false;
        }
        let Some(user) = self.all.write().remove(name) else { return false };
        user.is_gone.store(true, Ordering::Release);
        self.advance();
        true
    }

    /// Replaces all users: those of the same name get new rules, and others are deleted. Without a `default` among
    /// them, that user is as at the start.
    pub fn replace_all(&self, users: Vec<(Vec<u8>, Rules)>) {
        let _changing = self.changing.lock();
        let mut users: BTreeMap<Vec<u8>, Rules> = users.into_iter().collect();
        users.entry(DEFAULT_USER.to_vec()).or_insert_with(Rules::all);
        let before = std::mem::take(&mut *self.all.write());
        let gone = before.iter().filter(|(name, _)| !users.contains_key(&***name));
        gone.for_each(|(_, user)| user.is_gone.store(true, Ordering::Release));
        let mut after = BTreeMap::new();
        for (name, rules) in users {
            let user = match before.get(name.as_slice()) {
                Some(user) => {
                    self.replace(user, rules);
                    user.clone()
                }
                None => User::new(&name, rules),
            };
            after.insert(name.into_boxed_slice(), user);
        }
        *self.all.write() = after;
        self.advance();
    }

    /// Swaps the rules of a user, and notes when it loses channels.
    fn replace(&self, user: &User, rules: Rules) {
        let loses_channels = loses_channels(&user.rules(), &rules);
        *user.rules.write() = Arc::new(rules);
        if loses_channels {
            let next = self.generation.load(Ordering::Acquire).wrapping_add(1);
            user.revoked_at.store(next, Ordering::Release);
        }
    }

    /// Has workers look at their connections again.
    fn advance(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }
}

/// Whether a rule about channels is missing after a change. Subscriptions are then compared with the rules that are
/// left.
fn loses_channels(before: &Rules, after: &Rules) -> bool {
    if after.all_selectors().any(|selector| selector.has_all_channels) {
        return false;
    }
    let is_kept = |pattern| after.all_selectors().any(|selector| selector.channels.contains(pattern));
    before.all_selectors().any(|selector| selector.has_all_channels || !selector.channels.iter().all(is_kept))
}
