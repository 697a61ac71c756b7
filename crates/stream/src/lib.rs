//! Tunnels for exec, attach and port-forward: an HTTP upgrade is taken over on one side, asked for on the other, and bytes
//! are copied both ways.
//!
//! What the bytes mean (SPDY frames, WebSocket messages) is the two ends' business; nothing here looks inside.

mod dial;
mod tunnel;
mod upgrade;

pub use dial::{Answer, Dialed, Error, dial};
pub use tunnel::{Copied, Limits, copy_both};
pub use upgrade::{Accepted, Protocol, Refusal, Upgrade};
