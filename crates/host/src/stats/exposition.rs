//! Writes Prometheus' text format.

use std::fmt::{Display, Write};

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

impl Text {
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
        match sample.unix_millis {
            Some(at) => self.line(format_args!(" {} {at}", sample.value)),
            None => self.line(format_args!(" {}", sample.value)),
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
