//! What goes on in the priority levels, in the tables of kube-apiserver's `/debug/api_priority_and_fairness/`.

use std::{fmt::Write, sync::Arc};

use corten_flowcontrol::Refusal;

use crate::{
    configured::Configured,
    level::Level,
    request::{Standing, StandingRequest},
};

/// Which table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dump {
    PriorityLevels,
    Queues,
    /// Those that wait, and those that are being answered.
    Requests {
        includes_details: bool,
    },
}

type Row = Vec<String>;

impl Dump {
    pub(crate) fn table(self, configured: &Configured) -> String {
        let levels = configured.levels.values();
        match self {
            Self::PriorityLevels => table(
                "PriorityLevelName ActiveQueues IsIdle IsQuiescing WaitingRequests ExecutingRequests DispatchedRequests \
                 RejectedRequests TimedoutRequests CancelledRequests",
                levels.map(|it| of_level(configured, it)),
            ),
            Self::Queues => table(
                "PriorityLevelName Index PendingRequests ExecutingRequests SeatsInUse NextDispatchR InitialSeatsSum \
                 MaxSeatsSum TotalWorkSum",
                levels.flat_map(|it| of_queues(it)),
            ),
            // Upstream's spelling.
            Self::Requests { includes_details: false } => table(REQUEST, levels.flat_map(|it| of_requests(it, false))),
            Self::Requests { includes_details: true } => table(
                &format!("{REQUEST} UserName Verb APIPath Namespace Name APIVersion Resource SubResource"),
                levels.flat_map(|it| of_requests(it, true)),
            ),
        }
    }
}

const REQUEST: &str = "PriorityLevelName FlowSchemaName QueueIndex RequestIndexInQueue FlowDistingsher ArriveTime InitialSeats \
                       FinalSeats AdditionalLatency StartTime";

/// What was counted since the level's flow schemas led there.
fn of_level(configured: &Configured, level: &Arc<Level>) -> Row {
    let flows = || configured.flows.iter().filter(|it| Arc::ptr_eq(&it.level, level)).map(|it| &it.counters);
    let executing: i64 = flows().map(|it| it.executing.get()).sum();
    let dispatched: u64 = flows().map(|it| it.dispatched.get()).sum();
    let refused = |of: &[Refusal]| flows().flat_map(|it| of.iter().map(|of| it.n_refused(*of))).sum::<u64>();
    let queues = level.queues();
    let waiting: usize = queues.iter().map(|it| it.waiting).sum();
    vec![
        level.name().to_owned(),
        queues.iter().filter(|it| it.waiting > 0).count().to_string(),
        (executing == 0 && waiting == 0).to_string(),
        // Whoever waits in a level that is gone begins at once.
        false.to_string(),
        waiting.to_string(),
        executing.to_string(),
        dispatched.to_string(),
        refused(&[Refusal::ConcurrencyLimit, Refusal::QueueFull]).to_string(),
        refused(&[Refusal::TimeOut]).to_string(),
        refused(&[Refusal::Cancelled]).to_string(),
    ]
}

fn of_queues(level: &Level) -> Vec<Row> {
    let queues = level.queues().into_iter().enumerate();
    let row = |(index, it): (usize, Standing)| {
        vec![
            level.name().to_owned(),
            index.to_string(),
            it.waiting.to_string(),
            it.executing.to_string(),
            it.seats_in_use.to_string(),
            seat_seconds(it.next_begin),
            it.seats_waiting.to_string(),
            it.seats_waiting.to_string(),
            seat_seconds(it.work_waiting),
        ]
    };
    queues.map(row).collect()
}

fn of_requests(level: &Level, includes_details: bool) -> Vec<Row> {
    level.requests().iter().map(|it| of_request(level.name(), it, includes_details)).collect()
}

/// One that is answered stands at no place of its queue, and one without a queue in none: -1, as upstream has it.
fn of_request(level: &str, standing: &StandingRequest, includes_details: bool) -> Row {
    let it = standing.request.words();
    let place = |it: Option<usize>| it.map_or_else(|| "-1".to_owned(), |it| it.to_string());
    let came = standing.request.came();
    let began = match standing.index {
        // It has not begun.
        Some(_) => "0001-01-01T00:00:00Z".to_owned(),
        None => came.after(standing.waited).micro().to_string(),
    };
    let mut row = vec![
        level.to_owned(),
        it.flow_schema.to_owned(),
        place(standing.queue),
        place(standing.index),
        one_line(it.distinguisher),
        came.micro().to_string(),
        standing.width.to_string(),
    ];
    // Nothing is held after an answer.
    row.extend(["0", "0s"].map(str::to_owned));
    row.push(began);
    if includes_details {
        let api_version = match (it.api_group, it.api_version) {
            ("", version) => version.to_owned(),
            (group, version) => format!("{group}/{version}"),
        };
        let details = [it.user, it.verb, it.path, it.namespace, it.name, &api_version, it.resource, it.subresource];
        row.extend(details.map(one_line));
    }
    row
}

fn seat_seconds(it: f64) -> String {
    format!("{it:.8}ss")
}

/// Of what a client chose: a cell is no row.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// As Go's `tabwriter` sets it, with columns of eight characters at least.
fn table(head: &str, rows: impl Iterator<Item = Row>) -> String {
    const LEAST: usize = 8;
    let head: Row = head.split_whitespace().map(str::to_owned).collect();
    let rows: Vec<Row> = std::iter::once(head).chain(rows).collect();
    let n_columns = rows[0].len();
    let width = |column: usize| rows.iter().map(|it| it[column].chars().count() + 2).max().unwrap_or(0).max(LEAST);
    let widths: Vec<usize> = (0..n_columns).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        for (cell, width) in row.iter().zip(&widths).take(n_columns - 1) {
            write!(text, "{:<width$}", format!("{cell},")).expect("a text grows");
        }
        writeln!(text, "{}", row[n_columns - 1]).expect("a text grows");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let row = |it: &str| it.split(' ').map(str::to_owned).collect();
        let rows = ["workload-high 0 true", "exempt 120 false"].map(row).into_iter();
        let expected = "\
Name,          N,      IsIdle
workload-high, 0,      true
exempt,        120,    false
";
        assert_eq!(table("Name N IsIdle", rows), expected);
        assert_eq!(one_line("a\nb"), "a b");
    }
}
