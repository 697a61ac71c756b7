//! How one connection of the API server's gets on with the processor: it wakes itself, looks a little longer for what comes next, keeps
//! what a request left unread, goes on with what a client began who has left, ends where answers are not read, works on what is much in another place, and moves all
//! streams of an HTTP/2 connection together; and which requests two readers could read as different ones. Nothing here knows what is
//! served.

mod ambiguous;
mod busy_poll;
mod counted;
mod heavy_lane;
mod leftover;
mod multiplexed;
mod placement;
mod self_wake;
mod unattended;
mod unread;
mod whole_body;

pub use ambiguous::{ambiguity, said_twice};
pub use busy_poll::{BusyPoll, InWork, Others, RequestPace};
pub use counted::Counted;
pub use heavy_lane::HeavyLanes;
pub use leftover::{Leftover, Lent};
pub use multiplexed::{BufferedWrites, Multiplexed, NewStreams};
pub use placement::{Lanes, Placement, RequestPlacement, WideAnswer, WideBody};
pub use self_wake::{InOneTurn, SelfWaker};
pub use unattended::{Attendance, Unattended};
pub use unread::{AnswerTo, EndsUnread, GoesOn, UnreadAnswers, UnreadBody, UnreadRoom};
pub use whole_body::WholeBody;
