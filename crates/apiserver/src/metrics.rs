//! `/metrics`: what the server counts, and what a look at its parts tells.

use std::time::Duration;

use corten_access::Reloads;
use corten_cacher::watch_cache::Caches;
use corten_metrics::{
    MetricFamily, disk, process,
    scraped::{counter, gauge, number},
};

use crate::{context::Context, journals::LoopQueue, version::VERSION};

pub(crate) fn text(ctx: &Context) -> String {
    let state = &ctx.state;
    let mut families = objects(state.caches());
    families.extend(state.config().store.disk_use().iter().flat_map(disk));
    families.extend(queues(&state.config().journals.queues()));
    families.extend(reloads("authentication", state.access().authenticator().issuers().reloads()));
    families.extend(reloads("authorization", state.access().authorization_reloads()));
    families.extend(process(state.started().unix_millis() / 1000, VERSION));
    families.extend(state.config().audit.iter().flat_map(|it| audit(&**it)));
    families.extend(state.config().encryption.iter().flat_map(|it| it.encryption().measured()));
    state.metrics().text(families)
}

/// Records that were lost.
fn audit(sink: &dyn corten_audit::Sink) -> Vec<MetricFamily> {
    let help = "Counter of audit events that failed to be audited properly. Plugin identifies the plugin affected by the error.";
    counter("apiserver_audit_error_total", help, &["plugin"], [(&["log"][..], sink.dropped())])
}

/// How many objects there are of each resource.
fn objects(caches: &Caches) -> Vec<MetricFamily> {
    let counts: Vec<_> = caches.iter().map(|it| (it.kind().resource.clone(), it.snapshot().len() as u64)).collect();
    let qualified: Vec<_> = counts.iter().map(|(it, n_objects)| (it.qualified(), *n_objects)).collect();
    let help = "Number of stored objects at the time of last check split by kind.";
    let qualified: Vec<_> = qualified.iter().map(|(name, n_objects)| ([&**name], number(*n_objects))).collect();
    let apart: Vec<_> = counts.iter().map(|(it, n_objects)| ([&*it.group, &*it.plural], number(*n_objects))).collect();
    let mut families = gauge(
        "apiserver_storage_objects",
        help,
        &["resource"],
        qualified.iter().map(|(labels, n_objects)| (&labels[..], *n_objects)),
    );
    families.extend(gauge(
        "apiserver_resource_objects",
        help,
        &["group", "resource"],
        apart.iter().map(|(labels, n_objects)| (&labels[..], *n_objects)),
    ));
    families
}

/// How often the configuration of authentication or authorization was read anew.
fn reloads(what: &str, reloads: &Reloads) -> Vec<MetricFamily> {
    counter(
        &format!("apiserver_{what}_config_controller_automatic_reloads_total"),
        &format!("Total number of automatic reloads of {what} configuration split by status and apiserver identity."),
        &["status"],
        [(&["failure"][..], reloads.failures()), (&["success"][..], reloads.successes())],
    )
}

/// How busy the loops are.
fn queues(queues: &[LoopQueue]) -> Vec<MetricFamily> {
    let names: Vec<[&str; 1]> = queues.iter().map(|it| [&*it.name]).collect();
    let each = || names.iter().map(|it| &it[..]).zip(queues);
    let name = ["name"];
    let seconds = |it: Duration| it.as_secs_f64();
    let depth = each().map(|(labels, it)| (labels, number(it.depth)));
    let mut families = gauge("workqueue_depth", "Current depth of workqueue", &name, depth);
    let adds = each().map(|(labels, it)| (labels, it.adds));
    families.extend(counter("workqueue_adds_total", "Total number of adds handled by workqueue", &name, adds));
    let retries = each().map(|(labels, it)| (labels, it.retries));
    families.extend(counter("workqueue_retries_total", "Total number of retries handled by workqueue", &name, retries));
    families.extend(gauge(
        "workqueue_unfinished_work_seconds",
        "How many seconds of work has done that is in progress and hasn't been observed by work_duration. Large values \
         indicate stuck threads. One can deduce the number of stuck threads by observing the rate at which this increases.",
        &name,
        each().map(|(labels, it)| (labels, seconds(it.unfinished))),
    ));
    families.extend(gauge(
        "workqueue_longest_running_processor_seconds",
        "How many seconds has the longest running processor for workqueue been running.",
        &name,
        each().map(|(labels, it)| (labels, seconds(it.longest))),
    ));
    families
}
