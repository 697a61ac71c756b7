//! What is measured, under upstream's names.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use corten_metrics::{Gauges, Histogram, HistogramVec, IntCounter, IntCounterVec, Registry, registered};
use parking_lot::Mutex;

use crate::{envelope::key_id_hash, lost_key::LostKey};

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

/// So many different key ids are told of, those that were seen last (upstream's `registerLRUMetrics`).
const KEY_IDS_MAX: usize = 10;

/// Bounds in seconds that double.
fn doubling(first: f64, n: usize) -> Vec<f64> {
    std::iter::successors(Some(first), |it| Some(it * 2.0)).take(n).collect()
}

pub(crate) struct Metrics {
    registry: Registry,
    transformations: HistogramVec,
    operations: IntCounterVec,
    calls: HistogramVec,
    cache_misses: IntCounter,
    generations: Histogram,
    generation_failures: IntCounter,
    /// How often a key id was used, and when last.
    used: IntCounterVec,
    used_last: Gauges,
    used_ids: Mutex<Vec<[String; 3]>>,
    told_last: Gauges,
    told_ids: Mutex<Vec<[String; 2]>>,
    invalid_ids: IntCounterVec,
    reloads: IntCounterVec,
    reloaded_last: Gauges,
    configuration: Gauges,
    lost: Gauges,
}

impl Default for Metrics {
    fn default() -> Self {
        let registry = Registry::new();
        let counter = |name, help, labels| registered::counter(&registry, name, help, labels);
        let gauges = |name, help, labels| registered::gauges(&registry, name, help, labels);
        let histogram = |name, help, buckets, labels| registered::histogram(&registry, name, help, buckets, labels);
        Self {
            transformations: histogram(
                "apiserver_storage_transformation_duration_seconds",
                "Latencies in seconds of value transformation operations.",
                doubling(5e-6, 25),
                &["transformation_type", "transformer_prefix"],
            ),
            operations: counter(
                "apiserver_storage_transformation_operations_total",
                "Total number of transformations.",
                &["transformation_type", "transformer_prefix", "status"],
            ),
            calls: histogram(
                "apiserver_envelope_encryption_kms_operations_latency_seconds",
                "KMS operation duration with gRPC error code status total.",
                doubling(0.0001, 20),
                &["provider_name", "method_name", "grpc_status_code"],
            ),
            cache_misses: counter(
                "apiserver_storage_envelope_transformation_cache_misses_total",
                "Total number of cache misses while accessing key decryption key(KEK).",
                &[],
            )
            .with_label_values::<&str>(&[]),
            generations: histogram(
                "apiserver_storage_data_key_generation_duration_seconds",
                "Latencies in seconds of data encryption key(DEK) generation operations.",
                doubling(5e-6, 14),
                &[],
            )
            .with_label_values::<&str>(&[]),
            generation_failures: counter(
                "apiserver_storage_data_key_generation_failures_total",
                "Total number of failed data encryption key(DEK) generation operations.",
                &[],
            )
            .with_label_values::<&str>(&[]),
            used: counter(
                "apiserver_envelope_encryption_key_id_hash_total",
                "Number of times a keyID is used split by transformation type and provider.",
                &["transformation_type", "provider_name", "key_id_hash"],
            ),
            used_last: gauges(
                "apiserver_envelope_encryption_key_id_hash_last_timestamp_seconds",
                "The last time in seconds when a keyID was used.",
                &["transformation_type", "provider_name", "key_id_hash"],
            ),
            used_ids: Mutex::default(),
            told_last: gauges(
                "apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds",
                "The last time in seconds when a keyID was returned by the Status RPC call.",
                &["provider_name", "key_id_hash"],
            ),
            told_ids: Mutex::default(),
            invalid_ids: counter(
                "apiserver_envelope_encryption_invalid_key_id_from_status_total",
                "Number of times an invalid keyID is returned by the Status RPC call split by error.",
                &["provider_name", "error"],
            ),
            reloads: counter(
                "apiserver_encryption_config_controller_automatic_reloads_total",
                "Total number of reload successes and failures of encryption configuration split by apiserver identity.",
                &["status"],
            ),
            reloaded_last: gauges(
                "apiserver_encryption_config_controller_automatic_reload_last_timestamp_seconds",
                "Timestamp of the last successful or failed automatic reload of encryption configuration split by apiserver identity.",
                &["status"],
            ),
            configuration: gauges(
                "apiserver_encryption_config_controller_last_config_info",
                "Information about the last applied encryption configuration with hash as label, split by apiserver identity.",
                &["hash"],
            ),
            lost: values_without_key(&registry),
            registry,
        }
    }
}

