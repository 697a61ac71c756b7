//! One priority level as it is going on: its seats, and who waits.

use std::{sync::Arc, time::Duration};

use corten_flowcontrol::{
    Allotment, Arrival, Demand, Dispatched, PriorityLevel, QueuePosition, QueueSet, Refusal, Ticket,
};
use corten_meta::Time;
use parking_lot::Mutex;
use tokio::{sync::oneshot, time::Instant};

use crate::{
    counters::Counters,
    executing::{Executing, ExecutingRequest},
    reads_and_writes::Phase,
    refusals::{RefusalRow, RefusingLevel},
    request::{DescribedRequest, Standing, StandingRequest},
    utilization::{LevelMeasures, Load, Utilization},
};

pub(super) struct Level {
    name: String,
    began: Instant,
    going_on: Mutex<GoingOn>,
    refused: Mutex<Option<RefusalRow>>,
}

struct GoingOn {
    of: PriorityLevel,
    nominal: u32,
    /// Those of the server, for all levels.
    all_seats: u32,
    set: QueueSet<Waiter>,
    executing: Executing,
    demand: Demand,
    utilization: Utilization,
    /// When demand and utilization were noted last.
    noted: Duration,
}

/// Who is told to begin, for whom, and since when it waits.
struct Waiter {
    told: oneshot::Sender<Held>,
    request: Arc<DescribedRequest>,
    came: Duration,
}

/// What a request holds that is being answered: its seats, and the place it is shown at.
#[derive(Debug)]
struct Held {
    ticket: Ticket,
    place: usize,
}

/// Those that begin, each with what it holds from now on.
type Begun = Vec<(oneshot::Sender<Held>, Held)>;

/// The seats of a request that is being answered; they are given back when this is dropped.
pub(crate) struct Seats {
    level: Arc<Level>,
    held: Option<Held>,
}

impl Seats {
    fn of(level: &Arc<Level>, held: Held) -> Self {
        Self { level: level.clone(), held: Some(held) }
    }
}

impl Drop for Seats {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            self.level.give_back(held);
        }
    }
}

/// One that waits. Where its future is dropped it leaves, or gives back what it was given meanwhile.
struct QueuedRequest {
    level: Arc<Level>,
    place: QueuePosition,
    told: oneshot::Receiver<Held>,
    /// It has taken what it holds, and stands nowhere any more.
    has_begun: bool,
}

impl QueuedRequest {
    /// `None` where it waits no more, since it has begun.
    fn leave(&self) -> Option<()> {
        let now = self.level.now();
        let begun = {
            let mut going_on = self.level.going_on.lock();
            going_on.note(now);
            let begun = going_on.set.leave(self.place, now)?;
            going_on.begun(begun, now)
        };
        self.level.wake(begun);
        Some(())
    }

    fn go(&mut self) {
        // From here on nothing is told: what came after the last look would be lost, and its seats with it.
        self.told.close();
        if self.leave().is_none()
            && let Ok(held) = self.told.try_recv()
        {
            self.level.give_back(held);
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
    /// What was wanted until now, and what there was. Before each change of either.
    fn note(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.noted);
        self.demand.note(self.set.demand(), passed.as_secs_f64());
        let load = self.load();
        self.utilization.stood(&load, passed);
        self.noted = self.noted.max(now);
    }

    fn load(&self) -> Load {
        let queuing = self.of.limited.and_then(|it| it.queuing);
        let room = queuing.map_or(1.0, |it| f64::from(it.queues.max(1)) * f64::from(it.queue_length_limit.max(1)));
        let seats = match self.set.seats() {
            0 => (f64::from(self.all_seats) / 10.0).round().max(1.0),
            seats => f64::from(seats),
        };
        Load {
            waiting: self.set.waiting(),
            executing: self.set.executing(),
            seats_in_use: self.set.seats_in_use(),
            demand: self.set.demand(),
            waiting_max: room,
            seats,
        }
    }

    /// Shows one that is answered from now on.
    fn enter(&mut self, ticket: Ticket, request: Arc<DescribedRequest>, waited: Duration) -> Held {
        let request = ExecutingRequest { request, queue: ticket.queue(), width: ticket.width(), waited };
        Held { ticket, place: self.executing.enter(request) }
    }

    fn begun(&mut self, begun: Vec<Dispatched<Waiter>>, now: Duration) -> Begun {
        let mut all = Begun::with_capacity(begun.len());
        for Dispatched { who: Waiter { told, request, came }, ticket } in begun {
            all.push((told, self.enter(ticket, request, now.saturating_sub(came))));
        }
        all
    }
}

impl Level {
    /// With so many of the server's `all_seats`.
    pub(super) fn new(of: &PriorityLevel, nominal: u32, all_seats: u32) -> Self {
        let queuing = of.limited.and_then(|it| it.queuing);
        let going_on = GoingOn {
            of: of.clone(),
            nominal,
            all_seats,
            set: QueueSet::new(nominal, queuing),
            executing: Executing::default(),
            demand: Demand::default(),
            utilization: Utilization::default(),
            noted: Duration::ZERO,
        };
        Self { name: of.name.clone(), began: Instant::now(), going_on: Mutex::new(going_on), refused: Mutex::default() }
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
            going_on.begun(begun, now)
        };
        self.wake(begun);
    }

