//! The requests of a level that are being answered, each at a place that it keeps meanwhile.

use std::{sync::Arc, time::Duration};

use corten_flowcontrol::QueueId;

use crate::request::DescribedRequest;

#[derive(Default)]
pub(crate) struct Executing {
    places: Vec<Option<ExecutingRequest>>,
    free: Vec<usize>,
}

pub(crate) struct ExecutingRequest {
    pub(crate) request: Arc<DescribedRequest>,
    pub(crate) queue: Option<QueueId>,
    pub(crate) width: u32,
    pub(crate) waited: Duration,
}

impl Executing {
    /// The place it has from now on.
    pub(crate) fn enter(&mut self, request: ExecutingRequest) -> usize {
        match self.free.pop() {
            Some(at) => {
                self.places[at] = Some(request);
                at
            }
            None => {
                self.places.push(Some(request));
                self.places.len() - 1
            }
        }
    }

    pub(crate) fn leave(&mut self, at: usize) {
        self.places[at] = None;
        self.free.push(at);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ExecutingRequest> {
        self.places.iter().flatten()
    }
}
