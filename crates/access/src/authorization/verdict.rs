//! What authorizers say.

/// What one authorizer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) opinion: Opinion,
    pub(crate) reason: String,
    pub(crate) error: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opinion {
    Allow,
    Deny,
    /// Somebody else decides.
    None,
}

impl Verdict {
    pub(crate) fn of(opinion: Opinion) -> Self {
        Self { opinion, reason: String::new(), error: String::new() }
    }
}