    /// How its queues stand; it has none where nobody waits.
    pub(super) fn queues(&self) -> Vec<Standing> {
        let going_on = self.going_on.lock();
        let queues = going_on.set.queues().map(|it| Standing {
            waiting: it.waiting.len(),
            executing: it.executing,
            seats_in_use: it.seats_in_use,
            next_begin: it.next_begin,
            seats_waiting: it.seats_waiting,
            work_waiting: it.work_waiting,
        });
        queues.collect()
    }

    /// Those of each queue, first who waits and then who is answered, and those without a queue behind them.
    pub(super) fn requests(&self) -> Vec<StandingRequest> {
        let going_on = self.going_on.lock();
        let mut all = Vec::new();
        for (queue, it) in going_on.set.queues().enumerate() {
            let waiting = it.waiting.into_iter().enumerate();
            all.extend(waiting.map(|(index, (who, width))| StandingRequest {
                queue: Some(queue),
                index: Some(index),
                request: who.request.clone(),
                width,
                waited: Duration::ZERO,
            }));
        }
        all.extend(going_on.executing.iter().map(|it| StandingRequest {
            queue: it.queue.and_then(|it| going_on.set.index_of(it)),
            index: None,
            request: it.request.clone(),
            width: it.width,
            waited: it.waited,
        }));
        drop(going_on);
        let or_last = |it: Option<usize>| it.unwrap_or(usize::MAX);
        all.sort_by_key(|it| (or_last(it.queue), or_last(it.index)));
        all
    }

    /// For how long it was how full until now.
    pub(super) fn measured(&self) -> LevelMeasures {
        let now = self.now();
        let mut going_on = self.going_on.lock();
        going_on.note(now);
        LevelMeasures {
            utilization: going_on.utilization.counted(),
            virtual_now: going_on.set.virtual_now(),
            last_dispatch: going_on.set.last_dispatch(),
        }
    }

    /// Lets all begin who wait: the level is gone.
    pub(super) fn open(&self) {
        self.change(|set, now| set.set_queuing(None, now));
    }

    pub(super) fn set_seats(&self, seats: u32) {
        self.change(|set, now| set.set_seats(seats, now));
    }

