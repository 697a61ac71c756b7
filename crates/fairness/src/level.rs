//! One priority level as it is going on: its seats, and who waits.

use std::{sync::Arc, time::Duration};

use corten_flowcontrol::{
    Allotment, Arrival, Demand, Dispatched, PriorityLevel, QueuePosition, QueueSet, Refusal, Ticket,
};
use parking_lot::Mutex;
use tokio::{sync::oneshot, time::Instant};

use crate::{
    counters::Counters,
    waiting::{Standing, WaitingRequest},
};

pub(super) struct Level {
    name: String,
    began: Instant,
    going_on: Mutex<GoingOn>,
}

struct GoingOn {
    of: PriorityLevel,
    nominal: u32,
    set: QueueSet<Waiter>,
    demand: Demand,
    /// When the demand was noted last.
    noted: Duration,
}

/// Who is told to begin, and for whom.
struct Waiter {
    told: oneshot::Sender<Ticket>,
    request: Arc<WaitingRequest>,
}

/// The seats of a request that is being answered; they are given back when this is dropped.
pub(crate) struct Seats {
    level: Arc<Level>,
    ticket: Option<Ticket>,
}

impl Seats {
    fn of(level: &Arc<Level>, ticket: Ticket) -> Self {
        Self { level: level.clone(), ticket: Some(ticket) }
    }
}

impl Drop for Seats {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.level.give_back(ticket);
        }
    }
}

/// One that waits. Where its future is dropped it leaves, or gives back what it was given meanwhile.
struct QueuedRequest {
    level: Arc<Level>,
    place: QueuePosition,
    told: oneshot::Receiver<Ticket>,
    /// It has taken its ticket, and stands nowhere any more.
    has_begun: bool,
}

impl QueuedRequest {
    /// `None` where it waits no more, since it has begun.
    fn leave(&self) -> Option<()> {
        let now = self.level.now();
        let begun = {
            let mut going_on = self.level.going_on.lock();
            going_on.note(now);
            going_on.set.leave(self.place, now)?
        };
        self.level.wake(begun);
        Some(())
    }

    fn go(&mut self) {
        // From here on nothing is told: a ticket that came after the last look would be lost, and its seats with it.
        self.told.close();
        if self.leave().is_none()
            && let Ok(ticket) = self.told.try_recv()
        {
            self.level.give_back(ticket);
        }
    }
}

impl Drop for QueuedRequest {
    fn drop(&mut self) {
        if !self.has_begun {
            self.go();
        }
    }
}

impl GoingOn {
    /// What was wanted until now.
    fn note(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.noted);
        self.demand.note(self.set.demand(), passed.as_secs_f64());
        self.noted = self.noted.max(now);
    }
}

