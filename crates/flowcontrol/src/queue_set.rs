//! The seats and queues of one priority level: who begins, who waits, who is refused, and who is next.
//!
//! Next is the request that would end first if the seats were shared evenly by all queues that have something to do (fair
//! queuing, as upstream's `queueset`). For that the level has a clock of its own, which runs at the rate at which each such
//! queue would get on: its time is called virtual.

use std::{collections::VecDeque, time::Duration};

use crate::{priority_level::Queuing, shuffle::deal};

/// How long a request is taken to last until it has ended.
const ESTIMATE: f64 = 0.003;

/// What became of a request that came.
#[derive(Debug)]
pub enum Arrival {
    Begun(Ticket),
    Queued(QueuePosition),
    Refused(Refusal),
}

/// Why a request is refused, in upstream's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    ConcurrencyLimit,
    QueueFull,
    TimeOut,
    Cancelled,
}

impl Refusal {
    pub const ALL: [Self; 4] = [Self::ConcurrencyLimit, Self::QueueFull, Self::TimeOut, Self::Cancelled];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConcurrencyLimit => "concurrency-limit",
            Self::QueueFull => "queue-full",
            Self::TimeOut => "time-out",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The seats of a request that is being answered. To be given back with [`QueueSet::end`].
#[derive(Debug)]
#[must_use]
pub struct Ticket {
    queue: Option<QueueId>,
    width: u32,
    began: Duration,
}

impl Ticket {
    /// The queue that it had, where there was one.
    pub fn queue(&self) -> Option<QueueId> {
        self.queue
    }

    pub fn width(&self) -> u32 {
        self.width
    }
}

/// Where a request waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePosition {
    id: u64,
    n_waiting: u32,
}

impl QueuePosition {
    /// How many wait in its queue, it among them.
    pub fn n_waiting(&self) -> u32 {
        self.n_waiting
    }
}

/// One that waited and begins now.
#[derive(Debug)]
pub struct Dispatched<T> {
    pub who: T,
    pub ticket: Ticket,
}

/// A queue, and how often the queues had been made anew before it.
#[derive(Clone, Copy, Debug)]
pub struct QueueId {
    generation: u64,
    at: usize,
}

struct Queue<T> {
    waiting: VecDeque<QueuedRequest<T>>,
    /// The virtual time at which its next request begins, where each of its own had its seats to itself.
    next_begin: f64,
    executing: u32,
    seats_in_use: u32,
    seats_waiting: u64,
}

struct QueuedRequest<T> {
    id: u64,
    flow: u64,
    width: u32,
    who: T,
}

/// A queue as it stands, for who looks at it.
pub struct QueueState<'a, T> {
    /// In their order, each with the seats it will take.
    pub waiting: Vec<(&'a T, u32)>,
    pub executing: u32,
    pub seats_in_use: u32,
    /// In virtual time: when its next request begins.
    pub next_begin: f64,
    pub seats_waiting: u64,
    /// What those who wait are taken to be: seats, times seconds.
    pub work_waiting: f64,
}

/// How it was when a request of a queue began, in virtual time. Bounds are those of all queues in which somebody waited, the earliest and
/// the latest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DispatchTimes {
    pub now: f64,
    /// When the request was to begin by its queue's share.
    pub start: f64,
    /// When the first request of each queue was to begin.
    pub starts: (f64, f64),
    /// The same, less what each queue had under way.
    pub discounted: (f64, f64),
}

/// One that waits is a `T`; all times are since one moment that the caller chose.
pub struct QueueSet<T> {
    seats: u32,
    queuing: Option<Queuing>,
    queues: Vec<Queue<T>>,
    generation: u64,
    next_id: u64,
    executing: u32,
    seats_in_use: u32,
    waiting: u32,
    seats_waiting: u64,
    virtual_now: f64,
    now: Duration,
    /// How many queues have something to do.
    active: u32,
    last_dispatch: Option<DispatchTimes>,
}

impl<T> Queue<T> {
    fn new(virtual_now: f64) -> Self {
        Self { waiting: VecDeque::new(), next_begin: virtual_now, executing: 0, seats_in_use: 0, seats_waiting: 0 }
    }

    fn is_active(&self) -> bool {
        self.executing > 0 || !self.waiting.is_empty()
    }

    /// When its next request begins, less the work that it has under way.
    fn discounted(&self) -> f64 {
        self.next_begin - f64::from(self.seats_in_use) * ESTIMATE
    }

    fn load(&self) -> u64 {
        self.seats_waiting + u64::from(self.seats_in_use)
    }
}

impl<T> QueueSet<T> {
    pub fn new(seats: u32, queuing: Option<Queuing>) -> Self {
        let n_queues = queuing.as_ref().map_or(0, Queuing::queues);
        Self {
            seats,
            queuing,
            queues: (0..n_queues).map(|_| Queue::new(0.0)).collect(),
            generation: 0,
            next_id: 0,
            executing: 0,
            seats_in_use: 0,
            waiting: 0,
            seats_waiting: 0,
            virtual_now: 0.0,
            now: Duration::ZERO,
            active: 0,
            last_dispatch: None,
        }
    }

