//! Per driver and operation type, a bounded number of calls runs at once. Status queries have their own slots. A hanging operation blocks
//! only its own type.

use std::{
    collections::{BTreeMap, VecDeque},
    task::{Context, Poll},
};

use corten_client::BoxFuture;
use corten_provisioner::{Event, Job};
use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};

/// So much at once of each line.
const JOBS_MAX: usize = 8;
const LOOKS_MAX: usize = 2;

/// What waits for the same places.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Line {
    /// What no driver is asked for.
    Api,
    /// Of one driver what is of one part: volumes that are not made hold up none that are to be attached.
    Driver(String, Part),
    /// How much a driver has left, and whether its volumes are well.
    Looks(String),
}

/// As upstream has a sidecar for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Volumes,
    Attachments,
    Changes,
    Snapshots,
}

impl Line {
    pub(super) fn of(job: &Job) -> Self {
        let part = match job {
            Job::Attach(_) | Job::Detach(_) => Part::Attachments,
            Job::Expand(_) | Job::ExpandOnNode(_) | Job::Modify(_) => Part::Changes,
            Job::TakeSnapshot(_) | Job::FindSnapshot(_) | Job::RemoveSnapshot { .. } => Part::Snapshots,
            _ => Part::Volumes,
        };
        job.driver().map_or(Self::Api, |it| Self::Driver(it.to_owned(), part))
    }
}

type Work = BoxFuture<'static, Option<Event>>;

/// The mind bounds it: each claim, volume, attachment and content has one thing under way, each class of a driver one telling.
#[derive(Default)]
pub(super) struct Queues {
    lines: BTreeMap<Line, Queue>,
    running: FuturesUnordered<BoxFuture<'static, (Line, Option<Event>)>>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Work>,
    n_running: usize,
}

impl Queues {
    pub(super) fn push(&mut self, line: Line, work: impl Future<Output = Option<Event>> + Send + 'static) {
        self.lines.entry(line.clone()).or_default().waiting.push_back(Box::pin(work));
        self.begin(line);
    }

    /// What has come of what has ended.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Vec<Event> {
        let mut ended = Vec::new();
        while let Poll::Ready(Some((line, event))) = self.running.poll_next_unpin(context) {
            if let Some(places) = self.lines.get_mut(&line) {
                places.n_running -= 1;
            }
            self.begin(line);
            ended.extend(event);
        }
        ended
    }

    fn begin(&mut self, line: Line) {
        let Some(places) = self.lines.get_mut(&line) else { return };
        let n_max = if matches!(line, Line::Looks(_)) { LOOKS_MAX } else { JOBS_MAX };
        while places.n_running < n_max
            && let Some(next) = places.waiting.pop_front()
        {
            places.n_running += 1;
            let line = line.clone();
            self.running.push(Box::pin(next.map(move |it| (line, it))));
        }
        if places.n_running == 0 {
            self.lines.remove(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use tokio::sync::Semaphore;

    use super::*;

    /// How many of so many are begun while none of them ends, and how many end then.
    async fn begun(queue: &mut Queues, line: Line, n: usize) -> (usize, usize) {
        let (count, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
        for _ in 0..n {
            let (count, gate) = (count.clone(), gate.clone());
            let work = async move {
                count.fetch_add(1, Ordering::Relaxed);
                gate.acquire().await.expect("it stays open").forget();
                Some(Event::Tick)
            };
            queue.push(line.clone(), work);
        }
        let poll = |queue: &mut Queues| {
            let mut context = Context::from_waker(std::task::Waker::noop());
            queue.poll(&mut context).len()
        };
        assert_eq!(poll(queue), 0);
        let at_first = count.load(Ordering::Relaxed);
        gate.add_permits(n);
        let mut n_ended = 0;
        for _ in 0..n {
            n_ended += poll(queue);
        }
        (at_first, n_ended)
    }

    #[tokio::test]
    async fn each_line_has_places_of_its_own() {
        let mut queue = Queues::default();
        for _ in 0..2 * JOBS_MAX {
            queue.push(Line::Driver("hangs".into(), Part::Volumes), std::future::pending());
            queue.push(Line::Looks("hangs".into()), std::future::pending());
        }
        let of = |driver: &str, part| Line::Driver(driver.to_owned(), part);
        for (line, n_max) in [
            (Line::Api, JOBS_MAX),
            (of("other", Part::Volumes), JOBS_MAX),
            (of("hangs", Part::Attachments), JOBS_MAX),
            (Line::Looks("other".into()), LOOKS_MAX),
        ] {
            assert_eq!(begun(&mut queue, line.clone(), 20).await, (n_max, 20), "{line:?}");
        }
        assert_eq!(queue.running.len(), JOBS_MAX + LOOKS_MAX);
        assert_eq!(queue.lines.len(), 2, "what is done is forgotten");
    }
}
