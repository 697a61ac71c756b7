//! Why something could not be done to the machine.

use std::{error::Error, io, path::Path};

#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    #[error("{doing}: {cause}")]
    Io { doing: String, cause: io::Error },
    /// A program of the system was run and did not succeed.
    #[error("{program}: {message}")]
    Command { program: String, message: String },
    /// The container runtime refused.
    #[error(transparent)]
    Runtime(Box<dyn Error + Send + Sync>),
    /// What the runtime has written down cannot be read any more.
    #[error("the records of containerd are damaged: {0}")]
    Damaged(String),
    /// Other users of the machine would have what is the cluster's alone.
    #[error("{0}")]
    Exposed(String),
    /// A folder that a flag names is somebody else's.
    #[error("{0}")]
    NotOurs(String),
    /// Something this node needs is not there.
    #[error("{0}")]
    Missing(String),
}

/// Adds what was being done to what, so that the message stands alone.
pub trait Doing<T> {
    fn doing(self, doing: &str, path: &Path) -> Result<T, MachineError>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, doing: &str, path: &Path) -> Result<T, MachineError> {
        self.map_err(|error| MachineError::Io { doing: format!("{doing} {}", path.display()), cause: error.into() })
    }
}