    pub fn executing(&self) -> u32 {
        self.executing
    }

    pub fn seats_in_use(&self) -> u32 {
        self.seats_in_use
    }

    pub fn waiting(&self) -> u32 {
        self.waiting
    }

    pub fn seats(&self) -> u32 {
        self.seats
    }

    /// Of the last change.
    pub fn virtual_now(&self) -> f64 {
        self.virtual_now
    }

    /// `None` where no request of a queue has begun yet.
    pub fn last_dispatch(&self) -> Option<DispatchTimes> {
        self.last_dispatch
    }

    /// Which of the queues it is now. `None` where they have been made anew since.
    pub fn index_of(&self, queue: QueueId) -> Option<usize> {
        (queue.generation == self.generation).then_some(queue.at)
    }

    #[expect(clippy::cast_precision_loss, reason = "no queue is as wide as a float is exact")]
    pub fn queues(&self) -> impl Iterator<Item = QueueState<'_, T>> {
        self.queues.iter().map(|it| QueueState {
            waiting: it.waiting.iter().map(|it| (&it.who, it.width)).collect(),
            executing: it.executing,
            seats_in_use: it.seats_in_use,
            next_begin: it.next_begin,
            seats_waiting: it.seats_waiting,
            work_waiting: it.seats_waiting as f64 * ESTIMATE,
        })
    }

    /// The seats that all who are here would take.
    pub fn demand(&self) -> u32 {
        u32::try_from(self.seats_waiting).unwrap_or(u32::MAX).saturating_add(self.seats_in_use)
    }

    /// One that is `width` seats wide comes. Where it waits, `who` is kept until it begins or leaves.
    pub fn arrive(&mut self, flow: u64, width: u32, now: Duration, who: impl FnOnce() -> T) -> Arrival {
        self.pass(now);
        let Some(queuing) = self.queuing else {
            return match self.fits(width) {
                true => Arrival::Begun(self.begin(None, width)),
                false => Arrival::Refused(Refusal::ConcurrencyLimit),
            };
        };
        let at = self.lightest(flow, &queuing);
        if self.waiting == 0 && self.fits(width) {
            self.wake(at);
            let queue = &self.queues[at];
            let (start, discounted) = (queue.next_begin, queue.discounted());
            self.last_dispatch = Some(DispatchTimes {
                now: self.virtual_now,
                start,
                starts: (start, start),
                discounted: (discounted, discounted),
            });
            return Arrival::Begun(self.begin(Some(at), width));
        }
        if self.queues[at].waiting.len() >= queuing.queue_length_limit as usize {
            return Arrival::Refused(Refusal::QueueFull);
        }
        self.next_id += 1;
        let id = self.next_id;
        self.enqueue(at, QueuedRequest { id, flow, width, who: who() });
        let n_waiting = u32::try_from(self.queues[at].waiting.len()).unwrap_or(u32::MAX);
        Arrival::Queued(QueuePosition { id, n_waiting })
    }

    /// One begins that waits for nobody, and for which nobody waits.
    pub fn begin_exempt(&mut self, width: u32, now: Duration) -> Ticket {
        self.pass(now);
        self.begin(None, width)
    }

    /// One has been answered. Whoever begins for it is told by the caller.
    pub fn end(&mut self, ticket: Ticket, now: Duration) -> Vec<Dispatched<T>> {
        self.pass(now);
        let Ticket { queue, width, began } = ticket;
        self.executing = self.executing.saturating_sub(1);
        self.seats_in_use = self.seats_in_use.saturating_sub(width);
        if let Some(at) = queue.filter(|it| it.generation == self.generation).map(|it| it.at) {
            let took = now.saturating_sub(began).as_secs_f64();
            let queue = &mut self.queues[at];
            queue.executing -= 1;
            queue.seats_in_use -= width;
            queue.next_begin += (took - ESTIMATE) * f64::from(width);
            if !queue.is_active() {
                self.active -= 1;
            }
        }
        self.begin_next()
    }

    /// One that waits goes away; others may begin that stood behind it. `None` where it waits no more: then it has begun.
    pub fn leave(&mut self, place: QueuePosition, now: Duration) -> Option<Vec<Dispatched<T>>> {
        self.pass(now);
        // Few wait for long, and fewer leave: nobody keeps where they stand.
        for queue in &mut self.queues {
            let Some(at) = queue.waiting.iter().position(|it| it.id == place.id) else { continue };
            let gone = queue.waiting.remove(at).expect("it stands there");
            queue.seats_waiting -= u64::from(gone.width);
            self.seats_waiting -= u64::from(gone.width);
            self.waiting -= 1;
            if !queue.is_active() {
                self.active -= 1;
            }
            return Some(self.begin_next());
        }
        None
    }

    /// There are so many seats from now on.
    pub fn set_seats(&mut self, seats: u32, now: Duration) -> Vec<Dispatched<T>> {
        self.pass(now);
        self.seats = seats;
        self.begin_next()
    }

    /// The queues are others from now on. Who waits is dealt anew, and finds room whatever the new bounds are; without queues
    /// they all begin.
    pub fn set_queuing(&mut self, queuing: Option<Queuing>, now: Duration) -> Vec<Dispatched<T>> {
        self.pass(now);
        if self.queuing == queuing {
            return Vec::new();
        }
        let waiting = self.take_waiting();
        self.generation += 1;
        self.queuing = queuing;
        let n_queues = queuing.as_ref().map_or(0, Queuing::queues);
        self.queues = (0..n_queues).map(|_| Queue::new(self.virtual_now)).collect();
        self.active = 0;
        let Some(queuing) = queuing else {
            return waiting
                .into_iter()
                .map(|it| Dispatched { ticket: self.begin(None, it.width), who: it.who })
                .collect();
        };
        for one in waiting {
            let at = self.lightest(one.flow, &queuing);
            self.enqueue(at, one);
        }
        self.begin_next()
    }

    fn take_waiting(&mut self) -> Vec<QueuedRequest<T>> {
        let mut waiting: Vec<QueuedRequest<T>> = self.queues.iter_mut().flat_map(|it| it.waiting.drain(..)).collect();
        // Who came first is dealt first.
        waiting.sort_by_key(|it| it.id);
        (self.waiting, self.seats_waiting) = (0, 0);
        waiting
    }

    /// Of the queues that a flow is dealt the one with the least to do.
    fn lightest(&self, flow: u64, queuing: &Queuing) -> usize {
        let hand = deal(flow, self.queues.len(), queuing.hand_size());
        hand.into_iter().min_by_key(|it| self.queues[*it].load()).expect("a level with queues has one, and deals one")
    }

    /// One that takes more than all seats begins alone.
    fn fits(&self, width: u32) -> bool {
        self.seats_in_use.saturating_add(width) <= self.seats || self.seats_in_use == 0
    }

    fn enqueue(&mut self, at: usize, one: QueuedRequest<T>) {
        self.wake(at);
        let queue = &mut self.queues[at];
        queue.seats_waiting += u64::from(one.width);
        self.seats_waiting += u64::from(one.width);
        self.waiting += 1;
        queue.waiting.push_back(one);
    }

    /// A queue that had nothing to do does not bring along what it did not use.
    fn wake(&mut self, at: usize) {
        let queue = &mut self.queues[at];
        if !queue.is_active() {
            queue.next_begin = self.virtual_now;
            self.active += 1;
        }
    }

    fn begin(&mut self, at: Option<usize>, width: u32) -> Ticket {
        self.executing += 1;
        self.seats_in_use += width;
        if let Some(at) = at {
            let queue = &mut self.queues[at];
            queue.executing += 1;
            queue.seats_in_use += width;
            queue.next_begin += ESTIMATE * f64::from(width);
        }
        let queue = at.map(|at| QueueId { generation: self.generation, at });
        Ticket { queue, width, began: self.now }
    }

    /// Lets begin whoever finds seats now.
    fn begin_next(&mut self) -> Vec<Dispatched<T>> {
        let mut begun = Vec::new();
        while self.waiting > 0 {
            let waiting = self.queues.iter().enumerate().filter_map(|(at, it)| Some((at, it, it.waiting.front()?)));
            let ends = |queue: &Queue<T>, width: u32| queue.next_begin + ESTIMATE * f64::from(width);
            // Of those that would end at once the first that came.
            let next = waiting.map(|(at, queue, first)| (at, first.width, ends(queue, first.width), first.id));
            let next = next.min_by(|one, other| one.2.total_cmp(&other.2).then(one.3.cmp(&other.3)));
            let Some((at, width, ..)) = next else { break };
            // The next one is not passed over by narrower ones: it would wait for ever.
            if !self.fits(width) {
                break;
            }
            self.last_dispatch = Some(self.dispatch_times(at));
            let queue = &mut self.queues[at];
            let first = queue.waiting.pop_front().expect("it was looked at");
            queue.seats_waiting -= u64::from(width);
            self.seats_waiting -= u64::from(width);
            self.waiting -= 1;
            begun.push(Dispatched { ticket: self.begin(Some(at), width), who: first.who });
        }
        begun
    }

    /// As it is while the first of a queue's requests begins.
    fn dispatch_times(&self, at: usize) -> DispatchTimes {
        let waiting = || self.queues.iter().filter(|it| !it.waiting.is_empty());
        let bounds = |of: fn(&Queue<T>) -> f64| {
            waiting().map(of).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| (low.min(it), high.max(it)))
        };
        DispatchTimes {
            now: self.virtual_now,
            start: self.queues[at].next_begin,
            starts: bounds(|it| it.next_begin),
            discounted: bounds(Queue::discounted),
        }
    }

    /// Virtual time runs as fast as each queue that has something to do would get on.
    fn pass(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.now).as_secs_f64();
        self.now = self.now.max(now);
        if self.active > 0 {
            let served = f64::from(self.demand().min(self.seats.max(1)));
            self.virtual_now += passed * served / f64::from(self.active);
        }
    }
}

#[cfg(test)]
mod tests;
