//! Histograms that each thread observes for itself, for what is observed many times for each request: counters that two threads share
//! go from one core to the other each time. What threads have observed is added up when somebody asks.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;
use prometheus::{
    HistogramVec,
    core::{Collector, Desc},
    local::LocalHistogram,
    proto::MetricFamily,
};

/// So many threads observe without waiting for each other; those beyond share.
const THREADS: usize = 16;

/// A histogram by labels whose values have places: each is looked up once for each thread. Clones are the same.
#[derive(Clone)]
pub struct HistogramsPerThread(Arc<Inner>);

struct Inner {
    all: HistogramVec,
    n_places: usize,
    /// What nobody has asked for yet; empty until the thread's first.
    observed: [Mutex<Vec<Option<Box<LocalHistogram>>>>; THREADS],
}

impl HistogramsPerThread {
    pub(crate) fn new(all: HistogramVec, n_places: usize) -> Self {
        Self(Arc::new(Inner { all, n_places, observed: Default::default() }))
    }

    /// One observation of what has these values of the labels, always at the same place.
    pub fn observe<const N: usize>(&self, place: usize, values: impl FnOnce() -> [&'static str; N], observed: f64) {
        let Inner { all, n_places, observed: of_threads } = &*self.0;
        let mut known = of_threads[of_this_thread()].lock();
        if known.is_empty() {
            known.resize_with(*n_places, || None);
        }
        let make = || Box::new(all.with_label_values(&values()).local());
        known[place].get_or_insert_with(make).observe(observed);
    }
}

impl Collector for HistogramsPerThread {
    fn desc(&self) -> Vec<&Desc> {
        self.0.all.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        for known in &self.0.observed {
            known.lock().iter().flatten().for_each(|it| it.flush());
        }
        self.0.all.collect()
    }
}

fn of_this_thread() -> usize {
    static N_THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static PLACE: usize = N_THREADS.fetch_add(1, Ordering::Relaxed) % THREADS;
    }
    PLACE.with(|it| *it)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use prometheus::Registry;

    use crate::registered;

    #[test]
    fn what_all_threads_observed_is_told() {
        let registry = Registry::new();
        let it = registered::histogram_per_thread(&registry, "took", "Took.", vec![1.0], &["what"], 2);
        for _ in 0..2 {
            thread::scope(|scope| {
                for _ in 0..super::THREADS + 3 {
                    scope.spawn(|| {
                        it.observe(0, || ["a"], 0.5);
                        it.observe(1, || ["b"], 2.0);
                    });
                }
            });
        }
        let n = 2 * (super::THREADS + 3);
        let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).expect("text");
        for line in [
            format!("took_bucket{{what=\"a\",le=\"1\"}} {n}"),
            "took_bucket{what=\"b\",le=\"1\"} 0".to_owned(),
            format!("took_count{{what=\"b\"}} {n}"),
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is not in {text}");
        }
    }
}
