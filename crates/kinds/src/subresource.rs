//! A path below an object that has a meaning of its own.

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
}