fn values_without_key(registry: &Registry) -> Gauges {
    registered::gauges(
        registry,
        "corten_encryption_values_without_key",
        "Stored values under a key that the encryption configuration in use does not have, by resource and key.",
        &["resource", "key"],
    )
}

impl Metrics {
    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(crate) fn transformed(&self, direction: Direction, prefix: &str, begun: Instant, has_failed: bool) {
        let took = begun.elapsed();
        let status = if has_failed { "unknown-non-grpc" } else { "OK" };
        self.operations.with_label_values(&[direction.as_str(), prefix, status]).inc();
        if !has_failed {
            self.transformations.with_label_values(&[direction.as_str(), prefix]).observe(took.as_secs_f64());
        }
    }

    pub(crate) fn called(&self, provider: &str, method: &'static str, code: &'static str, took: Duration) {
        self.calls.with_label_values(&[provider, method, code]).observe(took.as_secs_f64());
    }

    pub(crate) fn missed(&self) {
        self.cache_misses.inc();
    }

    pub(crate) fn generated(&self, took: Option<Duration>) {
        match took {
            Some(took) => self.generations.observe(took.as_secs_f64()),
            None => self.generation_failures.inc(),
        }
    }

    pub(crate) fn used(&self, direction: Direction, provider: &str, key_id_hash: &str) {
        let labels = [direction.as_str(), provider, key_id_hash];
        self.used.with_label_values(&labels).inc();
        self.used_last.with_label_values(&labels).set(now());
        if let Some(gone) = latest(&self.used_ids, labels.map(str::to_owned)) {
            // Both were made together.
            let _ = self.used.remove_label_values(&gone);
            let _ = self.used_last.remove_label_values(&gone);
        }
    }

    pub(crate) fn told(&self, provider: &str, key_id: &str) {
        let hash = key_id_hash(key_id);
        self.told_last.with_label_values(&[provider, &*hash]).set(now());
        if let Some(gone) = latest(&self.told_ids, [provider.to_owned(), hash]) {
            // It was made when it came into the list.
            let _ = self.told_last.remove_label_values(&gone);
        }
    }

    pub(crate) fn invalid_id(&self, provider: &str, fault: &'static str) {
        self.invalid_ids.with_label_values(&[provider, fault]).inc();
    }

    pub(crate) fn reloaded(&self, has_failed: bool) {
        let status = [if has_failed { "failure" } else { "success" }];
        self.reloads.with_label_values(&status).inc();
        self.reloaded_last.with_label_values(&status).set(now());
    }

    /// `hash` of the configuration that is in use.
    pub(crate) fn configured(&self, hash: &str) {
        self.configuration.reset();
        self.configuration.with_label_values(&[hash]).set(1.0);
    }

    pub(crate) fn lost(&self, keys: &[LostKey]) {
        self.lost.reset();
        for it in keys {
            let n = u32::try_from(it.values.len()).unwrap_or(u32::MAX);
            self.lost.with_label_values(&[&*it.resource, &*it.key]).set(f64::from(n));
        }
    }
}

/// Puts the labels first; gives those that are too many now.
fn latest<const N: usize>(known: &Mutex<Vec<[String; N]>>, labels: [String; N]) -> Option<[String; N]> {
    let mut known = known.lock();
    known.retain(|it| *it != labels);
    known.insert(0, labels);
    if known.len() > KEY_IDS_MAX { known.pop() } else { None }
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
