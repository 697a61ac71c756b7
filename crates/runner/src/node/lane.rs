//! Effects side by side.

use std::{
    collections::VecDeque,
    task::{Context, Poll},
};

use corten_client::BoxFuture;
use corten_kubelet::Event;
use futures_util::{StreamExt, stream::FuturesUnordered};

/// What runs side by side, up to a number; the rest waits for its turn.
pub(super) struct Lane<T> {
    wide: usize,
    pub(super) waiting: VecDeque<T>,
    pub(super) running: FuturesUnordered<BoxFuture<'static, Vec<Event>>>,
}

impl<T> Lane<T> {
    pub(super) fn new(wide: usize) -> Self {
        Self { wide, waiting: VecDeque::new(), running: FuturesUnordered::new() }
    }

    /// Begins what has room; gives what ended.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        begin: impl Fn(T) -> BoxFuture<'static, Vec<Event>>,
    ) -> Vec<Event> {
        let mut ended = Vec::new();
        loop {
            while self.running.len() < self.wide
                && let Some(next) = self.waiting.pop_front()
            {
                self.running.push(begin(next));
            }
            match self.running.poll_next_unpin(context) {
                Poll::Ready(Some(events)) => ended.extend(events),
                Poll::Ready(None) | Poll::Pending => return ended,
            }
        }
    }
}
