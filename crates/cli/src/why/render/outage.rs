//! A cluster that does not run, on one screen.

use corten_meta::Time;
use corten_reconcile::Actor;

use super::{
    PageStyle,
    page::{DIM, Line, Page, RED, YELLOW},
};
use crate::why::{duration::duration, outage::Outage};

pub(crate) fn render(outage: &Outage, now: Time, look: PageStyle) -> String {
    let mut page = Page::new(look.width);
    let since = Time(outage.since.0);
    let ago = if since <= now { format!(", for {}", duration(now.since(since))) } else { String::new() };
    let colour = if outage.actor == Actor::Cluster { YELLOW } else { RED };
    let head = format!("the cluster is not running{ago}: {}", outage.summary);
    page.push(Line::new(0, head).word(colour, "not running").wrapped(3));
    for line in &outage.log {
        page.push(Line::new(1, format!("│ {line}")).painted(DIM).cut().dropped(1));
    }
    let why = format!("{}: {} (since {})", outage.reason, outage.message, since.whole_seconds());
    page.push(Line::new(0, why).labelled("why:").wrapped(3));
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
