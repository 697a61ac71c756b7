//! Pods with a user namespace of their own (`hostUsers: false`, KEP-127): only where the runtime can.

use corten_api::core::v1::Pod;

use crate::{NodeFacts, spec::pod::spec_of};

pub(crate) fn is_own(pod: &Pod) -> bool {
    spec_of(pod).host_users == Some(false)
}

/// Can the handler, empty for the usual one, give the pod what it asks for? If not, why, in upstream's words.
pub(crate) fn check(pod: &Pod, handler: &str, facts: Option<&NodeFacts>) -> Result<(), String> {
    let handlers = facts.map(|it| it.runtime_handlers.as_slice()).unwrap_or_default();
    // Upstream has other words where the runtime names no handler. What it means for the pod is the same.
    if !is_own(pod) || handlers.iter().any(|it| it.name == handler && it.user_namespaces) {
        return Ok(());
    }
    let who = if handler.is_empty() { "runtime".to_owned() } else { format!("RuntimeClass handler {handler:?}") };
    Err(format!("can't set `spec.hostUsers: false`, {who} does not support user namespaces"))
}

#[cfg(test)]
mod tests {
    use corten_api::core::v1::PodSpec;

    use super::*;
    use crate::RuntimeHandler;

    #[test]
    fn only_by_a_handler_that_can() {
        let usual = RuntimeHandler { user_namespaces: true, ..RuntimeHandler::default() };
        let other = RuntimeHandler { name: "other".into(), ..RuntimeHandler::default() };
        let facts = NodeFacts { runtime_handlers: vec![usual, other], ..NodeFacts::default() };
        let pod = |host_users| Pod { spec: Some(PodSpec { host_users, ..PodSpec::default() }), ..Pod::default() };
        let begin = "can't set `spec.hostUsers: false`,";
        for (host_users, handler, facts, expected) in [
            (None, "other", Some(&facts), Ok(())),
            (Some(true), "other", Some(&facts), Ok(())),
            (Some(false), "", Some(&facts), Ok(())),
            (Some(false), "", None, Err(format!("{begin} runtime does not support user namespaces"))),
            (
                Some(false),
                "other",
                Some(&facts),
                Err(format!("{begin} RuntimeClass handler \"other\" does not support user namespaces")),
            ),
        ] {
            assert_eq!(check(&pod(host_users), handler, facts), expected, "{host_users:?} {handler}");
        }
    }
}
