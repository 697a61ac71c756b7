//! Who wrote: the term of a leader that a request was made in, from the loop's line to the commit.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use corten_store::Revision;
use parking_lot::Mutex;

tokio::task_local! {
    static AUTHOR: Author;
}

/// A term as who leads in it knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Author {
    /// The Lease in `kube-system`.
    pub(crate) lease: &'static str,
    pub(crate) holder: Arc<str>,
    /// Of the lease, as it was written when the term began.
    pub(crate) begun: Revision,
}

impl Author {
    /// Carries out a request of it.
    pub(crate) async fn request<T>(self, request: impl Future<Output = T>) -> T {
        AUTHOR.scope(self, request).await
    }

    pub(crate) fn of_this_request() -> Option<Self> {
        AUTHOR.try_with(Clone::clone).ok()
    }
}

/// What is known of commits that nobody has judged yet.
#[derive(Clone, Default)]
pub(crate) struct Authors(Arc<Mutex<Unjudged>>);

#[derive(Default)]
struct Unjudged {
    authors: BTreeMap<Revision, Author>,
    late: BTreeSet<Revision>,
}

impl Authors {
    pub(crate) fn note(&self, revision: Revision, author: Author) {
        self.0.lock().authors.insert(revision, author);
    }

    /// Who asked for it had given up, and may have looked and done something else instead.
    pub(crate) fn note_late(&self, revision: Revision) {
        self.0.lock().late.insert(revision);
    }

    pub(crate) fn take(&self, revision: Revision) -> Option<Author> {
        self.0.lock().authors.remove(&revision)
    }

    pub(crate) fn take_late(&self, revision: Revision) -> bool {
        self.0.lock().late.remove(&revision)
    }
}
