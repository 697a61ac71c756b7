//! Which of the times a schedule names is to be acted on now, and which comes next.

use std::time::Duration;

use corten_meta::{Schedule, Time, schedule::time_zone};

use crate::projections::CronJob;

/// As in `mostRecentScheduleTime`: this many missed times may be an error of the clock.
const MISSED_MAX: u64 = 100;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Due {
    /// The latest time that has come since the last one that was acted on.
    pub(super) at: Option<Time>,
    pub(super) has_missed_many: bool,
    pub(super) next: Option<Time>,
}

/// Why no time can be told: the event's reason and message.
pub(super) struct Unclear {
    pub(super) reason: &'static str,
    pub(super) message: String,
    /// No time to come fits the schedule. Upstream's message does not say that.
    pub(super) is_never: bool,
}

impl Unclear {
    fn of(reason: &'static str, message: String) -> Self {
        Self { reason, message, is_never: false }
    }
}

pub(super) fn due(cron_job: &CronJob, now: Time) -> Result<Due, Unclear> {
    let spec = &cron_job.spec;
    let zone_name = spec.time_zone.as_deref().unwrap_or_default();
    let zone = time_zone(zone_name)
        .map_err(|error| Unclear::of("UnknownTimeZone", format!("invalid timeZone: {zone_name:?}: {error}")))?;
    let schedule = Schedule::parse(&spec.schedule).map_err(|error| {
        Unclear::of("UnparseableSchedule", format!("unparseable schedule: {:?} : {error}", spec.schedule))
    })?;
    let next = |after: Time| schedule.next(after, &zone);
    let is_never = next(now).is_none();
    let last = |after: Time| schedule.latest(after, now, &zone);
    let (at, has_missed_many) = latest(earliest(cron_job, now), now, next, last).map_err(|error| Unclear {
        reason: "InvalidSchedule",
        message: format!("invalid schedule: {} : {error}", spec.schedule),
        is_never,
    })?;
    Ok(Due { at, has_missed_many, next: next(now) })
}

/// The time before which nothing is looked for.
fn earliest(cron_job: &CronJob, now: Time) -> Time {
    let since = cron_job.status.last_schedule_time.or(cron_job.metadata.creation_timestamp).unwrap_or(now);
    match cron_job.spec.starting_deadline_seconds {
        Some(seconds) => since.max(now.before(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))),
        None => since,
    }
}

/// The last time that is not after `now`, and whether suspiciously many went by. How many is reckoned, as by
/// `mostRecentScheduleTime`, from how far the first two are apart: nobody walks through all of them.
fn latest(
    earliest: Time,
    now: Time,
    next: impl Fn(Time) -> Option<Time>,
    last: impl Fn(Time) -> Option<Time>,
) -> Result<(Option<Time>, bool), &'static str> {
    const TOO_CLOSE: &str = "time difference between two schedules is less than 1 second";
    let first = next(earliest).ok_or(TOO_CLOSE)?;
    if now < first {
        return Ok((None, false));
    }
    let second = next(first).ok_or(TOO_CLOSE)?;
    if now < second {
        return Ok((Some(first), false));
    }
    let between = second.since(first).as_secs().max(1);
    let n_missed = (now.since(first).as_secs() / between).saturating_add(1);
    // As in `mostRecentScheduleTime`: what is older than the last two of evenly spread times does not count any more.
    let from = first.after(Duration::from_secs(between.saturating_mul(n_missed.saturating_sub(2))));
    Ok((last(from), n_missed > MISSED_MAX))
}
