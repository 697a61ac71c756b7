//! What is wrong with an expression, and what went wrong when it ran.

use std::fmt;

/// One complaint about an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// The byte of the expression that it is about; `None` where it is about all of it.
    pub at: Option<usize>,
    pub message: String,
}

/// All complaints about one expression. They are shown as cel-go shows them: with line, column and an arrow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issues {
    pub source: String,
    pub issues: Vec<Issue>,
}

impl std::error::Error for Issues {}

impl fmt::Display for Issues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, issue) in self.issues.iter().enumerate() {
            if nth > 0 {
                f.write_str("\n")?;
            }
            self.show(issue, f)?;
        }
        Ok(())
    }
}

impl Issues {
    pub(crate) fn new(source: &str, mut issues: Vec<Issue>) -> Self {
        issues.sort_by_key(|it| it.at);
        Self { source: source.to_owned(), issues }
    }

    fn show(&self, issue: &Issue, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(at) = issue.at else { return write!(f, "ERROR: <input>:-1:0: {}", issue.message) };
        // An empty source has no place to show, and its end is told as column 0.
        if self.source.is_empty() {
            return write!(f, "ERROR: <input>:1:0: {}", issue.message);
        }
        let (before, after) = self.source.split_at(at.min(self.source.len()));
        let start = before.rfind('\n').map_or(0, |it| it + 1);
        let line = before.matches('\n').count() + 1;
        let end = after.find('\n').map_or(self.source.len(), |it| at + it);
        let column = before[start..].chars().count() + 1;
        let text = self.source[start..end].replace('\t', " ");
        write!(f, "ERROR: <input>:{line}:{column}: {}\n | {text}\n | ", issue.message)?;
        // A wide character is pointed past by a wide dot.
        for char in before[start..].chars() {
            f.write_str(if char.is_ascii() { "." } else { "\u{ff0e}" })?;
        }
        let is_wide = after.chars().next().is_some_and(|it| !it.is_ascii());
        f.write_str(if is_wide { "\u{ff3e}" } else { "^" })
    }
}

/// What kind of failure an evaluation met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The budget is spent. Nothing absorbs this one.
    Cost,
    /// No function takes these arguments.
    NoSuchOverload,
    /// A map has no such key, an object no such field.
    NoSuchKey,
    /// Everything else that an expression meets.
    Other,
}

/// Why an evaluation has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub kind: ErrorKind,
    pub message: String,
}

/// As kube-apiserver says that the budget of one call is spent.
pub(crate) const COST_EXCEEDED: &str = "operation cancelled: actual cost limit exceeded";

impl Error {
    pub(crate) fn other(message: impl Into<String>) -> Box<Self> {
        Box::new(Self { kind: ErrorKind::Other, message: message.into() })
    }

    pub(crate) fn no_such_overload() -> Box<Self> {
        Box::new(Self { kind: ErrorKind::NoSuchOverload, message: "no such overload".to_owned() })
    }

    pub(crate) fn no_such_key(key: impl fmt::Display) -> Box<Self> {
        Box::new(Self { kind: ErrorKind::NoSuchKey, message: format!("no such key: {key}") })
    }

    pub(crate) fn cost() -> Box<Self> {
        Box::new(Self { kind: ErrorKind::Cost, message: COST_EXCEEDED.to_owned() })
    }

    /// There is too little fuel.
    pub(crate) fn interrupted() -> Box<Self> {
        Box::new(Self { kind: ErrorKind::Cost, message: "operation interrupted".to_owned() })
    }

    pub(crate) fn is_final(&self) -> bool {
        self.kind == ErrorKind::Cost
    }
}
