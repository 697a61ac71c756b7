//! A token for a service account, and what it is asked for.

use std::fmt;

use corten_meta::Time;

/// What a token is asked for. Volumes that ask for the same get the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenWish {
    /// Empty: the API server's own.
    pub audience: String,
    pub seconds: i64,
}

/// A token the API server gave.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    pub token: String,
    pub expires: Time,
}

/// Without the token: what is printed is kept.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("expires", &self.expires).finish_non_exhaustive()
    }
}
