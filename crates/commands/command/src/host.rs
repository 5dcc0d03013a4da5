//! The parts of the server that commands about the server need: settings, figures, clients, users, channels and the
//! like. With the table of all commands they are the [`Host`](crate::Host).
//!
//! Those of this crate and of the ones below are fields, so that none can be missing. Upper crates add parts (and
//! rows) of theirs without this crate knowing them; each is a type of its own.
//!
//! H1. The rows of a crate get only parts that its list names, since no others compile ([`PartOf`]). A server is
//!     assembled only if it has the parts of all lists ([`Needs::lacking`]).

use crate::about::About;
use crate::clients::Clients;
use crate::configuration::Configuration;
use crate::figures::Figures;
use crate::limits::{SparseLimit, StampMeaning, StringLimit};
use crate::login::Login;
use crate::observer::Observer;
use crate::pause::Pause;
use crate::watchers::Watchers;
use crate::work::remote::Migrator;
use config::Settings;
use push::{PubSub, Tracking};
use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// Hashes the ids of types, which are hashes themselves.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        // Ids of a compiler that gives them in another form; slower, and as good.
        bytes.iter().for_each(|byte| self.0 = self.0.wrapping_mul(0x100_0000_01B3) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = id;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Parts of upper crates, by type.
type Above = HashMap<TypeId, Box<dyn Any + Send + Sync>, BuildHasherDefault<IdHasher>>;

/// The parts. Assembled once at startup, then only read.
pub struct Parts {
    /// The identity of the server.
    pub about: About,
    /// The settings in force.
    pub configuration: Configuration,
    /// The totals of all workers.
    pub figures: Arc<Figures>,
    /// All connections.
    pub clients: Clients,
    /// Users and their logins.
    pub login: Login,
    /// The pause in force.
    pub pause: Pause,
    /// Channels and who listens.
    pub pubsub: Arc<PubSub>,
    /// Keys that clients have in caches of their own.
    pub tracking: Arc<Tracking>,
    /// How long a string may become.
    pub string_limit: StringLimit,
    /// How long a sparse HyperLogLog may become.
    pub sparse_limit: SparseLimit,
    /// What access stamps mean.
    pub stamp_meaning: StampMeaning,
    /// Sees calls that are done, if anything does.
    pub observer: Option<Arc<dyn Observer>>,
    /// The connections of MONITOR, if there are workers.
    pub watchers: Option<Arc<Watchers>>,
    /// Sends keys to other servers, if it has threads for it.
    pub migrator: Option<Arc<dyn Migrator>>,
    above: Above,
}

impl Parts {
    /// The parts of a server with this identity, commands of these full names, these figures, and these channels and
    /// tracked keys. All else is as in one that has default settings and no client yet.
    pub(crate) fn new<'n>(
        about: About,
        commands: impl Iterator<Item = &'n str>,
        figures: Arc<Figures>,
        (pubsub, tracking): (Arc<PubSub>, Arc<Tracking>),
    ) -> Self {
        Self {
            about,
            configuration: Configuration::new(Settings::default(), Box::new(())),
            figures,
            clients: Clients::new(commands),
            login: Login::default(),
            pause: Pause::default(),
            pubsub,
            tracking,
            string_limit: StringLimit::default(),
            sparse_limit: SparseLimit::default(),
            stamp_meaning: StampMeaning::default(),
            observer: None,
            watchers: None,
            migrator: None,
            above: Above::default(),
        }
    }

    /// Adds a part of an upper crate, replacing one of the same type.
    pub(crate) fn add<T: Send + Sync + 'static>(&mut self, part: T) {
        self.above.insert(TypeId::of::<T>(), Box::new(part));
    }

    /// The part of this type, which is on the list of the crate `C`.
    ///
    /// # Panics
    /// In a host of which [`Needs::lacking`] of the list gives this part: no such server is assembled (H1).
    pub fn part<C: Needs, T: PartOf<C>>(&self) -> &T {
        self.find().unwrap_or_else(|| panic!("no part {} in this server", type_name::<T>()))
    }

    /// The part of this type, if this server has one.
    pub fn find<T: 'static>(&self) -> Option<&T> {
        self.above.get(&TypeId::of::<T>()).and_then(|part| part.downcast_ref())
    }
}

/// The list of parts that the rows of a crate ask for. [`crate::needs`] makes one.
pub trait Needs {
    /// The first part of the list that is missing.
    fn lacking(parts: &Parts) -> Option<&'static str>;
}

/// A part on the list of the crate `C`.
pub trait PartOf<C>: Send + Sync + 'static {}

/// Declares the parts that the rows of a crate ask for.
///
/// ```
/// # use std::sync::Arc;
/// command::needs! {
///     /// What these rows ask for.
///     pub Needed: Arc<str>, Arc<[u8]>,
/// }
/// # use command::{Host, host::Needs};
/// # let table = Arc::new(command::CommandTable::new(&[]));
/// let host = Host::alone(table).with(Arc::<str>::from("a part"));
/// assert_eq!(Needed::lacking(&host), Some("alloc::sync::Arc<[u8]>"));
/// ```
#[macro_export]
macro_rules! needs {
    ($(#[$doc:meta])* $shown:vis $name:ident: $($part:ty),+ $(,)?) => {
        $(#[$doc])*
        $shown struct $name;
        $(impl $crate::host::PartOf<$name> for $part {})+
        impl $crate::host::Needs for $name {
            fn lacking(parts: &$crate::host::Parts) -> Option<&'static str> {
                let listed = [$((parts.find::<$part>().is_some(), ::std::any::type_name::<$part>())),+];
                listed.into_iter().find(|(is_there, _)| !is_there).map(|(_, name)| name)
            }
        }
    };
}
