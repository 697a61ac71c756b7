//! What `authorizer` answers in expressions: whether the author of the request may do something.

use std::fmt;

use corten_access::{Access, Attributes, Decision, Identity, Target};
use corten_cel as cel;

pub(crate) struct ExpressionAuthorizer<'a> {
    pub(crate) access: &'a Access,
    pub(crate) who: &'a Identity,
}

impl fmt::Debug for ExpressionAuthorizer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "what {} may do", self.who.user)
    }
}

impl cel::Authorizer for ExpressionAuthorizer<'_> {
    fn decide(&self, asked: &cel::Attributes) -> cel::Decision {
        let account = asked.service_account.as_ref().map(|(namespace, name)| {
            let groups =
                ["system:serviceaccounts", &format!("system:serviceaccounts:{namespace}"), "system:authenticated"];
            Identity::new(format!("system:serviceaccount:{namespace}:{name}"), &groups)
        });
        let who = Attributes::of(account.as_ref().unwrap_or(self.who));
        let target = match &asked.path {
            Some(path) => Target::Path(path),
            None => Target::Resource {
                group: &asked.group,
                resource: &asked.resource,
                subresource: &asked.subresource,
                namespace: &asked.namespace,
                name: &asked.name,
            },
        };
        let question = Attributes { verb: &asked.verb, target, field_selector: &asked.field_selector, ..who };
        let decision = self.access.decide(&question);
        let is_allowed = decision.is_allowed();
        let reason = match decision {
            Decision::Allowed(reason) => reason.as_deref().unwrap_or_default().to_owned(),
            Decision::Denied(reason) => reason,
        };
        cel::Decision { is_allowed, reason, ..cel::Decision::default() }
    }
}
