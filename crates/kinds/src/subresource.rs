//! A path below an object that has a meaning of its own.

use crate::Verb;

/// A path below an object that has a meaning of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subresource {
    Status,
    Scale,
    Binding,
    Finalize,
    Eviction,
    Log,
    Exec,
    Attach,
    PortForward,
    Token,
    Approval,
    EphemeralContainers,
    Resize,
    Proxy,
}

impl Subresource {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Scale => "scale",
            Self::Binding => "binding",
            Self::Finalize => "finalize",
            Self::Eviction => "eviction",
            Self::Log => "log",
            Self::Exec => "exec",
            Self::Attach => "attach",
            Self::PortForward => "portforward",
            Self::Token => "token",
            Self::Approval => "approval",
            Self::EphemeralContainers => "ephemeralcontainers",
            Self::Resize => "resize",
            Self::Proxy => "proxy",
        }
    }

    /// What RBAC calls what can be done with it.
    pub fn verbs(self) -> &'static [Verb] {
        match self {
            Self::Status | Self::Scale | Self::Approval | Self::EphemeralContainers | Self::Resize => {
                &[Verb::Get, Verb::Patch, Verb::Update]
            }
            Self::Finalize => &[Verb::Update],
            Self::Binding | Self::Eviction | Self::Token => &[Verb::Create],
            Self::Log => &[Verb::Get],
            Self::Exec | Self::Attach | Self::PortForward => &[Verb::Create, Verb::Get],
            Self::Proxy => &[Verb::Create, Verb::Delete, Verb::Get, Verb::Patch, Verb::Update],
        }
    }

    /// Is a method without a verb (`OPTIONS`) passed on, too?
    pub fn takes_every_method(self) -> bool {
        self == Self::Proxy
    }
}
