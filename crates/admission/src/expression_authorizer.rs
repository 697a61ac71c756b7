//! What `authorizer` answers in expressions: whether the author of the request may do something.

use std::fmt;

use corten_access::{Access, Answers, Attributes, Decision, Identity, ResourceOrPath};
use corten_cel as cel;
use tokio::time::Instant;

use crate::{evaluation::evaluated, plugin as admission};

pub(crate) struct ExpressionAuthorizer<'a> {
    answers: Answers<'a>,
    who: &'a Identity,
}

impl<'a> ExpressionAuthorizer<'a> {
    pub(crate) fn new(access: &'a Access, who: &'a Identity) -> Self {
        Self { answers: access.answers(), who }
    }

    /// What comes of expressions: evaluated again where they asked what others had to be asked first.
    pub(crate) async fn answered<T>(&self, request: &admission::Attributes<'_>, evaluate: impl Fn() -> T) -> T {
        loop {
            let begun = Instant::now();
            let found = evaluated(request.fuel, &evaluate).await;
            request.cluster.measures.cel.evaluated(begun.elapsed());
            if !self.answers.were_missing().await {
                return found;
            }
        }
    }
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
            Some(path) => ResourceOrPath::Path(path),
            None => ResourceOrPath::Resource {
                group: &asked.group,
                resource: &asked.resource,
                subresource: &asked.subresource,
                namespace: &asked.namespace,
                name: &asked.name,
            },
        };
        let question = Attributes {
            verb: &asked.verb,
            target,
            version: if asked.path.is_some() { "" } else { "*" },
            field_selector: &asked.field_selector,
            label_selector: &asked.label_selector,
            ..who
        };
        let decision = self.answers.decide(&question);
        let is_allowed = decision.is_allowed();
        let (reason, error) = match decision {
            Decision::Allowed(reason) => (reason.as_deref().unwrap_or_default().to_owned(), String::new()),
            Decision::Denied(denial) => (denial.reason, denial.error),
        };
        cel::Decision { is_allowed, reason, error: Some(error).filter(|it| !it.is_empty()) }
    }
}
