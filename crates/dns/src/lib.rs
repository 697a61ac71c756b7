//! The names of a cluster: Services in, zone out; query in, answer out.
//!
//! The wire format is read and written here, too: an answer is a few dozen bytes, and writing them from the zone costs
//! less than building a message of objects first. Sockets, time and chance are the caller's.

mod address;
mod answer;
mod cache;
mod kept;
mod name;
mod numbers;
mod projections;
mod query;
mod reading;
mod synthesis;
mod upkeep;
mod wire;
mod zone;

#[cfg(test)]
mod tests;

pub use answer::{Outcome, answer, chased, fail};
pub use cache::{Cache, CachedAnswer};
pub use name::Name;
pub use numbers::{NO_ERROR, NOT_IMPLEMENTED, NX_DOMAIN, REFUSED, SERVER_FAILURE, TCP_BYTES_MAX};
pub use projections::{EndpointSlice, Namespace, Service};
pub use query::{Edns, Query, Question, Rejected, parse, reject};
pub use reading::{AnswerError, Reading, ask, relay};
pub use synthesis::instead;
pub use upkeep::{ServerLocation, Upkeep, key, upkeep};
pub use zone::{Change, Keeper, Zone};
