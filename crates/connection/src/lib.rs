//! How one connection of the API server's gets on with the processor: it wakes itself, looks a little longer for what comes next, keeps
//! what a request left unread, and goes on with what a client began who has left. Nothing here knows what is served.

mod busy_poll;
mod leftover;
mod self_wake;
mod unattended;

pub use busy_poll::{BusyPoll, InWork, Others, Rhythm};
pub use leftover::{Leftover, Lent};
pub use self_wake::{InOneTurn, Turn};
pub use unattended::{Attendance, Unattended};
