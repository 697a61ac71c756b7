//! Times and durations, with Go's bounds: a duration is a number of nanoseconds, a time lies in the years 1 to 9999.

use jiff::{
    civil::DateTime,
    tz::{Offset, TimeZone},
};

use super::{Evaluated, Row, convert::failed};
use crate::{
    error::Error,
    timestamp::{Timestamp, duration, timestamp},
    value::Value,
};

pub(super) const ROWS: &[Row] = &[
    ("duration_to_duration", "duration(duration) -> duration", to_duration),
    ("int64_to_duration", "duration(int) -> duration", to_duration),
    ("string_to_duration", "duration(string) -> duration", to_duration),
    ("timestamp_to_timestamp", "timestamp(timestamp) -> timestamp", to_timestamp),
    ("int64_to_timestamp", "timestamp(int) -> timestamp", to_timestamp),
    ("string_to_timestamp", "timestamp(string) -> timestamp", to_timestamp),
    ("timestamp_to_year", ".getFullYear(timestamp) -> int", |it| part(it, |at| at.year().into())),
    ("timestamp_to_year_with_tz", ".getFullYear(timestamp, string) -> int", |it| part(it, |at| at.year().into())),
    ("timestamp_to_month", ".getMonth(timestamp) -> int", |it| part(it, month)),
    ("timestamp_to_month_with_tz", ".getMonth(timestamp, string) -> int", |it| part(it, month)),
    ("timestamp_to_day_of_year", ".getDayOfYear(timestamp) -> int", |it| part(it, day_of_year)),
    ("timestamp_to_day_of_year_with_tz", ".getDayOfYear(timestamp, string) -> int", |it| part(it, day_of_year)),
    ("timestamp_to_day_of_month", ".getDayOfMonth(timestamp) -> int", |it| part(it, day_from_zero)),
    ("timestamp_to_day_of_month_with_tz", ".getDayOfMonth(timestamp, string) -> int", |it| part(it, day_from_zero)),
    ("timestamp_to_day_of_month_1_based", ".getDate(timestamp) -> int", |it| part(it, |at| at.day().into())),
    ("timestamp_to_day_of_month_1_based_with_tz", ".getDate(timestamp, string) -> int", |it| {
        part(it, |at| at.day().into())
    }),
    ("timestamp_to_day_of_week", ".getDayOfWeek(timestamp) -> int", |it| part(it, day_of_week)),
    ("timestamp_to_day_of_week_with_tz", ".getDayOfWeek(timestamp, string) -> int", |it| part(it, day_of_week)),
    ("timestamp_to_hours", ".getHours(timestamp) -> int", |it| part(it, |at| at.hour().into())),
    ("timestamp_to_hours_with_tz", ".getHours(timestamp, string) -> int", |it| part(it, |at| at.hour().into())),
    ("timestamp_to_minutes", ".getMinutes(timestamp) -> int", |it| part(it, |at| at.minute().into())),
    ("timestamp_to_minutes_with_tz", ".getMinutes(timestamp, string) -> int", |it| part(it, |at| at.minute().into())),
    ("timestamp_to_seconds", ".getSeconds(timestamp) -> int", |it| part(it, |at| at.second().into())),
    ("timestamp_to_seconds_tz", ".getSeconds(timestamp, string) -> int", |it| part(it, |at| at.second().into())),
    ("timestamp_to_milliseconds", ".getMilliseconds(timestamp) -> int", |it| part(it, |at| at.millisecond().into())),
    ("timestamp_to_milliseconds_with_tz", ".getMilliseconds(timestamp, string) -> int", |it| {
        part(it, |at| at.millisecond().into())
    }),
    ("duration_to_hours", ".getHours(duration) -> int", |it| whole(it, 3_600_000_000_000)),
    ("duration_to_minutes", ".getMinutes(duration) -> int", |it| whole(it, 60_000_000_000)),
    ("duration_to_seconds", ".getSeconds(duration) -> int", |it| whole(it, 1_000_000_000)),
    ("duration_to_milliseconds", ".getMilliseconds(duration) -> int", |it| whole(it, 1_000_000)),
];

fn to_duration<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    match &args[0] {
        Value::Duration(it) | Value::Int(it) => Ok(Value::Duration(*it)),
        Value::String(text) => {
            duration(text).map(Value::Duration).or_else(|_| failed(&args[0], "google.protobuf.Duration"))
        }
        _ => Err(Error::no_such_overload()),
    }
}

fn to_timestamp<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    match &args[0] {
        Value::Timestamp(it) => Ok(Value::Timestamp(*it)),
        Value::Int(seconds) => {
            let at = Timestamp { seconds: *seconds, nanos: 0 }.moved(0);
            at.map(Value::Timestamp).ok_or_else(|| Error::other("timestamp overflow"))
        }
        Value::String(text) => {
            timestamp(text).map(Value::Timestamp).or_else(|_| failed(&args[0], "google.protobuf.Timestamp"))
        }
        _ => Err(Error::no_such_overload()),
    }
}

fn whole<'a>(args: &[Value<'a>], unit: i64) -> Evaluated<'a> {
    match &args[0] {
        Value::Duration(nanos) => Ok(Value::Int(nanos / unit)),
        _ => Err(Error::no_such_overload()),
    }
}

/// A part of a time, in the zone that is named, or UTC.
fn part<'a>(args: &[Value<'a>], of: fn(&DateTime) -> i64) -> Evaluated<'a> {
    let (at, offset) = match args {
        [Value::Timestamp(at)] => (at, 0),
        [Value::Timestamp(at), Value::String(zone)] => (at, named_zone(zone)?.to_offset(at.in_zones()).seconds()),
        _ => return Err(Error::no_such_overload()),
    };
    at.civil(offset).map(|it| Value::Int(of(&it))).ok_or_else(|| Error::other("timestamp overflow"))
}

/// `Europe/Berlin`, or `-07:30` from UTC.
fn named_zone(name: &str) -> Result<TimeZone, Box<Error>> {
    let unknown = || Error::other(format!("unknown time zone {name}"));
    let Some((hours, minutes)) = name.split_once(':') else {
        return if name.is_empty() { Ok(TimeZone::UTC) } else { TimeZone::get(name).map_err(|_| unknown()) };
    };
    let invalid = |it: &str| Error::other(format!("strconv.Atoi: parsing {it:?}: invalid syntax"));
    let hour: i32 = hours.parse().map_err(|_| invalid(hours))?;
    let minute: i32 = minutes.parse().map_err(|_| invalid(minutes))?;
    let minutes = hour.saturating_mul(60).saturating_add(if name.starts_with('-') { -minute } else { minute });
    Offset::from_seconds(minutes.saturating_mul(60)).map(TimeZone::fixed).map_err(|_| unknown())
}

fn month(at: &DateTime) -> i64 {
    i64::from(at.month()) - 1
}

fn day_of_year(at: &DateTime) -> i64 {
    i64::from(at.day_of_year()) - 1
}

fn day_from_zero(at: &DateTime) -> i64 {
    i64::from(at.day()) - 1
}

fn day_of_week(at: &DateTime) -> i64 {
    at.weekday().to_sunday_zero_offset().into()
}
