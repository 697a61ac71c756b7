//! How one connection of the API server's gets on with the processor: it wakes itself, looks a little longer for what comes next, and
//! keeps what a request left unread. Nothing here knows what is served.

mod busy_poll;
mod leftover;
mod self_wake;

pub use busy_poll::{BusyPoll, InWork, Others, Rhythm};
pub use leftover::{Leftover, Lent};
pub use self_wake::{InOneTurn, Turn};
