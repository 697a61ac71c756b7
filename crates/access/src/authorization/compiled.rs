//! What is asked, in order: configurations and options both come to this.

use std::time::Duration;

use corten_webhook::ClientConfig;

use super::conditions::Conditions;

pub(crate) struct Compiled {
    /// Type and name of each.
    pub(crate) authorizers: Vec<(Type, String)>,
}

pub(crate) enum Type {
    Node,
    Rbac,
    AlwaysAllow,
    AlwaysDeny,
    Webhook(Box<CompiledWebhook>),
}

pub(crate) struct CompiledWebhook {
    pub(crate) client: ClientConfig,
    /// Of one request.
    pub(crate) timeout: Duration,
    /// Zero: nothing is kept.
    pub(crate) authorized: Duration,
    pub(crate) unauthorized: Duration,
    pub(crate) version: ReviewVersion,
    /// Deny where it cannot be asked; else ask who comes next.
    pub(crate) denies_on_error: bool,
    pub(crate) conditions: Conditions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReviewVersion {
    V1,
    V1Beta1,
}

impl ReviewVersion {
    pub(crate) fn of(text: &str) -> Option<Self> {
        match text {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V1Beta1 => "v1beta1",
        }
    }
}

impl Type {
    /// As configurations and metrics call it.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Node => "Node",
            Self::Rbac => "RBAC",
            Self::AlwaysAllow => "AlwaysAllow",
            Self::AlwaysDeny => "AlwaysDeny",
            Self::Webhook(_) => "Webhook",
        }
    }

    /// Those that need no more than their name.
    pub(crate) fn simple(name: &str) -> Option<Self> {
        match name {
            "Node" => Some(Self::Node),
            "RBAC" => Some(Self::Rbac),
            "AlwaysAllow" => Some(Self::AlwaysAllow),
            "AlwaysDeny" => Some(Self::AlwaysDeny),
            _ => None,
        }
    }
}

/// What every cluster has unless an administrator says otherwise.
impl Default for Compiled {
    fn default() -> Self {
        Self { authorizers: vec![(Type::Node, "node".into()), (Type::Rbac, "rbac".into())] }
    }
}
