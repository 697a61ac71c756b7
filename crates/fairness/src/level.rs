//! One priority level as it is going on: its seats, who waits, and what is counted.

use std::{collections::BTreeMap, fmt::Write, sync::Arc, time::Duration};

use corten_flowcontrol::{Allotment, Arrival, Begun, Demand, Place, PriorityLevel, QueueSet, Refusal, Ticket};
use parking_lot::Mutex;
use tokio::{sync::oneshot, time::Instant};

pub(super) struct Level {
    name: String,
    began: Instant,
    going_on: Mutex<GoingOn>,
}

struct GoingOn {
    of: PriorityLevel,
    nominal: u32,
    set: QueueSet<oneshot::Sender<Ticket>>,
    demand: Demand,
    /// When the demand was noted last.
    noted: Duration,
    counts: BTreeMap<String, Counts>,
}

/// What is counted of one flow schema.
#[derive(Default)]
struct Counts {
    dispatched: u64,
    rejected: BTreeMap<Refusal, u64>,
    waited_seconds: f64,
    executed: u64,
    executed_seconds: f64,
}

/// More flow schemas than these of one level are counted together, under no name.
const COUNTED_MAX: usize = 256;

/// The seats of a request that is being answered; they are given back when this is dropped.
pub struct Seats(Option<Taken>);

struct Taken {
    level: Arc<Level>,
    schema: String,
    ticket: Ticket,
    since: Duration,
}

impl Drop for Seats {
    fn drop(&mut self) {
        let Some(Taken { level, schema, ticket, since }) = self.0.take() else { return };
        let now = level.now();
        let begun = {
            let mut going_on = level.going_on.lock();
            going_on.note(now);
            let counts = going_on.counts(&schema);
            counts.executed += 1;
            counts.executed_seconds += now.saturating_sub(since).as_secs_f64();
            going_on.set.end(ticket, now)
        };
        level.wake(begun);
    }
}

/// One that waits. Where its future is dropped it leaves, or gives back what it was given meanwhile.
struct Waiting {
    level: Arc<Level>,
    place: Place,
    told: oneshot::Receiver<Ticket>,
    /// It has taken its ticket, and stands nowhere any more.
    has_begun: bool,
}

impl Waiting {
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

impl Drop for Waiting {
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

    fn counts(&mut self, schema: &str) -> &mut Counts {
        if self.counts.contains_key(schema) || self.counts.len() < COUNTED_MAX {
            if !self.counts.contains_key(schema) {
                self.counts.insert(schema.to_owned(), Counts::default());
            }
            return self.counts.get_mut(schema).expect("it is there");
        }
        self.counts.entry(String::new()).or_default()
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
            counts: BTreeMap::new(),
        };
        Self { name: of.name.clone(), began: Instant::now(), going_on: Mutex::new(going_on) }
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub(super) fn uid(&self) -> String {
        self.going_on.lock().of.uid.clone()
    }

    pub(super) fn is_exempt(&self) -> bool {
        self.going_on.lock().of.limited.is_none()
    }

    pub(super) fn nominal(&self) -> u32 {
        self.going_on.lock().nominal
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
        self: Arc<Self>,
        schema: &str,
        flow: u64,
        width: u32,
        patience: Duration,
    ) -> Result<Seats, Refusal> {
        let came = self.now();
        let waiting = {
            let mut going_on = self.going_on.lock();
            going_on.note(came);
            if going_on.of.limited.is_none() {
                going_on.counts(schema).dispatched += 1;
                return Ok(Seats(None));
            }
            let mut told = None;
            let arrival = going_on.set.arrive(flow, width, came, || {
                let (sender, receiver) = oneshot::channel();
                told = Some(receiver);
                sender
            });
            match arrival {
                Arrival::Begun(ticket) => {
                    going_on.counts(schema).dispatched += 1;
                    drop(going_on);
                    return Ok(Seats(Some(Taken { level: self, schema: schema.to_owned(), ticket, since: came })));
                }
                Arrival::Refused(refusal) => {
                    *going_on.counts(schema).rejected.entry(refusal).or_default() += 1;
                    return Err(refusal);
                }
                Arrival::Queued(place) => {
                    let told = told.expect("one that waits was made a channel");
                    Waiting { level: self.clone(), place, told, has_begun: false }
                }
            }
        };
        self.wait(schema, came, waiting, patience).await
    }

