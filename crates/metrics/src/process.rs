//! The process, as `/proc` tells of it, and the disk that the store lies on.

use std::fs;

use corten_store::DiskUse;
use prometheus::proto::MetricFamily;

use crate::scraped::{gauge, number};

/// The disk that the store lies on.
pub fn disk(disk: &DiskUse) -> Vec<MetricFamily> {
    let metrics = [
        ("corten_store_disk_available_bytes", "What is free of the disk that the store lies on.", disk.available),
        ("corten_store_disk_size_bytes", "The size of the disk that the store lies on.", disk.total),
        (
            "corten_store_disk_full",
            "1 where the last write that needed more room did not get it: what makes the data larger is refused.",
            u64::from(disk.is_refused),
        ),
    ];
    let mut families = gauge(
        "apiserver_storage_size_bytes",
        "Size of the storage database file physically allocated in bytes.",
        &["storage_cluster_id"],
        [(&["etcd-0"][..], number(disk.used))],
    );
    for (name, help, value) in metrics {
        families.extend(gauge(name, help, &[], [(&[][..], number(value))]));
    }
    families
}

/// What was built, since when it runs, and what it takes of the machine.
pub fn process(started_seconds: i64, version: &str) -> Vec<MetricFamily> {
    let mut families = gauge(
        "kubernetes_build_info",
        "A metric with a constant '1' value labeled by what the server was built from.",
        &["git_version", "major", "minor"],
        [(&[version, "1", "37"][..], 1.0)],
    );
    let mut say = |name: &str, help: &str, value: f64| families.extend(gauge(name, help, &[], [(&[][..], value)]));
    let started = number(u64::try_from(started_seconds).unwrap_or_default());
    say("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", started);
    if let Some((resident, virtual_bytes)) = memory() {
        say("process_resident_memory_bytes", "Resident memory size in bytes.", number(resident));
        say("process_virtual_memory_bytes", "Virtual memory size in bytes.", number(virtual_bytes));
    }
    if let Ok(files) = fs::read_dir("/proc/self/fd") {
        say("process_open_fds", "Number of open file descriptors.", number(files.count() as u64));
    }
    if let Some(files) = files_max() {
        say("process_max_fds", "Maximum number of open file descriptors.", number(files));
    }
    if let Some(seconds) = cpu_seconds() {
        families.extend(processor(seconds));
    }
    families
}

fn processor(seconds: f64) -> Vec<MetricFamily> {
    use prometheus::core::Collector;
    let counter =
        prometheus::Counter::new("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.");
    let counter = counter.expect("a constant name");
    counter.inc_by(seconds);
    counter.collect()
}

/// Resident and virtual bytes; `/proc/self/status` has them in KiB, whatever a page has.
fn memory() -> Option<(u64, u64)> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let bytes = |name: &str| -> Option<u64> {
        let of = status.lines().find_map(|it| it.strip_prefix(name))?;
        Some(of.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
    };
    Some((bytes("VmRSS:")?, bytes("VmSize:")?))
}

/// The first number of `/proc/self/schedstat`: nanoseconds on a processor, of the main thread; so each thread is asked.
fn cpu_seconds() -> Option<f64> {
    let mut nanoseconds = 0_u64;
    for thread in fs::read_dir("/proc/self/task").ok()? {
        // A thread may end while it is asked.
        let Ok(text) = fs::read_to_string(thread.ok()?.path().join("schedstat")) else { continue };
        nanoseconds += text.split(' ').next()?.parse::<u64>().ok()?;
    }
    Some(std::time::Duration::from_nanos(nanoseconds).as_secs_f64())
}

fn files_max() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|it| it.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}