    fn change(&self, change: impl FnOnce(&mut QueueSet<Waiter>, Duration) -> Vec<Dispatched<Waiter>>) {
        let now = self.now();
        let begun = {
            let mut going_on = self.going_on.lock();
            going_on.note(now);
            let begun = change(&mut going_on.set, now);
            going_on.begun(begun, now)
        };
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

    /// Takes seats without waiting: as in an exempt level.
    pub(super) fn begin_exempt(self: &Arc<Self>, width: u32, request: Arc<DescribedRequest>) -> Seats {
        let now = self.now();
        let mut going_on = self.going_on.lock();
        going_on.note(now);
        let ticket = going_on.set.begin_exempt(width, now);
        Seats::of(self, going_on.enter(ticket, request, Duration::ZERO))
    }

    /// Waits for seats.
    pub(super) async fn begin(
        self: &Arc<Self>,
        flow: u64,
        width: u32,
        patience: Duration,
        counters: &Counters,
        request: Arc<DescribedRequest>,
    ) -> Result<Seats, Refusal> {
        let (came, is_mutating) = (self.now(), request.is_mutating());
        let waiting = {
            let mut going_on = self.going_on.lock();
            going_on.note(came);
            let mut told = None;
            let arrival = going_on.set.arrive(flow, width, came, || {
                let (sender, receiver) = oneshot::channel();
                told = Some(receiver);
                Waiter { told: sender, request: request.clone(), came }
            });
            match arrival {
                Arrival::Begun(ticket) => {
                    counters.enqueued(1);
                    return Ok(Seats::of(self, going_on.enter(ticket, request, Duration::ZERO)));
                }
                Arrival::Refused(refusal) => {
                    counters.not_accommodated.inc();
                    drop(going_on);
                    self.note_refused(refusal, &request);
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
        let _in_queue = Queued::begin(counters, width, is_mutating);
        let outcome = self.wait(waiting, patience).await;
        counters.waited(self.now().saturating_sub(came), outcome.is_ok());
        if let Err(refusal) = outcome {
            self.note_refused(refusal, &request);
        }
        outcome
    }

    /// As of when the request came: it waits no longer than a row lasts.
    fn note_refused(&self, refusal: Refusal, request: &DescribedRequest) {
        RefusalRow::note(&mut self.refused.lock(), refusal, request, request.came());
    }

    /// What it turned away lately.
    pub(super) fn refusing(&self, now: Time) -> Option<RefusingLevel> {
        let row = self.refused.lock().clone().filter(|it| it.goes_on(now))?;
        let seats = self.going_on.lock().set.seats();
        Some(RefusingLevel { level: self.name.clone(), row, seats })
    }

    async fn wait(self: &Arc<Self>, mut waiting: QueuedRequest, patience: Duration) -> Result<Seats, Refusal> {
        let told = tokio::time::timeout(patience, &mut waiting.told).await;
        waiting.has_begun = matches!(told, Ok(Ok(_)));
        match told {
            Ok(Ok(held)) => Ok(Seats::of(self, held)),
            _ => Err(Refusal::TimeOut),
        }
    }

    fn give_back(&self, held: Held) {
        self.wake(self.ended(held));
    }

    /// Whoever begins now that one has been answered.
    fn ended(&self, Held { ticket, place }: Held) -> Begun {
        let now = self.now();
        let mut going_on = self.going_on.lock();
        going_on.note(now);
        going_on.executing.leave(place);
        let begun = going_on.set.end(ticket, now);
        going_on.begun(begun, now)
    }

    /// Tells those who begin. Who has gone meanwhile gives its seats to the next.
    fn wake(&self, mut begun: Begun) {
        while let Some((told, held)) = begun.pop() {
            if let Err(held) = told.send(held) {
                begun.extend(self.ended(held));
            }
        }
    }
}

/// Counted as one that waits until this is dropped.
struct Queued<'a> {
    counters: &'a Counters,
    width: u32,
    is_mutating: bool,
}

impl<'a> Queued<'a> {
    fn begin(counters: &'a Counters, width: u32, is_mutating: bool) -> Self {
        counters.in_queue.inc();
        counters.seats_in_queue.add(width.into());
        counters.requests.begin(Phase::Waiting, is_mutating);
        Self { counters, width, is_mutating }
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.counters.in_queue.dec();
        self.counters.seats_in_queue.sub(self.width.into());
        self.counters.requests.end(Phase::Waiting, self.is_mutating);
    }
}

#[cfg(test)]
mod tests {
    use corten_flowcontrol::{Limited, Queuing};
    use corten_meta::Time;

    use super::*;
    use crate::request::RequestWords;

    fn level() -> Arc<Level> {
        let queuing = Queuing { queues: 1, hand_size: 1, queue_length_limit: 5 };
        let limited = Limited { borrowing_percent: None, queuing: Some(queuing) };
        let (name, uid) = (String::from("narrow"), String::new());
        let of = PriorityLevel { name, uid, shares: 1, lendable_percent: 0, limited: Some(limited) };
        Arc::new(Level::new(&of, 1, 10))
    }

    fn request() -> Arc<DescribedRequest> {
        Arc::new(DescribedRequest::new(Time::from_unix_seconds(0), &RequestWords::default()))
    }

    fn first(level: &Arc<Level>) -> Held {
        let mut going_on = level.going_on.lock();
        let arrival = going_on.set.arrive(1, 1, level.now(), || unreachable!("there is a seat"));
        let Arrival::Begun(ticket) = arrival else { panic!("the only seat is free: {arrival:?}") };
        going_on.enter(ticket, request(), Duration::ZERO)
    }

    fn waiting(level: &Arc<Level>) -> QueuedRequest {
        let (sender, told) = oneshot::channel();
        let came = level.now();
        let waiter = || Waiter { told: sender, request: request(), came };
        let arrival = level.going_on.lock().set.arrive(1, 1, came, waiter);
        let Arrival::Queued(place) = arrival else { panic!("the only seat is taken: {arrival:?}") };
        QueuedRequest { level: level.clone(), place, told, has_begun: false }
    }

    #[test]
    fn who_goes_while_it_is_being_told_to_begin_keeps_no_seat() {
        let level = level();
        let first = first(&level);
        let mut second = waiting(&level);
        // Its turn has come, and nobody has told it yet.
        let begun = level.ended(first);
        second.go();
        level.wake(begun);
        assert_eq!(level.going_on.lock().set.seats_in_use(), 0);
        assert!(level.requests().is_empty());
    }

    #[test]
    fn who_waits_and_who_is_answered_is_shown() {
        let level = level();
        let first = first(&level);
        let second = waiting(&level);
        let exempt = level.begin_exempt(1, request());
        let shown = || -> Vec<_> { level.requests().iter().map(|it| (it.queue, it.index)).collect() };
        assert_eq!(shown(), [(Some(0), Some(0)), (Some(0), None), (None, None)]);
        drop(exempt);
        level.give_back(first);
        assert_eq!(shown(), [(Some(0), None)], "the second is answered now");
        drop(second);
        assert_eq!(shown(), []);
    }
}
