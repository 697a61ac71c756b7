//! What is not fine in a namespace or a cluster, on one screen.

use corten_meta::Time;

use super::{
    PageStyle, of_whom,
    page::{DIM, GREEN, INDENT, Line, Page, RED, YELLOW, both_ends},
};
use crate::why::{State, Survey, duration::duration, survey::Group};

/// What is wrong with the cluster itself is said at length.
const CLUSTER_ROWS: usize = 3;
const NOTICE_ROWS: usize = 2;
/// Reasons whose messages name the cause last.
const ENDS_MATTER: [&str; 5] =
    ["ConversionWebhookFailing: ", "PolicyFailing: ", "Unreadable: ", "WebhookConditionFailed: ", "WebhookFailing: "];
const UNKNOWN_ROWS: usize = 2;

pub(crate) fn render(survey: &Survey, now: Time, look: PageStyle) -> String {
    let mut page = Page::new(look);
    let place =
        if survey.namespace.is_empty() { "the cluster".to_owned() } else { format!("namespace {}", survey.namespace) };
    let is_all_seen = survey.unknown.is_empty();
    if !is_all_seen {
        show_unknown(&mut page, survey, &place, if look.is_whole() { usize::MAX } else { UNKNOWN_ROWS });
    }
    if survey.groups.is_empty() && !is_all_seen {
        page.push(Line::new(0, "nothing is waited for in what could be looked at").cut());
    } else if survey.groups.is_empty() {
        let text = format!("{place} is fine: nothing is waited for");
        page.push(Line::new(0, text).word(GREEN, "fine").cut());
    } else {
        page.push(Line::new(0, head(survey, &place)).cut());
    }
    // A row for what is left out, and those of the notes.
    let notices = if look.is_whole() { &survey.notices[..] } else { &survey.notices[..survey.notices.len().min(2)] };
    let notes: Vec<Line> =
        notices.iter().map(|it| Line::new(0, &**it).labelled("note:").wrapped(look.rows(NOTICE_ROWS))).collect();
    let n_noted: usize = notes.iter().map(|it| it.height(look.width)).sum();
    let mut n_left = survey.groups.len();
    for group in &survey.groups {
        let lines = shown(group, survey.namespace.is_empty(), look, now);
        let n_rows = page.height() + lines.iter().map(|it| it.height(look.width)).sum::<usize>();
        if n_left < survey.groups.len() && n_rows + 1 + n_noted > look.height {
            break;
        }
        lines.into_iter().for_each(|it| page.push(it));
        n_left -= 1;
    }
    let left = (n_left > 0).then(|| format!("{}: -o json shows all", plural(n_left, "more cause")));
    let unwell = (survey.not_looked_at > 0).then(|| {
        format!(
            "{} more look unwell and were not explained: -o json names them",
            plural(survey.not_looked_at, "object")
        )
    });
    let well = (survey.well_not_looked_at > 0).then(|| {
        format!("{} more look well, and were not looked at closely", plural(survey.well_not_looked_at, "object"))
    });
    let text = [left, unwell, well].into_iter().flatten().collect::<Vec<_>>().join("; ");
    if !text.is_empty() {
        page.push(Line::new(0, text).painted(DIM).cut());
    }
    notes.into_iter().for_each(|it| page.push(it));
    page.print(look.colour)
}

/// What could not be asked comes first: of that nobody can say that it is fine.
fn show_unknown(page: &mut Page, survey: &Survey, place: &str, n_max: usize) {
    if survey.groups.is_empty() {
        let text = format!("not all of {place} could be looked at");
        page.push(Line::new(0, text).word(YELLOW, "not all").cut());
    }
    for hidden in survey.unknown.iter().take(n_max) {
        page.push(Line::new(0, &**hidden).labelled("not known:").cut());
    }
    let n_left = survey.unknown.len().saturating_sub(n_max);
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

/// The cause, those that wait for it, and the command that tells more: that is never cut.
fn shown(group: &Group, is_cluster: bool, look: PageStyle, now: Time) -> Vec<Line> {
    let (colour, mark) = match group.state {
        State::Failed | State::Blocked => (RED, "✖"),
        _ if group.needs_somebody => (RED, "✖"),
        _ => (YELLOW, "▸"),
    };
    let told = of_whom(&group.summary, group.because.as_deref());
    let is_end_worth_it =
        ENDS_MATTER.iter().any(|it| group.summary.starts_with(it)) || group.summary.contains(": x509: ");
    let summary =
        if is_end_worth_it && !group.is_of_cluster() { both_ends(&told, look.width.saturating_sub(2)) } else { told };
    let summary = Line::new(0, format!("{mark} {summary}")).word(colour, mark);
    let summary = if group.is_of_cluster() { summary.wrapped(CLUSTER_ROWS) } else { summary.cut() };
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
    let text = format!("{}{place}{others}{since}; must act: ", first.subject);
    let room = look.width.saturating_sub(text.chars().count() + INDENT);
    let text = text + group.whom(room);
    let whole = Line::new(1, format!("{text}:  {}", group.next)).wrapped(usize::MAX);
    if whole.height(look.width) == 1 {
        return vec![summary, whole];
    }
    vec![summary, Line::new(1, text).cut(), Line::new(1, &*group.next).command()]
}

fn plural(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}
