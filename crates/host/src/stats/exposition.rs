//! Writes Prometheus' text format.

use std::fmt::{Display, Write};

use corten_reconcile::{Tally, TallyRow};

#[derive(Default)]
pub(crate) struct Text(String);

/// One sample of a metric.
pub(crate) struct Sample<'a> {
    pub(crate) labels: Vec<(&'a str, &'a str)>,
    pub(crate) value: f64,
    pub(crate) unix_millis: Option<i64>,
}

impl<'a> Sample<'a> {
    pub(crate) fn new(labels: &[(&'a str, &'a str)], value: f64) -> Self {
        Self { labels: labels.to_vec(), value, unix_millis: None }
    }

    pub(crate) fn at(self, unix_millis: i64) -> Self {
        Self { unix_millis: Some(unix_millis), ..self }
    }
}

/// Times, counted into buckets: `bounds` in order, and how many took no longer than each, but longer than the one before.
#[derive(Default)]
pub(crate) struct Times {
    in_bucket: Vec<u64>,
    n: u64,
    seconds: f64,
}

impl Times {
    pub(crate) fn count(&mut self, bounds: &[f64], seconds: f64) {
        self.n += 1;
        self.seconds += seconds;
        self.in_bucket.resize(bounds.len(), 0);
        if let Some(bucket) = bounds.iter().position(|it| seconds <= *it) {
            self.in_bucket[bucket] += 1;
        }
    }
}

