//! What goes wrong, as a file says.

use std::path::Path;

use crate::Code;

/// What one method does instead of, or beside, what it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A gRPC code's name: fails with it, with nothing done.
    Refuse(Code),
    /// `hang`: never answers, with nothing done.
    Hang,
    /// `die`: the process ends before anything is done.
    Die,
    /// `die-after`: the process ends with everything done, before the answer.
    DieAfter,
    /// `lose-answer`: everything is done, and the answer is `Unavailable`.
    LoseAnswer,
    /// `link`: where the volume is to be is a link to another folder.
    Link,
    /// `other`: the answer names another's volume.
    Other,
    /// `small`: the answer says less than was asked for.
    Small,
    /// `huge`: the answer holds more than anybody needs.
    Huge,
    /// `sick`: the volume is not well.
    Sick,
    /// `detached`: the list says that no node has a volume.
    Detached,
    /// `pages`: the list comes one by one.
    Pages,
}

#[derive(Debug, Default)]
pub(super) struct Faults(Vec<(String, Fault)>);

impl Faults {
    pub(super) fn read(folder: &Path) -> Self {
        let text = std::fs::read_to_string(folder.join("faults")).unwrap_or_default();
        let parse = |line: &str| {
            let (method, what) = line.trim().split_once(' ')?;
            Some((method.to_owned(), fault(what.trim())?))
        };
        Self(text.lines().filter_map(parse).collect())
    }

    /// The first one for this method, or for all (`*`).
    pub(super) fn of(&self, method: &str) -> Option<Fault> {
        self.0.iter().find(|it| it.0 == method || it.0 == "*").map(|it| it.1.clone())
    }
}

fn fault(name: &str) -> Option<Fault> {
    Some(match name {
        "hang" => Fault::Hang,
        "die" => Fault::Die,
        "die-after" => Fault::DieAfter,
        "lose-answer" => Fault::LoseAnswer,
        "link" => Fault::Link,
        "other" => Fault::Other,
        "small" => Fault::Small,
        "huge" => Fault::Huge,
        "sick" => Fault::Sick,
        "detached" => Fault::Detached,
        "pages" => Fault::Pages,
        name => Fault::Refuse(CODES.into_iter().find(|it| format!("{it:?}") == name)?),
    })
}

const CODES: [Code; 14] = [
    Code::InvalidArgument,
    Code::DeadlineExceeded,
    Code::NotFound,
    Code::AlreadyExists,
    Code::PermissionDenied,
    Code::ResourceExhausted,
    Code::FailedPrecondition,
    Code::Aborted,
    Code::OutOfRange,
    Code::Unimplemented,
    Code::Internal,
    Code::Unavailable,
    Code::Canceled,
    Code::Unknown,
];
