//! What is measured, under upstream's names.

use std::{
    collections::BTreeMap,
    fmt::Write,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;

use crate::envelope::key_id_hash;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Direction {
    ToStorage,
    FromStorage,
}

impl Direction {
    fn as_str(self) -> &'static str {
        match self {
            Self::ToStorage => "to_storage",
            Self::FromStorage => "from_storage",
        }
    }
}

/// Buckets whose bounds double.
#[derive(Default)]
struct Durations {
    count: u64,
    seconds: f64,
    buckets: Vec<u64>,
}

/// The first bound in seconds, and how many there are.
#[derive(Clone, Copy)]
struct Bounds(f64, usize);

const TRANSFORMATIONS: Bounds = Bounds(5e-6, 25);
const CALLS: Bounds = Bounds(0.0001, 20);
const GENERATIONS: Bounds = Bounds(5e-6, 14);

impl Bounds {
    fn iter(self) -> impl Iterator<Item = f64> {
        std::iter::successors(Some(self.0), |it| Some(it * 2.0)).take(self.1)
    }
}

impl Durations {
    fn record(&mut self, bounds: Bounds, took: Duration) {
        let seconds = took.as_secs_f64();
        self.count += 1;
        self.seconds += seconds;
        self.buckets.resize(bounds.1, 0);
        // Found from above: each bucket holds what those before it hold.
        let first = bounds.iter().take_while(|it| seconds > *it).count();
        self.buckets[first..].iter_mut().for_each(|it| *it += 1);
    }

