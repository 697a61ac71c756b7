//! What is not fine in a namespace or a cluster, on one screen.

use corten_meta::Time;

use super::{
    PageStyle, of_whom,
    page::{DIM, GREEN, HEIGHT, Line, Page, RED, YELLOW, both_ends},
};
use crate::why::{State, Survey, duration::duration, survey::Group};

/// What is wrong with the cluster itself is said at length, for as many causes as leave room for others.
const CLUSTER_ROWS: usize = 3;
const ROOM_FOR_CLUSTER: usize = 3;
/// Reasons whose messages name the cause last.
const ENDS_MATTER: [&str; 5] =
    ["ConversionWebhookFailing: ", "PolicyFailing: ", "Unreadable: ", "WebhookConditionFailed: ", "WebhookFailing: "];
const UNKNOWN_ROWS: usize = 2;

pub(crate) fn render(survey: &Survey, now: Time, look: PageStyle) -> String {
    let mut page = Page::new(look.width);
    let place =
        if survey.namespace.is_empty() { "the cluster".to_owned() } else { format!("namespace {}", survey.namespace) };
    let is_all_seen = survey.unknown.is_empty();
    if !is_all_seen {
        show_unknown(&mut page, survey, &place);
    }
    if survey.groups.is_empty() && !is_all_seen {
        page.push(Line::new(0, "nothing is waited for in what could be looked at").cut());
    } else if survey.groups.is_empty() {
        let text = format!("{place} is fine: nothing is waited for");
        page.push(Line::new(0, text).word(GREEN, "fine").cut());
    } else {
        page.push(Line::new(0, head(survey, &place)).cut());
    }
    // Two rows each, the head, and what is said at the end.
    let n_of_cluster = survey.groups.iter().filter(|it| it.is_of_cluster()).count();
    let n_more_rows = (CLUSTER_ROWS - 1) * n_of_cluster.min(ROOM_FOR_CLUSTER);
    let n_shown =
        (HEIGHT - 3 - n_more_rows - 2 * survey.notices.len().min(2) - survey.unknown.len().min(UNKNOWN_ROWS + 1)) / 2;
    for group in survey.groups.iter().take(n_shown) {
        show(&mut page, group, (survey.namespace.is_empty(), look.width), now);
    }
    let n_left = survey.groups.len().saturating_sub(n_shown);
    let left = (n_left > 0).then(|| format!("{n_left} more causes: -o json shows all"));
    let unwell = (survey.not_looked_at > 0)
        .then(|| format!("{} more look unwell and were not explained", plural(survey.not_looked_at, "object")));
    let well = (survey.well_not_looked_at > 0).then(|| {
        format!("{} more look well, and were not looked at closely", plural(survey.well_not_looked_at, "object"))
    });
    let text = [left, unwell, well].into_iter().flatten().collect::<Vec<_>>().join("; ");
    if !text.is_empty() {
        page.push(Line::new(0, text).painted(DIM).cut());
    }
    for notice in survey.notices.iter().take(2) {
        page.push(Line::new(0, &**notice).labelled("note:").wrapped(2));
    }
    page.print(look.colour)
}

/// What could not be asked comes first: of that nobody can say that it is fine.
fn show_unknown(page: &mut Page, survey: &Survey, place: &str) {
    if survey.groups.is_empty() {
        let text = format!("not all of {place} could be looked at");
        page.push(Line::new(0, text).word(YELLOW, "not all").cut());
    }
    for hidden in survey.unknown.iter().take(UNKNOWN_ROWS) {
        page.push(Line::new(0, &**hidden).labelled("not known:").cut());
    }
    let n_left = survey.unknown.len().saturating_sub(UNKNOWN_ROWS);
    if n_left > 0 {
        page.push(Line::new(0, format!("and {n_left} more: -o json shows all")).labelled("").painted(DIM).cut());
    }
}

fn head(survey: &Survey, place: &str) -> String {
    let causes = plural(survey.groups.len(), "cause");
    let (of_cluster, others): (Vec<&Group>, Vec<&Group>) = survey.groups.iter().partition(|it| it.is_of_cluster());
    let n_objects: usize = others.iter().map(|it| it.subjects.len()).sum();
    let objects = plural(n_objects, "object");
    match (of_cluster.is_empty(), n_objects) {
        (true, 1) => format!("{objects} of {place} is not fine, for {causes}:"),
        (true, _) => format!("{objects} of {place} are not fine, for {causes}:"),
        (false, 0) => format!("the cluster itself is not fine, for {causes}:"),
        (false, _) if survey.namespace.is_empty() => {
            format!("the cluster itself and {objects} in it are not fine, for {causes}:")
        }
        (false, _) => format!("the cluster itself and {objects} of {place} are not fine, for {causes}:"),
    }
}

fn show(page: &mut Page, group: &Group, (is_cluster, width): (bool, usize), now: Time) {
    let (colour, mark) = match group.state {
        State::Failed | State::Blocked => (RED, "✖"),
        _ if group.needs_somebody => (RED, "✖"),
        _ => (YELLOW, "▸"),
    };
    let told = of_whom(&group.summary, group.because.as_deref());
    let is_end_worth_it =
        ENDS_MATTER.iter().any(|it| group.summary.starts_with(it)) || group.summary.contains(": x509: ");
    let summary =
        if is_end_worth_it && !group.is_of_cluster() { both_ends(&told, width.saturating_sub(2)) } else { told };
    let summary = Line::new(0, format!("{mark} {summary}")).word(colour, mark);
    page.push(if group.is_of_cluster() { summary.wrapped(CLUSTER_ROWS) } else { summary.cut() });
    let first = &group.subjects[0];
    let others = match group.subjects.len() - 1 {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let since =
        group.since.filter(|it| *it <= now).map(|it| format!(", for {}", duration(now.since(it)))).unwrap_or_default();
    let place = if (is_cluster || group.is_of_cluster()) && !first.namespace.is_empty() {
        format!(" in {}", first.namespace)
    } else {
        String::new()
    };
    let text = format!("{}{place}{others}{since}:  {}", first.subject, group.next);
    page.push(Line::new(1, text).cut());
}

fn plural(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}
