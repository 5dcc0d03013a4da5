//! The limit of open descriptors, which has to be above the number of clients.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors other than those of clients: listeners, event queues, log.
const RESERVED: u64 = 64;

/// Raises the limit of open descriptors to what this many clients need.
///
/// # Errors
/// How many clients there may be, when the system does not allow enough; the limit is then as high as it allows.
pub fn raise_limit(clients: u32) -> Result<(), u32> {
    let needed = u64::from(clients) + RESERVED;
    let now = getrlimit(Resource::Nofile);
    if now.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    // A process may raise its limit to the maximum, and a privileged one the maximum too.
    let maximum = now.maximum.map_or(needed, |maximum| maximum.max(needed));
    let attempts = [
        Rlimit { current: Some(needed), maximum: Some(maximum) },
        Rlimit { current: now.maximum.map(|maximum| maximum.min(needed)).or(Some(needed)), maximum: now.maximum },
    ];
    attempts.into_iter().find(|limit| setrlimit(Resource::Nofile, *limit).is_ok());
    match getrlimit(Resource::Nofile).current {
        Some(current) if current < needed => Err(u32::try_from(current.saturating_sub(RESERVED)).unwrap_or(u32::MAX)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_enough() {
        let current = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let clients = u32::try_from(current - RESERVED).unwrap_or(u32::MAX);
        assert_eq!(raise_limit(clients.min(1000)), Ok(()));
        assert_eq!(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX), current, "never lowered");
    }
}
