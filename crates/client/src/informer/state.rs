//! What an informer is about.

use std::{pin::Pin, time::Duration};

use tokio::time::Sleep;

use super::listing::Listing;
use crate::{BoxFuture, Error, Watch};

pub(super) enum State {
    Listing(Listing),
    Connecting(BoxFuture<'static, Result<Watch, Error>>),
    Watching {
        watch: Watch,
        until: Pin<Box<Sleep>>,
    },
    /// `returned`: after a failure to reach the server, another request got through.
    Waiting {
        until: Pin<Box<Sleep>>,
        then: Then,
        returned: Option<BoxFuture<'static, ()>>,
    },
}

#[derive(Clone, Copy)]
pub(super) enum Then {
    List,
    Connect,
}

impl State {
    pub(super) fn waiting(time: Duration, then: Then) -> Self {
        Self::Waiting { until: Box::pin(tokio::time::sleep(time)), then, returned: None }
    }
}
