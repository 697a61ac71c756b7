//! RuntimeClasses: which of the runtime's handlers a pod's sandbox is made with.

use std::collections::BTreeMap;

use corten_api::core::v1::Pod;

use crate::spec::pod::spec_of;

/// Every RuntimeClass of the cluster.
#[derive(Debug, Default)]
pub(crate) struct RuntimeClasses {
    /// Every one has been told once.
    pub(crate) are_known: bool,
    handlers: BTreeMap<String, String>,
}

impl RuntimeClasses {
    pub(crate) fn update(&mut self, name: String, handler: Option<String>) {
        match handler {
            Some(handler) => self.handlers.insert(name, handler),
            None => self.handlers.remove(&name),
        };
    }

    /// The pod's handler, empty for the usual one; or why there is none. `None`: that is not known yet.
    pub(crate) fn handler(&self, pod: &Pod) -> Option<Result<String, String>> {
        let name = spec_of(pod).runtime_class_name.as_deref().unwrap_or_default();
        if name.is_empty() {
            return Some(Ok(String::new()));
        }
        match self.handlers.get(name) {
            Some(handler) => Some(Ok(handler.clone())),
            None if self.are_known => Some(Err(format!("runtimeclass.node.k8s.io {name:?} not found"))),
            None => None,
        }
    }
}
