//! When a CronJob is due: the five fields of cron, its descriptors (`@daily`, `@every 90s`) and time zones, read as
//! Kubernetes reads them and with its complaints.

use std::time::Duration;

use jiff::{
    SignedDuration, Timestamp, ToSpan, Zoned,
    civil::Date,
    tz::{TimeZone, TimeZoneDatabase},
};

use crate::{Time, duration::nanos};

/// Beyond this nothing is due any more: `0 0 30 2 *`.
const YEARS_MAX: i16 = 5;
const MINUTE: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    due: Due,
    /// From a leading `TZ=` or `CRON_TZ=`.
    zone: Option<TimeZone>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Due {
    Every(Duration),
    Fields { minutes: Set, hours: Set, days: Set, months: Set, weekdays: Set },
}

/// Numbers a field allows, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Set {
    bits: u64,
    /// Written as `*`: of the two fields for days only the other one counts.
    is_star: bool,
}

impl Set {
    fn has(self, number: i8) -> bool {
        u8::try_from(number).is_ok_and(|it| self.bits >> it & 1 == 1)
    }
}

struct Bounds {
    min: u64,
    max: u64,
    names: &'static [&'static str],
}

const MINUTES: Bounds = Bounds { min: 0, max: 59, names: &[] };
const HOURS: Bounds = Bounds { min: 0, max: 23, names: &[] };
const DAYS: Bounds = Bounds { min: 1, max: 31, names: &[] };
const MONTHS: Bounds = Bounds {
    min: 1,
    max: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const WEEKDAYS: Bounds = Bounds { min: 0, max: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

/// The time zone of a name of the IANA database, as it was when this program was built.
///
/// # Errors
/// A sentence for a name that is none.
pub fn time_zone(name: &str) -> Result<TimeZone, String> {
    if name.is_empty() || name == "UTC" {
        return Ok(TimeZone::UTC);
    }
    TimeZoneDatabase::bundled().get(name).map_err(|_| format!("unknown time zone {name}"))
}

impl Schedule {
    /// # Errors
    /// A sentence that says what cannot be read.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("empty spec string".into());
        }
        let named = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ="));
        let (zone, text) = match named {
            None => (None, text),
            Some(named) => {
                let (name, rest) = named.split_once(' ').unwrap_or((named, ""));
                let zone = time_zone(name).map_err(|it| format!("provided bad location {name}: {it}"))?;
                (Some(zone), rest.trim())
            }
        };
        let due = if text.starts_with('@') { descriptor(text)? } else { fields(text)? };
        Ok(Self { due, zone })
    }

    /// The first time after `after`, always a later one; none within five years, or before the calendar ends, is never.
    /// `zone` is that of the object, where the schedule itself names none.
    pub fn next(&self, after: Time, zone: &TimeZone) -> Option<Time> {
        self.candidate(after, zone).filter(|it| *it > after)
    }

    /// The last time that is later than `after` and not later than `now`, found without looking at those between.
    pub fn latest(&self, after: Time, now: Time, zone: &TimeZone) -> Option<Time> {
        let first = self.next(after, zone).filter(|it| *it <= now)?;
        if let Due::Every(delay) = self.due {
            let n_more = now.since(first).as_secs().checked_div(delay.as_secs())?;
            return first.checked_after(Duration::from_secs(n_more.checked_mul(delay.as_secs())?));
        }
        // The later one begins to look, the later is what is found. No two are due within one minute.
        let (mut found, mut late) = (first, now);
        while late.since(found) >= MINUTE {
            let middle = found.after(late.since(found) / 2);
            match self.next(middle, zone).filter(|it| *it <= now) {
                Some(later) => found = later,
                None => late = middle,
            }
        }
        Some(found)
    }

    fn candidate(&self, after: Time, zone: &TimeZone) -> Option<Time> {
        let Due::Fields { minutes, hours, days, months, weekdays } = &self.due else {
            let Due::Every(delay) = self.due else { return None };
            return after.whole_seconds().checked_after(delay);
        };
        // A field of commas alone. Who looked for such a minute would look at every one there is.
        if [minutes, hours, days, months, weekdays].iter().any(|it| it.bits == 0) {
            return None;
        }
        let zone = self.zone.as_ref().unwrap_or(zone);
        let start = after.0.as_second().div_euclid(60).checked_add(1)?.checked_mul(60)?;
        let start = Timestamp::from_second(start).ok()?.to_zoned(zone.clone());
        let mut date = start.date();
        let last = date.checked_add(i64::from(YEARS_MAX).years()).ok()?;
        while date <= last {
            if !months.has(date.month()) {
                date = date.last_of_month().tomorrow().ok()?;
                continue;
            }
            if is_day(date, *days, *weekdays) {
                let midnight = date.to_zoned(zone.clone()).ok()?;
                let from = if date == start.date() { start.clone() } else { midnight };
                if let Some(found) = within_day(from, *hours, *minutes) {
                    return Some(found);
                }
            }
            date = date.tomorrow().ok()?;
        }
        None
    }
}

