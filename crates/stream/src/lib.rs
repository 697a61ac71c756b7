//! Tunnels for exec, attach and port-forward: an HTTP upgrade is taken over on one side, asked for on the other, and bytes
//! are copied both ways. And what both servers of the cluster, which such connections come to, do to protect themselves.
//!
//! Where both ends speak the same, nothing here looks inside. The newest WebSocket protocols are translated to SPDY, which
//! is what container runtimes speak. [`Messages`] sends an answer of HTTP over a WebSocket.

mod addresses;
mod any_server;
mod cross_site;
mod dial;
mod messages;
mod server_identity;
pub mod spdy;
mod translate;
mod tunnel;
mod upgrade;
pub mod websocket;

pub use addresses::{Addresses, Connected};
pub use any_server::AnyServer;
pub use cross_site::is_cross_site;
pub use dial::{Answer, Dialed, Error, dial, dial_within};
pub use messages::Messages;
pub use server_identity::{IdentifiedServer, ServerIdentity};
pub use translate::Streams;
pub use tunnel::{Copied, Limits, SILENCE_MAX, copy_both};
pub use upgrade::{Accepted, Protocol, Purpose, Refusal, Upgrade};