impl Text {
    /// A histogram by one label; without any times nothing is written.
    pub(crate) fn histogram<'a>(
        &mut self,
        (name, help): (&str, &str),
        bounds: &[f64],
        label: &str,
        rows: impl IntoIterator<Item = (&'a str, &'a Times)>,
    ) {
        for (at, (value, times)) in rows.into_iter().enumerate() {
            if at == 0 {
                self.line(format_args!("# HELP {name} {help}\n# TYPE {name} histogram"));
            }
            let mut n = 0;
            let up_to = bounds.iter().zip(&times.in_bucket).map(|(bound, count)| {
                n += count;
                (bound.to_string(), n)
            });
            let buckets: Vec<(String, u64)> = up_to.chain([("+Inf".to_owned(), times.n)]).collect();
            for (bound, n) in &buckets {
                self.sample(&format!("{name}_bucket"), &Sample::new(&[(label, value), ("le", &**bound)], number(*n)));
            }
            self.sample(&format!("{name}_sum"), &Sample::new(&[(label, value)], times.seconds));
            self.sample(&format!("{name}_count"), &Sample::new(&[(label, value)], number(times.n)));
        }
    }

    /// What somebody has counted; without any rows nothing is written.
    pub(crate) fn tally(&mut self, tally: &Tally) {
        let metric = tally.metric;
        if tally.rows().is_empty() {
            return;
        }
        let (name, help, kind) =
            (metric.name, metric.help, if metric.kind.bounds().is_empty() { "counter" } else { "histogram" });
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
        for row in tally.rows() {
            let labels: Vec<(&str, &str)> =
                metric.labels.iter().copied().zip(row.labels.iter().map(String::as_str)).collect();
            match metric.kind.bounds() {
                [] => self.sample(name, &Sample::new(&labels, row.sum)),
                _ => self.distribution(name, &labels, &row.up_to(metric), row),
            }
        }
    }

    fn distribution(&mut self, name: &str, labels: &[(&str, &str)], up_to: &[(f64, u64)], row: &TallyRow) {
        let bounds = up_to.iter().map(|(bound, n)| (bound.to_string(), *n));
        let buckets: Vec<(String, u64)> = bounds.chain([("+Inf".to_owned(), row.n)]).collect();
        for (bound, n) in &buckets {
            let labels = [labels, &[("le", &**bound)]].concat();
            self.sample(&format!("{name}_bucket"), &Sample::new(&labels, number(*n)));
        }
        self.sample(&format!("{name}_sum"), &Sample::new(labels, row.sum));
        self.sample(&format!("{name}_count"), &Sample::new(labels, number(row.n)));
    }

    /// A metric with its samples; without any nothing is written.
    pub(crate) fn metric<'a>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        samples: impl IntoIterator<Item = Sample<'a>>,
    ) {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return;
        }
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
        for sample in samples {
            self.sample(name, &sample);
        }
    }

    fn sample(&mut self, name: &str, sample: &Sample<'_>) {
        self.0.push_str(name);
        for (at, (label, value)) in sample.labels.iter().enumerate() {
            let before = if at == 0 { '{' } else { ',' };
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{before}{label}=\"{value}\"");
        }
        if !sample.labels.is_empty() {
            self.0.push('}');
        }
        let value = if sample.value.is_infinite() { "+Inf".to_owned() } else { sample.value.to_string() };
        match sample.unix_millis {
            Some(at) => self.line(format_args!(" {value} {at}")),
            None => self.line(format_args!(" {value}")),
        }
    }

    fn line(&mut self, line: impl Display) {
        let _ = writeln!(self.0, "{line}");
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

#[expect(clippy::cast_precision_loss, reason = "the format has no other numbers")]
pub(crate) fn number(value: u64) -> f64 {
    value as f64
}

pub(crate) fn seconds(nanos: u64) -> f64 {
    number(nanos) / 1e9
}

#[cfg(test)]
mod tests {
    use corten_reconcile::LoopMetric;

    use super::*;

    static ENDED: LoopMetric = LoopMetric {
        name: "ended_total",
        help: "Ended.",
        labels: &["code"],
        kind: corten_reconcile::MetricKind::Counter,
    };
    static TOOK: LoopMetric = LoopMetric {
        name: "took_seconds",
        help: "Took.",
        labels: &["verb"],
        kind: corten_reconcile::MetricKind::Histogram(&[0.5]),
    };

    #[test]
    fn what_others_count_is_told_as_they_name_it() {
        let (mut ended, mut took) = (Tally::new(&ENDED, 9), Tally::new(&TOOK, 9));
        let mut text = Text::default();
        text.tally(&ended);
        ended.count(&["200"], 1.0);
        ended.count(&["200"], 1.0);
        [0.25, 4.0].iter().for_each(|it| took.count(&["GET"], *it));
        [ended, took].iter().for_each(|it| text.tally(it));
        text.metric("left_seconds", "gauge", "Left.", [Sample::new(&[], f64::INFINITY)]);
        let expected = "# HELP ended_total Ended.\n# TYPE ended_total counter\nended_total{code=\"200\"} 2\n\
            # HELP took_seconds Took.\n# TYPE took_seconds histogram\n\
            took_seconds_bucket{verb=\"GET\",le=\"0.5\"} 1\ntook_seconds_bucket{verb=\"GET\",le=\"+Inf\"} 2\n\
            took_seconds_sum{verb=\"GET\"} 4.25\ntook_seconds_count{verb=\"GET\"} 2\n\
            # HELP left_seconds Left.\n# TYPE left_seconds gauge\nleft_seconds +Inf\n";
        assert_eq!(text.into_string(), expected);
    }

    #[test]
    fn a_histogram_has_all_that_took_no_longer_in_each_bucket() {
        const BOUNDS: [f64; 2] = [0.5, 2.0];
        let mut times = Times::default();
        [0.25, 1.0, 2.0, 4.0].iter().for_each(|it| times.count(&BOUNDS, *it));
        let mut text = Text::default();
        text.histogram(("took_seconds", "How long it took."), &BOUNDS, "what", [("start", &times)]);
        text.histogram(("never_seconds", "Nothing."), &BOUNDS, "what", []);
        let expected = "# HELP took_seconds How long it took.\n# TYPE took_seconds histogram\n\
            took_seconds_bucket{what=\"start\",le=\"0.5\"} 1\n\
            took_seconds_bucket{what=\"start\",le=\"2\"} 3\n\
            took_seconds_bucket{what=\"start\",le=\"+Inf\"} 4\n\
            took_seconds_sum{what=\"start\"} 7.25\n\
            took_seconds_count{what=\"start\"} 4\n";
        assert_eq!(text.into_string(), expected);
    }
}