    fn write(&self, out: &mut String, name: &str, labels: &str, bounds: Bounds) -> std::fmt::Result {
        let comma = if labels.is_empty() { "" } else { "," };
        for (bucket, bound) in self.buckets.iter().zip(bounds.iter()) {
            writeln!(out, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {bucket}")?;
        }
        writeln!(out, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {}", self.count)?;
        let braces = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        writeln!(out, "{name}_sum{braces} {}", self.seconds)?;
        writeln!(out, "{name}_count{braces} {}", self.count)
    }
}

/// So many different key ids are told of, as upstream: those that were seen last.
const KEY_IDS_MAX: usize = 10;

#[derive(Default)]
pub(crate) struct Metrics(Mutex<Measured>);

#[derive(Default)]
struct Measured {
    transformations: BTreeMap<(Direction, String), Transformation>,
    calls: BTreeMap<(String, &'static str, &'static str), Durations>,
    cache_misses: u64,
    generations: Durations,
    generation_failures: u64,
    used: Vec<Used>,
    told: Vec<Told>,
    invalid_ids: BTreeMap<(String, &'static str), u64>,
    reloads: BTreeMap<&'static str, (u64, f64)>,
    configuration: Option<String>,
}

#[derive(Default)]
struct Transformation {
    took: Durations,
    failures: u64,
}

/// A key id that a provider's values have.
struct Used {
    direction: Direction,
    provider: String,
    hash: String,
    times: u64,
    last: f64,
}

/// One that a provider says it writes with.
struct Told {
    provider: String,
    hash: String,
    last: f64,
}

impl Metrics {
    pub(crate) fn transformed(&self, direction: Direction, prefix: &str, begun: Instant, has_failed: bool) {
        let took = begun.elapsed();
        let mut measured = self.0.lock();
        // Made once for each: the lookup is by what is borrowed.
        let known = measured.transformations.iter_mut().find(|it| it.0.0 == direction && it.0.1 == prefix);
        let series = match known {
            Some((_, series)) => series,
            None => measured.transformations.entry((direction, prefix.to_owned())).or_default(),
        };
        if has_failed {
            series.failures += 1;
        } else {
            series.took.record(TRANSFORMATIONS, took);
        }
    }

    pub(crate) fn called(&self, provider: &str, method: &'static str, code: &'static str, took: Duration) {
        let mut measured = self.0.lock();
        measured.calls.entry((provider.to_owned(), method, code)).or_default().record(CALLS, took);
    }

    pub(crate) fn missed(&self) {
        self.0.lock().cache_misses += 1;
    }

    pub(crate) fn generated(&self, took: Option<Duration>) {
        let mut measured = self.0.lock();
        match took {
            Some(took) => measured.generations.record(GENERATIONS, took),
            None => measured.generation_failures += 1,
        }
    }

    pub(crate) fn used(&self, direction: Direction, provider: &str, key_id_hash: &str) {
        let mut measured = self.0.lock();
        let known = measured
            .used
            .iter()
            .position(|it| it.direction == direction && it.hash == key_id_hash && it.provider == provider);
        let mut used = match known {
            Some(at) => measured.used.remove(at),
            None => {
                Used { direction, provider: provider.to_owned(), hash: key_id_hash.to_owned(), times: 0, last: 0.0 }
            }
        };
        used.times += 1;
        used.last = now();
        measured.used.truncate(KEY_IDS_MAX - 1);
        measured.used.insert(0, used);
    }

    pub(crate) fn told(&self, provider: &str, key_id: &str) {
        let told = Told { provider: provider.to_owned(), hash: key_id_hash(key_id), last: now() };
        let mut measured = self.0.lock();
        measured.told.retain(|it| it.provider != told.provider || it.hash != told.hash);
        measured.told.truncate(KEY_IDS_MAX - 1);
        measured.told.insert(0, told);
    }

    pub(crate) fn invalid_id(&self, provider: &str, fault: &'static str) {
        *self.0.lock().invalid_ids.entry((provider.to_owned(), fault)).or_default() += 1;
    }

    pub(crate) fn reloaded(&self, has_failed: bool) {
        let mut measured = self.0.lock();
        let status = if has_failed { "failure" } else { "success" };
        let (times, last) = measured.reloads.entry(status).or_default();
        *times += 1;
        *last = now();
    }

    /// `hash` of the configuration that is in use.
    pub(crate) fn configured(&self, hash: String) {
        self.0.lock().configuration = Some(hash);
    }

    pub(crate) fn write(&self, out: &mut String) -> std::fmt::Result {
        let measured = self.0.lock();
        measured.write_transformations(out)?;
        measured.write_plugins(out)?;
        measured.write_reloads(out)
    }
}

impl Measured {
    fn write_transformations(&self, out: &mut String) -> std::fmt::Result {
        let name = "apiserver_storage_transformation_duration_seconds";
        head(out, name, "histogram", "Latencies in seconds of value transformation operations.")?;
        let labels = |(direction, prefix): &(Direction, String)| {
            format!("transformation_type=\"{}\",transformer_prefix=\"{prefix}\"", direction.as_str())
        };
        for (key, it) in self.transformations.iter().filter(|it| it.1.took.count > 0) {
            it.took.write(out, name, &labels(key), TRANSFORMATIONS)?;
        }
        let name = "apiserver_storage_transformation_operations_total";
        head(out, name, "counter", "Total number of transformations.")?;
        for (key, it) in &self.transformations {
            for (status, n) in [("OK", it.took.count), ("unknown-non-grpc", it.failures)] {
                if n > 0 {
                    writeln!(out, "{name}{{{},status=\"{status}\"}} {n}", labels(key))?;
                }
            }
        }
        let name = "apiserver_storage_envelope_transformation_cache_misses_total";
        head(out, name, "counter", "Total number of cache misses while accessing key decryption key(KEK).")?;
        writeln!(out, "{name} {}", self.cache_misses)?;
        let name = "apiserver_storage_data_key_generation_duration_seconds";
        head(out, name, "histogram", "Latencies in seconds of data encryption key(DEK) generation operations.")?;
        self.generations.write(out, name, "", GENERATIONS)?;
        let name = "apiserver_storage_data_key_generation_failures_total";
        head(out, name, "counter", "Total number of failed data encryption key(DEK) generation operations.")?;
        writeln!(out, "{name} {}", self.generation_failures)
    }

    fn write_plugins(&self, out: &mut String) -> std::fmt::Result {
        let name = "apiserver_envelope_encryption_kms_operations_latency_seconds";
        head(out, name, "histogram", "KMS operation duration with gRPC error code status total.")?;
        for ((provider, method, code), took) in &self.calls {
            let labels = format!("provider_name=\"{provider}\",method_name=\"{method}\",grpc_status_code=\"{code}\"");
            took.write(out, name, &labels, CALLS)?;
        }
        let labels = |it: &Used| {
            format!(
                "transformation_type=\"{}\",provider_name=\"{}\",key_id_hash=\"{}\"",
                it.direction.as_str(),
                it.provider,
                it.hash
            )
        };
        let name = "apiserver_envelope_encryption_key_id_hash_total";
        head(out, name, "counter", "Number of times a keyID is used split by transformation type and provider.")?;
        for it in &self.used {
            writeln!(out, "{name}{{{}}} {}", labels(it), it.times)?;
        }
        let name = "apiserver_envelope_encryption_key_id_hash_last_timestamp_seconds";
        head(out, name, "gauge", "The last time in seconds when a keyID was used.")?;
        for it in &self.used {
            writeln!(out, "{name}{{{}}} {}", labels(it), it.last)?;
        }
        let name = "apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds";
        head(out, name, "gauge", "The last time in seconds when a keyID was returned by the Status RPC call.")?;
        for it in &self.told {
            writeln!(out, "{name}{{provider_name=\"{}\",key_id_hash=\"{}\"}} {}", it.provider, it.hash, it.last)?;
        }
        let name = "apiserver_envelope_encryption_invalid_key_id_from_status_total";
        let help = "Number of times an invalid keyID is returned by the Status RPC call split by error.";
        head(out, name, "counter", help)?;
        for ((provider, fault), n) in &self.invalid_ids {
            writeln!(out, "{name}{{provider_name=\"{provider}\",error=\"{fault}\"}} {n}")?;
        }
        Ok(())
    }

    fn write_reloads(&self, out: &mut String) -> std::fmt::Result {
        let name = "apiserver_encryption_config_controller_automatic_reloads_total";
        let help =
            "Total number of reload successes and failures of encryption configuration split by apiserver identity.";
        head(out, name, "counter", help)?;
        for (status, (times, _)) in &self.reloads {
            writeln!(out, "{name}{{status=\"{status}\"}} {times}")?;
        }
        let name = "apiserver_encryption_config_controller_automatic_reload_last_timestamp_seconds";
        let help = "Timestamp of the last successful or failed automatic reload of encryption configuration split by apiserver identity.";
        head(out, name, "gauge", help)?;
        for (status, (_, last)) in &self.reloads {
            writeln!(out, "{name}{{status=\"{status}\"}} {last}")?;
        }
        let name = "apiserver_encryption_config_controller_last_config_info";
        let help = "Information about the last applied encryption configuration with hash as label, split by apiserver identity.";
        head(out, name, "gauge", help)?;
        if let Some(hash) = &self.configuration {
            writeln!(out, "{name}{{hash=\"{hash}\"}} 1")?;
        }
        Ok(())
    }
}

fn head(out: &mut String, name: &str, metric_type: &str, help: &str) -> std::fmt::Result {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {metric_type}")
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