impl Level {
    pub(super) fn new(of: &PriorityLevel, nominal: u32) -> Self {
        let queuing = of.limited.and_then(|it| it.queuing);
        let going_on = GoingOn {
            of: of.clone(),
            nominal,
            set: QueueSet::new(nominal, queuing),
            demand: Demand::default(),
            noted: Duration::ZERO,
        };
        Self { name: of.name.clone(), began: Instant::now(), going_on: Mutex::new(going_on) }
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The object's uid, whether nobody waits here, and the seats that are the level's own.
    pub(super) fn described(&self) -> (String, bool, u32) {
        let going_on = self.going_on.lock();
        (going_on.of.uid.clone(), going_on.of.limited.is_none(), going_on.nominal)
    }

    pub(super) fn is_exempt(&self) -> bool {
        self.going_on.lock().of.limited.is_none()
    }

    /// Its object says something else, or others' shares have changed.
    pub(super) fn configure(&self, of: PriorityLevel, nominal: u32) {
        let now = self.now();
        let begun = {
            let mut going_on = self.going_on.lock();
            going_on.note(now);
            let mut begun = going_on.set.set_queuing(of.limited.and_then(|it| it.queuing), now);
            // What it has borrowed or lent stands until the seats are divided again.
            if going_on.nominal != nominal {
                begun.extend(going_on.set.set_seats(nominal, now));
            }
            (going_on.of, going_on.nominal) = (of, nominal);
            begun
        };
        self.wake(begun);
    }

    /// How its queues stand; it has none where nobody waits.
    pub(super) fn queues(&self) -> Vec<Standing> {
        let going_on = self.going_on.lock();
        let queues = going_on.set.queues().map(|it| Standing {
            waiting: it.waiting.into_iter().map(|(who, width)| (who.request.clone(), width)).collect(),
            executing: it.executing,
            seats_in_use: it.seats_in_use,
            next_begin: it.next_begin,
            seats_waiting: it.seats_waiting,
            work_waiting: it.work_waiting,
        });
        queues.collect()
    }

    /// Lets all begin who wait: the level is gone.
    pub(super) fn open(&self) {
        let begun = self.going_on.lock().set.set_queuing(None, self.now());
        self.wake(begun);
    }

    pub(super) fn set_seats(&self, seats: u32) {
        let begun = self.going_on.lock().set.set_seats(seats, self.now());
        self.wake(begun);
    }

    /// What the seats are divided by; then a new time begins.
    pub(super) fn turn(&self, all: u32) -> Allotment {
        let now = self.now();
        let mut going_on = self.going_on.lock();
        going_on.note(now);
        let wanted = going_on.set.demand();
        let demand = going_on.demand.turn(wanted);
        let limited = going_on.of.limited.and_then(|it| it.borrowing_percent);
        Allotment { demand, ..Allotment::new(going_on.nominal, going_on.of.lendable_percent, limited, all) }
    }

    /// Waits for seats.
    pub(super) async fn begin(
        self: &Arc<Self>,
        flow: u64,
        width: u32,
        patience: Duration,
        counters: &Counters,
        describe: impl FnOnce() -> WaitingRequest,
    ) -> Result<Seats, Refusal> {
        let came = self.now();
        let waiting = {
            let mut going_on = self.going_on.lock();
            going_on.note(came);
            let mut told = None;
            let arrival = going_on.set.arrive(flow, width, came, || {
                let (sender, receiver) = oneshot::channel();
                told = Some(receiver);
                Waiter { told: sender, request: Arc::new(describe()) }
            });
            match arrival {
                Arrival::Begun(ticket) => {
                    counters.enqueued(1);
                    return Ok(Seats::of(self, ticket));
                }
                Arrival::Refused(refusal) => {
                    counters.not_accommodated.inc();
                    return Err(refusal);
                }
                Arrival::Queued(place) => {
                    counters.not_accommodated.inc();
                    counters.enqueued(place.n_waiting());
                    let told = told.expect("one that waits was made a channel");
                    QueuedRequest { level: self.clone(), place, told, has_begun: false }
                }
            }
        };
        let _in_queue = Queued::begin(counters, width);
        let outcome = self.wait(waiting, patience).await;
        counters.waited(self.now().saturating_sub(came), outcome.is_ok());
        outcome
    }

    async fn wait(self: &Arc<Self>, mut waiting: QueuedRequest, patience: Duration) -> Result<Seats, Refusal> {
        let told = tokio::time::timeout(patience, &mut waiting.told).await;
        waiting.has_begun = matches!(told, Ok(Ok(_)));
        match told {
            Ok(Ok(ticket)) => Ok(Seats::of(self, ticket)),
            _ => Err(Refusal::TimeOut),
        }
    }

    fn give_back(&self, ticket: Ticket) {
        let now = self.now();
        let begun = {
            let mut going_on = self.going_on.lock();
            going_on.note(now);
            going_on.set.end(ticket, now)
        };
        self.wake(begun);
    }

    /// Tells those who begin. Who has gone meanwhile gives its seats to the next.
    fn wake(&self, begun: Vec<Dispatched<Waiter>>) {
        let mut begun = begun;
        while let Some(Dispatched { who, ticket }) = begun.pop() {
            if let Err(ticket) = who.told.send(ticket) {
                let now = self.now();
                begun.extend(self.going_on.lock().set.end(ticket, now));
            }
        }
    }
}

/// Counted as one that waits until this is dropped.
struct Queued<'a> {
    counters: &'a Counters,
    width: u32,
}

impl<'a> Queued<'a> {
    fn begin(counters: &'a Counters, width: u32) -> Self {
        counters.in_queue.inc();
        counters.seats_in_queue.add(width.into());
        Self { counters, width }
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.counters.in_queue.dec();
        self.counters.seats_in_queue.sub(self.width.into());
    }
}

#[cfg(test)]
mod tests {
    use corten_flowcontrol::{Limited, Queuing};

    use super::*;

    fn level() -> Arc<Level> {
        let queuing = Queuing { queues: 1, hand_size: 1, queue_length_limit: 5 };
        let limited = Limited { borrowing_percent: None, queuing: Some(queuing) };
        let (name, uid) = (String::from("narrow"), String::new());
        Arc::new(Level::new(&PriorityLevel { name, uid, shares: 1, lendable_percent: 0, limited: Some(limited) }, 1))
    }

    fn waiting(level: &Arc<Level>) -> QueuedRequest {
        let (sender, told) = oneshot::channel();
        let request = Arc::new(WaitingRequest::of_nobody());
        let arrival = level.going_on.lock().set.arrive(1, 1, level.now(), || Waiter { told: sender, request });
        let Arrival::Queued(place) = arrival else { panic!("the only seat is taken: {arrival:?}") };
        QueuedRequest { level: level.clone(), place, told, has_begun: false }
    }

    #[test]
    fn who_goes_while_it_is_being_told_to_begin_keeps_no_seat() {
        let level = level();
        let arrival = level.going_on.lock().set.arrive(1, 1, level.now(), || unreachable!("there is a seat"));
        let Arrival::Begun(first) = arrival else { panic!("the only seat is free: {arrival:?}") };
        let mut second = waiting(&level);
        // Its turn has come, and nobody has told it yet.
        let begun = level.going_on.lock().set.end(first, level.now());
        second.go();
        level.wake(begun);
        assert_eq!(level.going_on.lock().set.seats_in_use(), 0);
    }
}
