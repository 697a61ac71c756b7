//! The patches a client may send: JSON patch (RFC 6902), merge patch (RFC 7386) and Kubernetes's strategic merge patch.

mod json;
mod merge;
mod order;
mod strategic;

use corten_meta::{Cause, Details, Status};

pub use json::{json, n_operations};
pub use merge::merge;
pub use order::as_go;
pub use strategic::strategic;

/// Why a patch was refused; the wording goes to the client as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch itself cannot be read (400).
    #[error("{0}")]
    Malformed(String),
    /// It does not fit the object (422).
    #[error("{0}")]
    Unprocessable(String),
    /// It asks for more than the server is willing to do (413).
    #[error("{0}")]
    TooLarge(String),
    /// Wrong in a way for which upstream has no code but 500; so clients know it.
    #[error("{0}")]
    Failed(String),
}

impl PatchError {
    pub fn status(&self) -> Status {
        match self {
            Self::Malformed(message) => Status::bad_request(message),
            Self::Unprocessable(message) => unprocessable(message),
            Self::TooLarge(message) => Status::too_large(message),
            Self::Failed(message) => Status::failure(500, "", message),
        }
    }
}

/// The message tells nothing (`NewGenericServerResponse`); what is wrong is its cause, which kubectl prints.
fn unprocessable(message: &str) -> Status {
    let mut status = Status::failure(422, "Invalid", "the server rejected our request due to an error in our request");
    let cause = Cause { message: message.to_owned(), ..Cause::default() };
    status.details = Some(Details { causes: vec![cause], ..Details::default() });
    status
}