/// As in robfig/cron: where both fields restrict the day, either will do.
fn is_day(date: Date, days: Set, weekdays: Set) -> bool {
    let (day, weekday) = (days.has(date.day()), weekdays.has(date.weekday().to_sunday_zero_offset()));
    if days.is_star || weekdays.is_star { day && weekday } else { day || weekday }
}

/// The clock's own minutes, so that an hour that is left out in spring is never due, and one that comes twice in autumn is
/// due twice.
fn within_day(mut now: Zoned, hours: Set, minutes: Set) -> Option<Time> {
    let date = now.date();
    while now.date() == date {
        if !hours.has(now.hour()) {
            now = now.checked_add(SignedDuration::from_mins(i64::from(60 - now.minute()))).ok()?;
        } else if minutes.has(now.minute()) {
            return Some(Time(now.timestamp()));
        } else {
            now = now.checked_add(SignedDuration::from_mins(1)).ok()?;
        }
    }
    None
}

fn descriptor(text: &str) -> Result<Due, String> {
    match text {
        "@yearly" | "@annually" => fields("0 0 1 1 *"),
        "@monthly" => fields("0 0 1 * *"),
        "@weekly" => fields("0 0 * * 0"),
        "@daily" | "@midnight" => fields("0 0 * * *"),
        "@hourly" => fields("0 * * * *"),
        _ => match text.strip_prefix("@every ") {
            Some(duration) => {
                let nanos = nanos(duration).map_err(|it| format!("failed to parse duration {text}: {it}"))?;
                // As in robfig/cron's `Every`: whole seconds, and never less than one.
                let seconds = u64::try_from(nanos / 1_000_000_000).unwrap_or(0);
                Ok(Due::Every(Duration::from_secs(seconds.max(1))))
            }
            None => Err(format!("unrecognized descriptor: {text}")),
        },
    }
}

fn fields(text: &str) -> Result<Due, String> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [minutes, hours, days, months, weekdays] = fields[..] else {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    };
    Ok(Due::Fields {
        minutes: set(minutes, &MINUTES)?,
        hours: set(hours, &HOURS)?,
        days: set(days, &DAYS)?,
        months: set(months, &MONTHS)?,
        weekdays: set(weekdays, &WEEKDAYS)?,
    })
}

fn set(field: &str, bounds: &Bounds) -> Result<Set, String> {
    let mut set = Set { bits: 0, is_star: false };
    for part in field.split(',').filter(|it| !it.is_empty()) {
        let part = range(part, bounds)?;
        set.bits |= part.bits;
        set.is_star |= part.is_star;
    }
    Ok(set)
}

/// `*`, `5`, `1-5`, `*/15`, `10-40/5`, `mon-fri`.
fn range(text: &str, bounds: &Bounds) -> Result<Set, String> {
    let mut parts = text.split('/');
    let (span, step) = (parts.next().unwrap_or_default(), parts.next());
    let mut ends = span.split('-');
    let (low, high) = (ends.next().unwrap_or_default(), ends.next());
    let mut is_star = matches!(low, "*" | "?");
    let (start, mut end) = if is_star {
        (bounds.min, bounds.max)
    } else {
        let start = number_or_name(low, bounds)?;
        let end = high.map_or(Ok(start), |it| number_or_name(it, bounds))?;
        if ends.next().is_some() {
            return Err(format!("too many hyphens: {text}"));
        }
        (start, end)
    };
    let step = match step {
        None => 1,
        Some(step) => {
            let step = number(step)?;
            if high.is_none() {
                end = bounds.max;
            }
            is_star &= step <= 1;
            step
        }
    };
    if parts.next().is_some() {
        return Err(format!("too many slashes: {text}"));
    }
    let Bounds { min, max, .. } = *bounds;
    match () {
        () if start < min => return Err(format!("beginning of range ({start}) below minimum ({min}): {text}")),
        () if end > max => return Err(format!("end of range ({end}) above maximum ({max}): {text}")),
        () if start > end => return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}")),
        () if step == 0 => return Err(format!("step of range should be a positive number: {text}")),
        () => {}
    }
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    Ok(Set { bits: (start..=end).step_by(step).fold(0, |bits, it| bits | 1 << it), is_star })
}

