//! The answer as one screen: at most 24 lines of at most 100 columns.
//!
//! What is least needed goes first: steps that are done or have not begun are drawn together, then warnings go, then the log.
//! Who must act and what to run next always stay.

mod outage;
mod page;
mod survey;

use corten_meta::Time;
use corten_reconcile::{Actor, Step, StepState, Wait};

use super::{
    Account, Explanation, State,
    account::{Follows as _, Root},
    duration::duration,
    fields::one_line,
};
use page::{DIM, GREEN, Line, Page, RED, YELLOW};

pub(crate) use outage::render as render_outage;
pub(crate) use survey::render as render_survey;

/// How much is drawn together.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Fold {
    Nothing,
    Done,
    Pending,
}

/// How it is to look.
#[derive(Clone, Copy)]
pub(crate) struct PageStyle {
    pub(crate) width: usize,
    /// So many rows a survey has.
    pub(crate) height: usize,
    pub(crate) colour: bool,
}

impl PageStyle {
    /// For a program or a file: nothing is cut, and nothing left out.
    pub(crate) const WHOLE: Self = Self { width: usize::MAX, height: usize::MAX, colour: false };

    fn is_whole(self) -> bool {
        self.height == usize::MAX
    }

    fn rows(self, n: usize) -> usize {
        if self.is_whole() { usize::MAX } else { n }
    }
}

pub(crate) fn render(explanation: &Explanation, now: Time, look: PageStyle) -> String {
    let mut page = Page::new(look);
    for fold in [Fold::Nothing, Fold::Done, Fold::Pending] {
        page = draw(explanation, now, look, fold);
        if page.fits() {
            break;
        }
    }
    page.print(look.colour)
}

fn draw(explanation: &Explanation, now: Time, look: PageStyle, fold: Fold) -> Page {
    let mut page = Page::new(look);
    let account = &explanation.account;
    let root = account.root().filter(|_| explanation.root.is_some());
    head(&mut page, account, root.as_ref(), now);
    let depth = chain(&mut page, root.as_ref(), now);
    let at = root.as_ref().map_or(account, Root::at);
    steps(&mut page, &at.steps, depth, now, fold);
    also(&mut page, at, root.as_ref(), depth, look);
    for error in at.errors.iter().take(2) {
        page.push(Line::new(depth, format!("! {}", one_line(error))).painted(RED).wrapped(2).dropped(4));
    }
    for event in &at.events {
        page.push(Line::new(depth, format!("event {event}")).painted(DIM).cut().dropped(6));
    }
    verdict(&mut page, explanation, root.as_ref(), now);
    page
}

fn head(page: &mut Page, account: &Account, root: Option<&Root<'_>>, now: Time) {
    let (colour, word) = state(account.state);
    let place = if account.namespace.is_empty() { String::new() } else { format!(" in {}", account.namespace) };
    let since = account.since().or_else(|| root.and_then(|it| it.since)).filter(|it| *it <= now);
    let since = since.map(|it| duration(now.since(it)));
    let is = match (account.state, since) {
        (State::Failed, Some(since)) => format!("has {word}, {since} ago"),
        (State::Failed, None) => format!("has {word}"),
        (_, Some(since)) => format!("is {word} for {since}"),
        (_, None) => format!("is {word}"),
    };
    let whom = root.and_then(Root::elsewhere).map(|it| &*it.subject);
    let text = format!("{}{place} {is}: {}", account.subject, of_whom(&account.summary, whom));
    page.push(Line::new(0, text).word(colour, word).wrapped(3));
}

/// How messages begin that are about "it".
const OF_IT: [&str; 3] = ["it ", "its ", "nothing was heard of it "];

/// The summary. Where "it" is not what was asked about, it is named.
fn of_whom(summary: &str, whom: Option<&str>) -> String {
    let summary = one_line(summary);
    match (whom, summary.split_once(": ")) {
        (Some(whom), Some((reason, what))) if OF_IT.iter().any(|it| what.starts_with(it)) => {
            format!("{reason}: {whom}: {what}")
        }
        _ => summary,
    }
}

