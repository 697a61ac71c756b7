//! What goes on in the priority levels, in the tables of kube-apiserver's `/debug/api_priority_and_fairness/`.

use std::{fmt::Write, sync::Arc};

use corten_flowcontrol::Refusal;

use crate::{configured::Configured, level::Level, waiting::Standing};

/// Which table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dump {
    PriorityLevels,
    Queues,
    /// Those that wait: who is being answered is counted, and stands nowhere.
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
    let waiting: usize = queues.iter().map(|it| it.waiting.len()).sum();
    vec![
        level.name().to_owned(),
        queues.iter().filter(|it| !it.waiting.is_empty()).count().to_string(),
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
            it.waiting.len().to_string(),
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
    let mut rows = Vec::new();
    for (queue, standing) in level.queues().into_iter().enumerate() {
        for (index, (it, width)) in standing.waiting.into_iter().enumerate() {
            let came = it.came.micro().to_string();
            let numbers = [queue.to_string(), index.to_string(), it.distinguisher.clone(), came, width.to_string()];
            let mut row = vec![level.name().to_owned(), it.flow_schema.clone()];
            row.extend(numbers);
            // Nothing is held after an answer, and none of them has begun.
            row.extend(["0", "0s", "0001-01-01T00:00:00Z"].map(str::to_owned));
            if includes_details {
                let details = [
                    &it.user,
                    &it.verb,
                    &it.path,
                    &it.namespace,
                    &it.name,
                    &it.api_version,
                    &it.resource,
                    &it.subresource,
                ];
                row.extend(details.map(|it| one_line(it)));
            }
            rows.push(row);
        }
    }
    rows
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
