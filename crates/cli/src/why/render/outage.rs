//! A cluster that does not run, on one screen.

use corten_meta::Time;
use corten_reconcile::Actor;

use super::{
    PageStyle,
    page::{DIM, Line, Page, RED, YELLOW},
};
use crate::why::{
    duration::duration,
    outage::{Outage, is_of_log},
};

pub(crate) fn render(outage: &Outage, now: Time, look: PageStyle) -> String {
    let mut page = Page::new(look);
    let since = Time(outage.since.0);
    let ago = match (since <= now, duration(now.since(since))) {
        (false, _) => String::new(),
        // It may have lived longer than it wrote.
        (true, ago) if outage.since_last_write => format!("; it wrote last {ago} ago"),
        (true, ago) => format!(", for {ago}"),
    };
    let colour = if outage.actor == Actor::Cluster { YELLOW } else { RED };
    let head = format!("{} is not running{ago}: {}", outage.part.name(), outage.summary);
    page.push(Line::new(0, head).word(colour, "not running").wrapped(3));
    for line in &outage.log {
        // What it said of its end is read to the end.
        let n_rows = if is_of_log(line) { 1 } else { 4 };
        page.push(Line::new(1, format!("│ {line}")).painted(DIM).wrapped(n_rows).dropped(1));
    }
    let when = if outage.since_last_write { "it wrote last at" } else { "since" };
    let why = format!("{}: {} ({when} {})", outage.reason, outage.message, since.whole_seconds());
    page.push(Line::new(0, why).labelled("why:").wrapped(4));
    let who = match (outage.actor, outage.restart_at) {
        (Actor::Cluster, Some(at)) => format!("nobody: it is started again at {}", Time(at.0).whole_seconds()),
        (Actor::Cluster, None) => "nobody: it goes on by itself".to_owned(),
        (_, Some(at)) => format!("whoever runs the cluster; it is tried again at {}", Time(at.0).whole_seconds()),
        (_, None) => "whoever runs the cluster".to_owned(),
    };
    page.push(Line::new(0, who).labelled("who must act:").wrapped(2));
    page.push(Line::new(0, &*outage.next).labelled("run next:").command());
    page.print(look.colour)
}
