//! Other API servers under this one's address: which group and version each serves (APIService), whether it answers, what it says
//! it serves, and the way of a request there and back.
//!
//! Such a server is somebody else's. Each has a task of its own, so that one that hangs costs the others nothing; what it says is
//! bounded in bytes, depth and time; and it is asked with the front proxy's certificate, never with what the caller showed.

mod aggregator;
mod availability;
mod backend;
mod condition;
mod counted;
mod discovery;
mod fetch;
mod forward;
mod host;
mod kept;
mod listening;
mod measures;
mod patience;
mod registration;
mod server;
mod share;
mod silence;
mod spec;

pub use aggregator::Aggregator;
pub use forward::{Answered, Forwarded, NotForwarded};
pub use host::Host;