fn number_or_name(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let lower = text.to_lowercase();
    match bounds.names.iter().position(|it| *it == lower) {
        Some(at) => Ok(at as u64 + bounds.min),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, String> {
    match text.parse::<i64>() {
        Ok(number) => u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}")),
        Err(_) => Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_time() {
        for (schedule, zone, after, expected) in [
            ("*/15 * * * *", "UTC", "2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z"),
            ("0 0 1 1 *", "UTC", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
            ("@hourly", "UTC", "2026-01-01T00:00:01Z", "2026-01-01T01:00:00Z"),
            ("@every 90s", "UTC", "2026-01-01T00:00:00Z", "2026-01-01T00:01:30Z"),
            ("@every 1h30m", "UTC", "2026-01-01T00:00:00Z", "2026-01-01T01:30:00Z"),
            ("0 9 * * mon-fri", "UTC", "2026-01-02T09:00:00Z", "2026-01-05T09:00:00Z"),
            // Either field for days will do.
            ("0 0 13 * fri", "UTC", "2026-01-03T00:00:00Z", "2026-01-09T00:00:00Z"),
            ("30 2 29 2 *", "UTC", "2026-01-01T00:00:00Z", "2028-02-29T02:30:00Z"),
            ("0 8 * * *", "Europe/Berlin", "2026-07-01T00:00:00Z", "2026-07-01T06:00:00Z"),
            ("TZ=Asia/Tokyo 0 8 * * *", "UTC", "2026-07-01T00:00:00Z", "2026-07-01T23:00:00Z"),
            // The hour that spring leaves out is not made up for.
            ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z"),
            // The hour that autumn has twice is due twice.
            ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"),
        ] {
            let zone = time_zone(zone).expect(zone);
            let next = Schedule::parse(schedule).expect(schedule).next(after.parse().expect(after), &zone);
            assert_eq!(next.map(|it| it.to_string()).as_deref(), Some(expected), "{schedule} after {after}");
        }
    }

    #[test]
    fn never() {
        let begin = Time::from_unix_seconds(0);
        for schedule in
            ["0 0 30 2 *", "59 23 31 2,4,6,9,11 *", ", * * * *", "* , * * *", "* * , * *", "* * * , *", "* * * * ,"]
        {
            let schedule = Schedule::parse(schedule).expect(schedule);
            assert_eq!(schedule.next(begin, &TimeZone::UTC), None);
            assert_eq!(schedule.latest(begin, Time::MAX, &TimeZone::UTC), None);
        }
        assert_eq!(
            Schedule::parse("@every 9999999999h"),
            Err("failed to parse duration @every 9999999999h: time: invalid duration \"9999999999h\"".to_owned())
        );
    }

    /// Wherever it begins to look, the next time is a later one, or there is none: who goes from time to time comes to an end.
    #[test]
    fn it_always_goes_on() {
        let zones = ["UTC", "Europe/Berlin", "Pacific/Apia", "Africa/Monrovia", "Antarctica/Troll"];
        let begins = ["0000-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "2011-12-30T10:00:00Z", "2026-10-25T00:59:59Z"];
        let begins =
            begins.map(|it| it.parse::<Time>().expect(it)).into_iter().chain([Time::MAX, Time::MAX.after_seconds(-90)]);
        for begin in begins.chain([Time::MAX.after_seconds(-400 * 24 * 3600)]) {
            for text in [
                "* * * * *",
                "30 2 * * *",
                "0 0 29 2 *",
                "@yearly",
                "@every 1s",
                "@every 0s",
                "@every -1h",
                "@every 2562047h",
            ] {
                let schedule = Schedule::parse(text).expect(text);
                for zone in zones.map(|it| time_zone(it).expect(it)) {
                    let mut at = begin;
                    for _ in 0..5 {
                        let Some(next) = schedule.next(at, &zone) else { break };
                        assert!(next > at, "{text} after {at}");
                        at = next;
                    }
                }
            }
        }
    }

    #[test]
    fn the_latest_time() {
        let (begin, now) = ("2026-01-01T00:00:30Z", "2026-11-20T10:57:29Z");
        for (schedule, after, now, expected) in [
            ("* * * * *", begin, now, Some("2026-11-20T10:57:00Z")),
            ("*/15 * * * *", begin, now, Some("2026-11-20T10:45:00Z")),
            ("0 0 1 * *", begin, now, Some("2026-11-01T00:00:00Z")),
            ("30 6-16/4 * * 1-5", begin, now, Some("2026-11-20T10:30:00Z")),
            // Every minute of one day.
            ("* * 1 3 *", begin, now, Some("2026-03-01T23:59:00Z")),
            ("0 0 1 1 *", begin, now, None),
            ("@every 90s", begin, now, Some("2026-11-20T10:56:00Z")),
            ("@every 1s", "0000-01-01T00:00:00Z", now, Some(now)),
            ("@every 2562047h", begin, "9000-01-01T00:00:00Z", Some("8748-05-16T01:00:30Z")),
            ("* * * * *", "0000-01-01T00:00:00Z", "9990-12-30T22:00:00Z", Some("9990-12-30T22:00:00Z")),
            ("* * * * *", now, begin, None),
        ] {
            let time = |it: &str| it.parse::<Time>().expect(it);
            let latest = Schedule::parse(schedule).expect(schedule).latest(time(after), time(now), &TimeZone::UTC);
            assert_eq!(latest.map(|it| it.to_string()).as_deref(), expected, "{schedule}");
        }
    }

    #[test]
    fn complaints() {
        for (schedule, expected) in [
            ("", "empty spec string"),
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
            ("@often", "unrecognized descriptor: @often"),
            ("@every soon", "failed to parse duration @every soon: time: invalid duration \"soon\""),
            ("TZ=Mars/Base 0 0 * * *", "provided bad location Mars/Base: unknown time zone Mars/Base"),
        ] {
            assert_eq!(Schedule::parse(schedule), Err(expected.to_owned()), "{schedule}");
        }
        assert_eq!(time_zone("Mars/Base"), Err("unknown time zone Mars/Base".to_owned()));
    }
}
