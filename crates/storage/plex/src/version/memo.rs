//! What a policy keeps of a tree between its choices.
//!
//! A version and those made from it share one memo, so what a policy worked out for one version serves the next. It is
//! never more than a way to save work: the policy checks what of it still holds.

use std::any::Any;
use std::sync::Arc;

use parking_lot::Mutex;

/// See the module. A clone shares it.
#[derive(Clone, Default)]
pub(crate) struct Memo(Arc<Mutex<Option<Box<dyn Any + Send>>>>);

impl std::fmt::Debug for Memo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Memo")
    }
}

impl Memo {
    /// Calls `work` with what is kept, or with the default if that is nothing or of another type.
    pub fn with<T: Any + Send + Default, R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let mut kept = self.0.lock();
        if let Some(kept) = kept.as_mut().and_then(|kept| kept.downcast_mut()) {
            return work(kept);
        }
        let mut new = T::default();
        let result = work(&mut new);
        *kept = Some(Box::new(new));
        result
    }
}
