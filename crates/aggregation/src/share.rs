//! How much of one server each user may have: who asks for much, or reads nothing of what was asked for, takes it from nobody else.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use parking_lot::Mutex;

/// Requests of users under way, by their names.
#[derive(Clone, Default)]
pub(crate) struct Shares(Arc<Mutex<BTreeMap<String, usize>>>);

/// One request's part, until it is dropped.
pub(crate) struct Share {
    user: String,
    of: Shares,
}

impl Shares {
    /// `None` where the user has `most` already.
    pub(crate) fn take(&self, user: &str, most: usize) -> Option<Share> {
        let mut users = self.0.lock();
        let n = users.entry(user.to_owned()).or_default();
        if *n >= most {
            return None;
        }
        *n += 1;
        Some(Share { user: user.to_owned(), of: self.clone() })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut users = self.of.0.lock();
        if let Entry::Occupied(mut at) = users.entry(std::mem::take(&mut self.user)) {
            *at.get_mut() -= 1;
            if *at.get() == 0 {
                at.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_has_a_share_and_none_is_remembered() {
        let shares = Shares::default();
        let first = shares.take("jane", 1);
        assert!(first.is_some() && shares.take("jane", 1).is_none());
        let other = shares.take("joe", 1);
        assert!(other.is_some());
        drop(first);
        assert!(shares.take("jane", 1).is_some());
        drop(other);
        assert!(shares.0.lock().is_empty());
    }
}
