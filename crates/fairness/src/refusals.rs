//! Which requests a level turned away lately: what whoever asks why is told.

use std::time::Duration;

use corten_flowcontrol::Refusal;
use corten_meta::Time;
use corten_reconcile::{Actor, Wait};

use crate::request::DescribedRequest;

/// A row of refusals has ended once there was none for so long.
const ROW_ENDS_AFTER: Duration = Duration::from_secs(60);

/// A row of them, of one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefusalRow {
    since: Time,
    /// Of the newest.
    last: Time,
    refusal: &'static str,
    user: String,
    flow_schema: String,
    n: u64,
}

/// A level that turns requests away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusingLevel {
    pub level: String,
    pub(crate) row: RefusalRow,
    pub(crate) seats: u32,
}

impl RefusalRow {
    pub(crate) fn note(row: &mut Option<Self>, refusal: Refusal, of: &DescribedRequest, now: Time) {
        // Who went away was not turned away.
        if refusal == Refusal::Cancelled {
            return;
        }
        let before = row.take().filter(|it| it.goes_on(now));
        let (since, n) = before.map_or((now, 0), |it| (it.since, it.n));
        let words = of.words();
        *row = Some(Self {
            since,
            last: now,
            refusal: refusal.as_str(),
            user: words.user.to_owned(),
            flow_schema: words.flow_schema.to_owned(),
            n: n.saturating_add(1),
        });
    }

    pub(crate) fn goes_on(&self, now: Time) -> bool {
        now <= self.last || now.since(self.last) <= ROW_ENDS_AFTER
    }
}

impl RefusingLevel {
    /// The FlowSchema that led the newest of them there.
    pub fn flow_schema(&self) -> &str {
        &self.row.flow_schema
    }

    pub fn wait(&self) -> Wait {
        let RefusalRow { since, refusal, user, flow_schema, n, .. } = &self.row;
        let requests = if *n == 1 { "1 request was".to_owned() } else { format!("{n} requests were") };
        let seats = if self.seats == 1 { "its 1 seat is" } else { &format!("its {} seats are", self.seats) };
        let level = &self.level;
        let message = format!(
            "{requests} turned away ({refusal}) from priority level {level}, for {seats} too few; the newest was of user {user:?}, by flow schema {flow_schema}"
        );
        let mut wait = Wait::new("RequestsRefused", message, Actor::Operator);
        wait.since = Some(*since);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::RequestWords;

    #[test]
    fn a_row_is_told_until_a_minute_has_passed_without_one() {
        let at = |seconds| Time::from_unix_seconds(seconds);
        let of = |user| {
            DescribedRequest::new(at(0), &RequestWords { user, flow_schema: "greedy", ..RequestWords::default() })
        };
        let mut row = None;
        RefusalRow::note(&mut row, Refusal::QueueFull, &of("ann"), at(100));
        RefusalRow::note(&mut row, Refusal::Cancelled, &of("gone"), at(110));
        RefusalRow::note(&mut row, Refusal::TimeOut, &of("bob"), at(150));
        let told = row.clone().expect("there is a row");
        assert!(told.goes_on(at(210)) && !told.goes_on(at(211)) && told.goes_on(at(149)));
        let wait = RefusingLevel { level: "tiny".into(), row: told, seats: 3 }.wait();
        let says = "2 requests were turned away (time-out) from priority level tiny, for its 3 seats are too few; the newest was of user \"bob\", by flow schema greedy";
        assert_eq!((&*wait.message, wait.since), (says, Some(at(100))));
        RefusalRow::note(&mut row, Refusal::QueueFull, &of("ann"), at(300));
        assert_eq!(row.map(|it| (it.since, it.n)), Some((at(300), 1)));
    }
}