fn state(state: State) -> (&'static str, &'static str) {
    match state {
        State::Fine => (GREEN, "fine"),
        State::Progressing => (YELLOW, "progressing"),
        State::Blocked => (RED, "blocked"),
        State::Failed => (RED, "failed"),
        State::Finished => (DIM, "finished"),
        State::Terminating => (YELLOW, "terminating"),
    }
}

/// From what was asked about down to what the cause is about; how deep that is.
fn chain(page: &mut Page, root: Option<&Root<'_>>, now: Time) -> usize {
    let Some(root) = root.filter(|it| it.path.len() > 1) else { return 1 };
    for (depth, pair) in root.path.windows(2).enumerate() {
        let (account, below) = (pair[0], pair[1]);
        let is_next =
            |it: &&super::account::Cause| it.because.as_ref().is_some_and(|it| std::ptr::eq(&raw const **it, below));
        let wait = account.causes.iter().find(is_next).map(|it| format!(" waits: {}", said(&it.wait, now)));
        page.push(
            Line::new(depth + 1, format!("{}{}{}", mark(depth), account.subject, wait.unwrap_or_default())).wrapped(3),
        );
    }
    for (account, below) in root.path.iter().zip(&root.path[1..]) {
        let is_next =
            |it: &&super::account::Cause| it.because.as_ref().is_some_and(|it| std::ptr::eq(&raw const **it, *below));
        let others =
            account.causes.iter().filter(|it| !is_next(it) && it.wait.actor != Actor::Cluster && !it.wait.follows());
        for other in others.take(2) {
            let text = format!("also {}: {}: {}", account.subject, other.wait.reason, one_line(&other.wait.message));
            page.push(Line::new(1, text).wrapped(2).dropped(4));
        }
    }
    let last = root.path.len() - 1;
    page.push(Line::new(last + 1, format!("{}{}", mark(last), root.at().subject)));
    last + 2
}

fn mark(depth: usize) -> &'static str {
    if depth == 0 { "" } else { "└ " }
}

fn steps(page: &mut Page, steps: &[Step], depth: usize, now: Time, fold: Fold) {
    let width = steps.iter().map(|it| it.name.chars().count()).max().unwrap_or(0);
    let is_folded = |it: &Step| match it.state {
        StepState::Done => fold >= Fold::Done,
        StepState::Pending => fold >= Fold::Pending,
        _ => false,
    };
    let mut rest = steps;
    while let Some(first) = rest.first() {
        let n_alike = rest.iter().take_while(|it| is_folded(first) && it.state == first.state).count();
        if n_alike > 1 {
            let (alike, others) = rest.split_at(n_alike);
            together(page, alike, depth);
            rest = others;
        } else {
            one_step(page, first, width, depth, now);
            rest = &rest[1..];
        }
    }
}

fn together(page: &mut Page, steps: &[Step], depth: usize) {
    let names: Vec<&str> = steps.iter().map(|it| &*it.name).collect();
    let first = steps.iter().filter_map(|it| it.started).min();
    let last = steps.iter().filter_map(|it| it.finished).max();
    let took = first.zip(last).map(|(first, last)| format!(" ({})", duration(last.since(first)))).unwrap_or_default();
    let (colour, mark) = step_mark(steps[0].state);
    page.push(Line::new(depth, format!("{mark} {}{took}", names.join(", "))).word(colour, mark).cut().dropped(2));
}

fn step_mark(state: StepState) -> (&'static str, &'static str) {
    match state {
        StepState::Done => (GREEN, "✔"),
        StepState::Running => (YELLOW, "▸"),
        StepState::Blocked | StepState::Failed => (RED, "✖"),
        StepState::Pending => (DIM, "·"),
    }
}

