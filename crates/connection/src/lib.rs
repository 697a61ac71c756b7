//! How one connection of the API server's gets on with the processor: it wakes itself, looks a little longer for what comes next, keeps
//! what a request left unread, goes on with what a client began who has left, and works on what is much in another place. Nothing here
//! knows what is served.

mod busy_poll;
mod heavy_lane;
mod leftover;
mod self_wake;
mod unattended;

pub use busy_poll::{BusyPoll, InWork, Others, Rhythm};
pub use heavy_lane::{HeavyLane, is_heavy};
pub use leftover::{Leftover, Lent};
pub use self_wake::{InOneTurn, SelfWaker};
pub use unattended::{Attendance, Unattended};
