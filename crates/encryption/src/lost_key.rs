//! A key that is gone from the configuration, and not from the store.

/// A key that values of a resource carry and their providers do not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LostKey {
    /// `secrets`, or `things.example.org`.
    pub(crate) resource: String,
    /// `key "two" of aesgcm`.
    pub(crate) key: String,
    pub(crate) n: usize,
}

impl LostKey {
    pub(crate) fn line(&self) -> String {
        let Self { resource, key, n } = self;
        format!(
            "{n} of {resource} are stored under {key}, which the encryption configuration does not have any more: they cannot be read after the next start. Put it back, write them anew (kubectl get {resource} -A -o json | kubectl replace -f -), then take it away"
        )
    }
}