    async fn wait(
        self: Arc<Self>,
        schema: &str,
        came: Duration,
        mut waiting: Waiting,
        patience: Duration,
    ) -> Result<Seats, Refusal> {
        let told = tokio::time::timeout(patience, &mut waiting.told).await;
        waiting.has_begun = matches!(told, Ok(Ok(_)));
        let since = self.now();
        let mut going_on = self.going_on.lock();
        let counts = going_on.counts(schema);
        match told {
            Ok(Ok(ticket)) => {
                counts.dispatched += 1;
                counts.waited_seconds += since.saturating_sub(came).as_secs_f64();
                drop(going_on);
                Ok(Seats(Some(Taken { level: self, schema: schema.to_owned(), ticket, since })))
            }
            _ => {
                *counts.rejected.entry(Refusal::TimeOut).or_default() += 1;
                Err(Refusal::TimeOut)
            }
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
    fn wake(&self, begun: Vec<Begun<oneshot::Sender<Ticket>>>) {
        let mut begun = begun;
        while let Some(Begun { who, ticket }) = begun.pop() {
            if let Err(ticket) = who.send(ticket) {
                let now = self.now();
                begun.extend(self.going_on.lock().set.end(ticket, now));
            }
        }
    }
}

/// Under the names that kube-apiserver uses.
pub(super) fn write_metrics<'a>(out: &mut String, levels: impl Iterator<Item = &'a Level> + Clone) -> std::fmt::Result {
    type Gauge = (&'static str, &'static str, fn(&GoingOn) -> u32);
    const GAUGES: &[Gauge] = &[
        (
            "apiserver_flowcontrol_current_executing_requests",
            "Number of requests in initial (for a WATCH) or any (for a non-WATCH) execution stage in the API Priority and Fairness subsystem",
            |it| it.set.executing(),
        ),
        (
            "apiserver_flowcontrol_current_executing_seats",
            "Concurrency (number of seats) occupied by the currently executing (initial stage for a WATCH, any stage otherwise) requests in the API Priority and Fairness subsystem",
            |it| it.set.seats_in_use(),
        ),
        (
            "apiserver_flowcontrol_current_inqueue_requests",
            "Number of requests currently pending in queues of the API Priority and Fairness subsystem",
            |it| it.set.waiting(),
        ),
        (
            "apiserver_flowcontrol_current_limit_seats",
            "current derived number of execution seats available to each priority level",
            |it| it.set.seats(),
        ),
        (
            "apiserver_flowcontrol_nominal_limit_seats",
            "Nominal number of execution seats configured for each priority level",
            |it| it.nominal,
        ),
    ];
    for (name, help, value) in GAUGES {
        writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge")?;
        for level in levels.clone() {
            let value = value(&level.going_on.lock());
            writeln!(out, "{name}{{priority_level=\"{}\"}} {value}", level.name)?;
        }
    }
    write_counts(out, levels)
}

fn write_counts<'a>(out: &mut String, levels: impl Iterator<Item = &'a Level> + Clone) -> std::fmt::Result {
    type Counter = (&'static str, &'static str, fn(&Counts) -> f64);
    #[expect(clippy::cast_precision_loss, reason = "a counter of a float's width, as Prometheus has them")]
    const COUNTERS: &[Counter] = &[
        (
            "apiserver_flowcontrol_dispatched_requests_total",
            "Number of requests executed by API Priority and Fairness subsystem",
            |it| it.dispatched as f64,
        ),
        (
            "apiserver_flowcontrol_request_wait_duration_seconds_sum",
            "Length of time a request spent waiting in its queue",
            |it| it.waited_seconds,
        ),
        (
            "apiserver_flowcontrol_request_execution_seconds_count",
            "Duration of initial stage (for a WATCH) or any (for a non-WATCH) stage of request execution in the API Priority and Fairness subsystem",
            |it| it.executed as f64,
        ),
        (
            "apiserver_flowcontrol_request_execution_seconds_sum",
            "Duration of initial stage (for a WATCH) or any (for a non-WATCH) stage of request execution in the API Priority and Fairness subsystem",
            |it| it.executed_seconds,
        ),
    ];
    for (name, help, value) in COUNTERS {
        writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter")?;
        for level in levels.clone() {
            for (schema, counts) in &level.going_on.lock().counts {
                let labels = format!("flow_schema=\"{schema}\",priority_level=\"{}\"", level.name);
                writeln!(out, "{name}{{{labels}}} {}", value(counts))?;
            }
        }
    }
    let name = "apiserver_flowcontrol_rejected_requests_total";
    writeln!(
        out,
        "# HELP {name} Number of requests rejected by API Priority and Fairness subsystem\n# TYPE {name} counter"
    )?;
    for level in levels {
        for (schema, counts) in &level.going_on.lock().counts {
            for (refusal, number) in &counts.rejected {
                let labels = format!("flow_schema=\"{schema}\",priority_level=\"{}\"", level.name);
                writeln!(out, "{name}{{{labels},reason=\"{}\"}} {number}", refusal.as_str())?;
            }
        }
    }
    Ok(())
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

    fn waiting(level: &Arc<Level>) -> Waiting {
        let (sender, told) = oneshot::channel();
        let arrival = level.going_on.lock().set.arrive(1, 1, level.now(), || sender);
        let Arrival::Queued(place) = arrival else { panic!("the only seat is taken: {arrival:?}") };
        Waiting { level: level.clone(), place, told, has_begun: false }
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
