//! Speaks to the API server, over HTTPS or in process: requests, watches, informers, leases.
//!
//! The two ways differ only in their [`Transport`]; the server's whole chain runs in both.

mod backoff;
mod client;
mod error;
pub mod https;
mod informer;
mod informer_params;
mod kept;
pub mod kubeconfig;
pub mod lease;
mod params;
mod progress;
mod reach;
mod request_tallies;
#[cfg(test)]
mod script;
mod transport;
mod watch;

pub use backoff::Backoff;
pub use client::{Client, List, ServedGroup, ServedResource, decode, decode_projection, version_number};
pub use error::{Error, Failing};
pub use informer::{Identity, Informer, InformerEvent};
pub use informer_params::{InformerParams, ListItems};
pub use kept::{Keeping, Kept, KeptAnswers, KeptChange, KeptList, LeftOut};
pub use params::{DeleteParams, ListParams, PatchType, WatchParams};
pub use progress::{Progress, ResourceIndex};
pub use request_tallies::RequestTallies;
pub use transport::{Body, BoxFuture, Transport, TransportError};
pub use watch::{Watch, WatchEvent};