fn one_step(page: &mut Page, step: &Step, width: usize, depth: usize, now: Time) {
    let (colour, mark) = step_mark(step.state);
    let took = match (step.started, step.finished) {
        (Some(started), Some(finished)) => duration(finished.since(started)),
        (Some(started), None) if step.state != StepState::Pending => duration(now.since(started)),
        _ => String::new(),
    };
    let text = format!("{mark} {:width$}  {took:>7}  {}", step.name, one_line(&step.message));
    let dropped = if matches!(step.state, StepState::Done | StepState::Pending) { 3 } else { 0 };
    page.push(Line::new(depth, text.trim_end()).word(colour, mark).cut().dropped(dropped));
    let shown = step.log.len().saturating_sub(5);
    for line in &step.log[shown..] {
        page.push(Line::new(depth + 1, format!("│ {}", line)).painted(DIM).cut().dropped(1));
    }
}

/// So many reasons of one object are shown.
const CAUSES_SHOWN: usize = 3;

/// What else the same object waits for.
fn also(page: &mut Page, at: &Account, root: Option<&Root<'_>>, depth: usize, look: PageStyle) {
    let n_shown = look.rows(CAUSES_SHOWN);
    let waits = at.causes.iter().map(|it| (&it.by, &it.wait));
    // What the first line says is not said again.
    let is_said = |wait: &Wait| at.summary == format!("{}: {}", wait.reason, one_line(&wait.message));
    let own = waits.filter(|(_, wait)| root.is_none_or(|it| it.wait.reason != wait.reason && !wait.follows()));
    let own = own.filter(|(_, wait)| !is_said(wait));
    let own: Vec<_> = own.collect();
    for (by, wait) in own.iter().take(n_shown) {
        page.push(
            Line::new(depth, format!("└ {by} waits: {}: {}", wait.reason, one_line(&wait.message))).cut().dropped(5),
        );
    }
    if own.len() > n_shown {
        page.push(Line::new(depth, format!("└ and {} more", own.len() - n_shown)).dropped(5));
    }
    let blocked = at.steps.iter().filter_map(|it| it.wait.as_ref().map(|wait| (it, wait)));
    let others = blocked.filter(|(_, wait)| root.is_some_and(|it| it.wait.reason != wait.reason));
    for (step, wait) in others.take(2) {
        page.push(
            Line::new(depth, format!("└ {}: {}: {}", step.name, wait.reason, one_line(&wait.message))).cut().dropped(5),
        );
    }
}

fn said(wait: &Wait, now: Time) -> String {
    let since = wait.since.filter(|it| *it <= now);
    let since = since.map(|it| format!(" (for {})", duration(now.since(it)))).unwrap_or_default();
    format!("{}{since}", one_line(&wait.message))
}

fn verdict(page: &mut Page, explanation: &Explanation, root: Option<&Root<'_>>, now: Time) {
    if let Some(wait) = root.map(|it| it.wait).filter(|_| explanation.advice.is_some()) {
        let since = wait.since.map(|it| {
            let when = if it <= now { "since" } else { "due" };
            format!(" ({when} {})", it.whole_seconds())
        });
        let why = format!("{}: {}", wait.reason, one_line(&wait.message));
        // What the first line says is not said again.
        if why != explanation.account.summary {
            page.push(Line::new(0, why + &since.unwrap_or_default()).labelled("why:").wrapped(3));
        }
    }
    if let Some(advice) = &explanation.advice {
        for hint in advice.hints.iter().take(5) {
            let line = Line::new(0, one_line(hint)).labelled("note:").dropped(1);
            page.push(if hint.contains("kubectl ") { line.command() } else { line.wrapped(2) });
        }
        page.push(Line::new(0, &*advice.who).labelled("who must act:").wrapped(2));
        page.push(Line::new(0, &*advice.next).labelled("run next:").command());
    }
    for notice in &explanation.notices {
        page.push(Line::new(0, &**notice).labelled("note:").wrapped(2));
    }
    for hidden in explanation.unknown.iter().take(3) {
        page.push(Line::new(0, &**hidden).labelled("not known:").cut().dropped(1));
    }
}
