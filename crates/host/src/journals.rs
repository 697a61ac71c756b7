//! What the loops of this node's process have noted, as the kubelet's server tells it.

use serde_json::Value;

/// See the module's documentation.
pub trait Journals: Send + Sync + 'static {
    /// Of one object; nothing where a node has no such journals.
    fn of(&self, namespace: &str, journal: &str) -> Option<Value>;
    /// Of all that waits for anything.
    fn waiting(&self) -> Value;
}
