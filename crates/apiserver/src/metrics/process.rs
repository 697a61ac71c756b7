//! The process, as `/proc` tells of it, what the caches hold, and how busy the loops are.

use std::{fmt::Write, fs, time::Duration};

use corten_access::Reloads;
use corten_cacher::watch_cache::Caches;
use corten_store::DiskUse;

use super::head;
use crate::journals::LoopQueue;

/// How many objects there are of each resource.
pub(crate) fn objects(out: &mut String, caches: &Caches) -> std::fmt::Result {
    let mut counts: Vec<(String, String, String, usize)> = caches
        .iter()
        .map(|it| {
            let resource = &it.kind().resource;
            (resource.qualified(), resource.group.to_string(), resource.plural.to_string(), it.snapshot().len())
        })
        .collect();
    counts.sort();
    head(
        out,
        "apiserver_storage_objects",
        "gauge",
        "Number of stored objects at the time of last check split by kind.",
    )?;
    for (qualified, _, _, n_objects) in &counts {
        writeln!(out, "apiserver_storage_objects{{resource=\"{qualified}\"}} {n_objects}")?;
    }
    head(
        out,
        "apiserver_resource_objects",
        "gauge",
        "Number of stored objects at the time of last check split by kind.",
    )?;
    for (_, group, plural, n_objects) in &counts {
        writeln!(out, "apiserver_resource_objects{{group=\"{group}\",resource=\"{plural}\"}} {n_objects}")?;
    }
    Ok(())
}

/// The disk that the store lies on.
pub(crate) fn disk(out: &mut String, disk: &DiskUse) -> std::fmt::Result {
    let metrics = [
        ("apiserver_storage_size_bytes", "Size of the storage database file physically allocated in bytes.", disk.used),
        ("corten_store_disk_available_bytes", "What is free of the disk that the store lies on.", disk.available),
        ("corten_store_disk_size_bytes", "The size of the disk that the store lies on.", disk.total),
        (
            "corten_store_disk_full",
            "1 where the last write that needed more room did not get it: what makes the data larger is refused.",
            u64::from(disk.is_refused),
        ),
    ];
    for (name, help, value) in metrics {
        head(out, name, "gauge", help)?;
        let labels = if name == "apiserver_storage_size_bytes" { "{storage_cluster_id=\"etcd-0\"}" } else { "" };
        writeln!(out, "{name}{labels} {value}")?;
    }
    Ok(())
}

/// How often the configuration of authentication was read anew.
pub(crate) fn reloads(out: &mut String, reloads: &Reloads) -> std::fmt::Result {
    let name = "apiserver_authentication_config_controller_automatic_reloads_total";
    let help =
        "Total number of automatic reloads of authentication configuration split by status and apiserver identity.";
    head(out, name, "counter", help)?;
    for (status, n) in [("failure", reloads.failures()), ("success", reloads.successes())] {
        writeln!(out, "{name}{{status=\"{status}\"}} {n}")?;
    }
    Ok(())
}

/// How busy the loops are.
pub(crate) fn queues(out: &mut String, queues: &[LoopQueue]) -> std::fmt::Result {
    type Number = fn(&LoopQueue) -> u64;
    let metrics: [(&str, &str, &str, Number); 3] = [
        ("workqueue_depth", "gauge", "Current depth of workqueue", |it| it.depth),
        ("workqueue_adds_total", "counter", "Total number of adds handled by workqueue", |it| it.adds),
        ("workqueue_retries_total", "counter", "Total number of retries handled by workqueue", |it| it.retries),
    ];
    for (name, metric_type, help, number) in metrics {
        head(out, name, metric_type, help)?;
        for queue in queues {
            writeln!(out, "{name}{{name=\"{}\"}} {}", queue.name, number(queue))?;
        }
    }
    type Length = fn(&LoopQueue) -> Duration;
    let lengths: [(&str, &str, Length); 2] = [
        (
            "workqueue_unfinished_work_seconds",
            "How many seconds of work has done that is in progress and hasn't been observed by work_duration. Large values \
             indicate stuck threads. One can deduce the number of stuck threads by observing the rate at which this increases.",
            |it| it.unfinished,
        ),
        (
            "workqueue_longest_running_processor_seconds",
            "How many seconds has the longest running processor for workqueue been running.",
            |it| it.longest,
        ),
    ];
    for (name, help, length) in lengths {
        head(out, name, "gauge", help)?;
        for queue in queues {
            writeln!(out, "{name}{{name=\"{}\"}} {}", queue.name, length(queue).as_secs_f64())?;
        }
    }
    Ok(())
}

pub(crate) fn process(out: &mut String, started_seconds: i64, version: &str) -> std::fmt::Result {
    head(
        out,
        "kubernetes_build_info",
        "gauge",
        "A metric with a constant '1' value labeled by what the server was built from.",
    )?;
    writeln!(out, "kubernetes_build_info{{git_version=\"{version}\",major=\"1\",minor=\"37\"}} 1")?;
    head(out, "process_start_time_seconds", "gauge", "Start time of the process since unix epoch in seconds.")?;
    writeln!(out, "process_start_time_seconds {started_seconds}")?;
    if let Some((resident, virtual_bytes)) = memory() {
        head(out, "process_resident_memory_bytes", "gauge", "Resident memory size in bytes.")?;
        writeln!(out, "process_resident_memory_bytes {resident}")?;
        head(out, "process_virtual_memory_bytes", "gauge", "Virtual memory size in bytes.")?;
        writeln!(out, "process_virtual_memory_bytes {virtual_bytes}")?;
    }
    if let Some(seconds) = cpu_seconds() {
        head(out, "process_cpu_seconds_total", "counter", "Total user and system CPU time spent in seconds.")?;
        writeln!(out, "process_cpu_seconds_total {seconds}")?;
    }
    if let Ok(files) = fs::read_dir("/proc/self/fd") {
        head(out, "process_open_fds", "gauge", "Number of open file descriptors.")?;
        writeln!(out, "process_open_fds {}", files.count())?;
    }
    if let Some(files) = files_max() {
        head(out, "process_max_fds", "gauge", "Maximum number of open file descriptors.")?;
        writeln!(out, "process_max_fds {files}")?;
    }
    Ok(())
}

/// Resident and virtual bytes: `/proc/self/statm` counts pages, virtual ones first.
fn memory() -> Option<(u64, u64)> {
    const PAGE_BYTES: u64 = 4096;
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = statm.split(' ').map_while(|it| it.parse::<u64>().ok());
    let (all, resident) = (pages.next()?, pages.next()?);
    Some((resident * PAGE_BYTES, all * PAGE_BYTES))
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
