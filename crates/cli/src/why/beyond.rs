//! What a survey of one namespace says of the rest of the cluster: that writes are refused there.

use std::collections::BTreeSet;

use corten_kinds::Kind;
use corten_meta::Key;
use corten_reconcile::Journal;

use super::{aggregated, reach, reader::Reader, survey::Group};

/// One line on what keeps others from being written or read and is in none of these groups; as far as whoever asks may see it.
pub(super) async fn told(
    reader: &Reader<'_>,
    journals: &[(&'static Kind, Key, Journal)],
    groups: &[Group],
) -> Option<String> {
    let own = groups.iter().flat_map(|it| it.subjects.iter().map(|it| &it.subject).chain(&it.because));
    let own: BTreeSet<&str> = own.map(String::as_str).collect();
    let mut found: Vec<(String, String)> = journals.iter().filter_map(of_journal).collect();
    // What denies all before what gives no answer, and definitions last: they bear on their own objects alone.
    found.sort_by_key(|it| (it.0.starts_with("customresourcedefinition/"), !it.1.ends_with("Denying")));
    let services = aggregated::unavailable(reader).await;
    found.extend(services.into_iter().filter_map(|it| Some((it.subject, it.reason?))));
    found.retain(|it| !own.contains(&*it.0));
    let (subject, reason) = found.first()?;
    let others = if found.len() > 1 { format!(", and {} more", found.len() - 1) } else { String::new() };
    Some(format!("writes are refused in the cluster: {reason} of {subject}{others}; `corten why -A` tells of it"))
}

fn of_journal((kind, key, journal): &(&'static Kind, Key, Journal)) -> Option<(String, String)> {
    let wait = reach::refusal(kind, journal)?;
    Some((format!("{}/{}", kind.singular, key.name), wait.reason.clone()))
}
