//! What is asked of drivers, each of which has a queue of its own: one that hangs holds up nobody else's volumes.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    task::{Context, Poll},
};

use corten_client::BoxFuture;
use corten_provisioner::Event;
use futures_util::{StreamExt, stream::FuturesUnordered};

/// Of one driver at once.
const JOBS: usize = 8;

type Work = BoxFuture<'static, Ended>;

enum Ended {
    Told(Option<Event>),
    /// The capacity of this name is published.
    Published(String),
}

#[derive(Default)]
pub(super) struct Queues {
    /// By driver; what asks none has a queue, too.
    of: BTreeMap<Option<String>, Queue>,
    publishing: BTreeSet<String>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Work>,
    running: FuturesUnordered<Work>,
}

impl Queues {
    pub(super) fn push(&mut self, driver: Option<&str>, work: impl Future<Output = Option<Event>> + Send + 'static) {
        self.queue(driver).waiting.push_back(Box::pin(async { Ended::Told(work.await) }));
    }

    /// Nothing is done where the time before has not ended. What that does not see yet the next look finds, a minute later.
    pub(super) fn publish(&mut self, driver: &str, name: String, work: impl Future<Output = ()> + Send + 'static) {
        if self.publishing.insert(name.clone()) {
            self.queue(Some(driver)).waiting.push_back(Box::pin(async {
                work.await;
                Ended::Published(name)
            }));
        }
    }

    fn queue(&mut self, driver: Option<&str>) -> &mut Queue {
        self.of.entry(driver.map(str::to_owned)).or_default()
    }

    /// What has ended.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Vec<Event> {
        let mut told = Vec::new();
        let Self { of, publishing } = self;
        of.retain(|_, queue| {
            queue.poll(context, |ended| match ended {
                Ended::Told(event) => told.extend(event),
                Ended::Published(name) => {
                    publishing.remove(&name);
                }
            });
            !queue.running.is_empty()
        });
        told
    }
}

impl Queue {
    fn poll(&mut self, context: &mut Context<'_>, mut take: impl FnMut(Ended)) {
        loop {
            while self.running.len() < JOBS
                && let Some(next) = self.waiting.pop_front()
            {
                self.running.push(next);
            }
            match self.running.poll_next_unpin(context) {
                Poll::Ready(Some(ended)) => take(ended),
                Poll::Ready(None) | Poll::Pending => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    };

    use super::*;

    fn poll(queues: &mut Queues) -> usize {
        queues.poll(&mut Context::from_waker(std::task::Waker::noop())).len()
    }

    #[test]
    fn a_driver_that_hangs_holds_up_its_own_volumes_alone() {
        let mut queues = Queues::default();
        for _ in 0..100 {
            queues.push(Some("hangs"), std::future::pending());
        }
        queues.push(Some("well"), async { Some(Event::Tick) });
        queues.push(None, async { Some(Event::Tick) });
        assert_eq!((poll(&mut queues), poll(&mut queues)), (2, 0));
    }

    #[test]
    fn what_is_left_is_asked_once_at_a_time() {
        let mut queues = Queues::default();
        let n_asked = Arc::new(AtomicUsize::new(0));
        let (answer, answered) = tokio::sync::oneshot::channel::<()>();
        let mut answered = Some(answered);
        let mut ask = |queues: &mut Queues| {
            let (n_asked, answered) = (n_asked.clone(), answered.take());
            queues.publish("d", "d of a class".into(), async move {
                n_asked.fetch_add(1, Relaxed);
                if let Some(answered) = answered {
                    answered.await.expect("answered");
                }
            });
            poll(queues);
        };
        ask(&mut queues);
        ask(&mut queues);
        assert_eq!(n_asked.load(Relaxed), 1);
        answer.send(()).expect("it is waited for");
        poll(&mut queues);
        ask(&mut queues);
        assert_eq!(n_asked.load(Relaxed), 2);
    }
}
