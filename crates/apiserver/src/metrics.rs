//! `/metrics`: what the server counts, and what a look at its parts tells.

use async_stream::stream;
use corten_api::version::VERSION;
use corten_cacher::{body::Response, codec::gzip, watch_cache::Caches};
use corten_metrics::{
    MetricFamily, TEXT_FORMAT, disk, loops, process,
    scraped::{counter, gauge, number},
};
use futures_util::Stream;
use http::header;

use crate::context::Context;

/// What is sent at once.
const PIECE_BYTES: usize = 64 * 1024;

pub(crate) fn answer(ctx: &Context) -> Response {
    let text = text(ctx).into_bytes();
    exposition(
        ctx,
        stream! {
            for piece in text.chunks(PIECE_BYTES) {
                yield piece.to_vec();
                tokio::task::yield_now().await;
            }
        },
    )
}

/// Sends what Prometheus reads.
pub(crate) fn exposition(ctx: &Context, pieces: impl Stream<Item = Vec<u8>> + Send + 'static) -> Response {
    gzip::in_pieces(TEXT_FORMAT, ctx.header(header::ACCEPT_ENCODING), pieces)
}

fn text(ctx: &Context) -> String {
    let state = &ctx.state;
    let mut families = objects(state.caches());
    families.extend(state.config().store.disk_use().iter().flat_map(disk));
    families.extend(loops::queues(&state.config().journals.queues()));
    families.extend(state.config().journals.counted().iter().flat_map(loops::counts));
    families.extend(corten_metrics::waits::families(|each| {
        state.config().journals.waiting(each);
    }));
    families.extend(state.access().measured(&state.config().machine.host_name, state.now()));
    families.extend(process(state.started().unix_millis() / 1000, VERSION));
    families.extend(state.config().audit.iter().flat_map(|it| audit(&**it)));
    families.extend(state.fairness().measured());
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
