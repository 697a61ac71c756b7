//! RFC 3339 as Go's `time.Parse` reads it, down to the words it refuses with: nothing is left out, no other order, no spaces,
//! no negative years.

use std::ops::RangeInclusive;

use jiff::{SignedDuration, Timestamp, civil::DateTime, tz::Offset};

/// A text that is no time. `layout` is the reference time of Go's `time` package.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTime {
    #[error("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {wanted:?}")]
    Unreadable { text: String, layout: &'static str, rest: String, wanted: &'static str },
    #[error("parsing time {text:?}: extra text: {rest:?}")]
    GoesOn { text: String, rest: String },
    #[error("parsing time {text:?}: {what} out of range")]
    OutOfRange { text: String, what: &'static str },
}

/// Midnight before the first day of the year 0, in seconds: earlier times have no text of four digits.
pub(super) const YEAR_ZERO: i64 = -62_167_219_200;

pub(super) fn read(text: &str, layout: &'static str) -> Result<Timestamp, InvalidTime> {
    let mut reader = Reader { rest: text };
    reader.timestamp().map_err(|fault| {
        let (text, rest) = (text.to_owned(), reader.rest.to_owned());
        match fault {
            Fault::Unreadable(wanted) => InvalidTime::Unreadable { text, layout, rest, wanted },
            Fault::GoesOn => InvalidTime::GoesOn { text, rest },
            Fault::OutOfRange(what) => InvalidTime::OutOfRange { text, what },
        }
    })
}

/// What is wrong with the text that has not been read.
enum Fault {
    Unreadable(&'static str),
    GoesOn,
    OutOfRange(&'static str),
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn timestamp(&mut self) -> Result<Timestamp, Fault> {
        let year = self.year()?;
        self.sign("-")?;
        let month = self.number("01", 1..=12, "month")?;
        self.sign("-")?;
        let day = self.number("02", 0..=99, "day")?;
        self.sign("T")?;
        let hour = self.hour()?;
        self.sign(":")?;
        let minute = self.number("04", 0..=59, "minute")?;
        self.sign(":")?;
        let second = self.number("05", 0..=59, "second")?;
        let nanoseconds = self.fraction();
        let offset = self.offset()?;
        if !self.rest.is_empty() {
            return Err(Fault::GoesOn);
        }
        let time =
            DateTime::new(year, month, day, hour, minute, second, nanoseconds).map_err(|_| Fault::OutOfRange("day"))?;
        // The last day of the calendar goes on for hours that a timestamp does not count: they are one moment.
        let last = time.checked_sub(SignedDuration::from_secs(offset.seconds().into()));
        let is_of_last_day = last.is_ok_and(|it| it.year() == 9999);
        let time = match offset.to_timestamp(time) {
            Err(_) if is_of_last_day => Timestamp::MAX,
            other => other.map_err(|_| Fault::OutOfRange("year"))?,
        };
        if time.as_second() < YEAR_ZERO { Err(Fault::OutOfRange("year")) } else { Ok(time) }
    }

    fn year(&mut self) -> Result<i16, Fault> {
        let year = self.rest.get(..4).filter(|it| it.bytes().all(|byte| byte.is_ascii_digit()));
        let year = year.and_then(|it| it.parse().ok()).ok_or(Fault::Unreadable("2006"))?;
        self.rest = &self.rest[4..];
        Ok(year)
    }

    fn sign(&mut self, sign: &'static str) -> Result<(), Fault> {
        self.rest = self.rest.strip_prefix(sign).ok_or(Fault::Unreadable(sign))?;
        Ok(())
    }

    fn digit(&self, at: usize) -> Option<i8> {
        let byte = *self.rest.as_bytes().get(at)?;
        byte.is_ascii_digit().then(|| byte.cast_signed() - b'0'.cast_signed())
    }

    /// Two digits.
    fn number(&mut self, wanted: &'static str, range: RangeInclusive<i8>, what: &'static str) -> Result<i8, Fault> {
        let (Some(tens), Some(ones)) = (self.digit(0), self.digit(1)) else { return Err(Fault::Unreadable(wanted)) };
        self.rest = &self.rest[2..];
        Some(10 * tens + ones).filter(|it| range.contains(it)).ok_or(Fault::OutOfRange(what))
    }

    /// One digit is enough, as for Go.
    fn hour(&mut self) -> Result<i8, Fault> {
        match (self.digit(0), self.digit(1)) {
            (Some(hour), None) => {
                self.rest = &self.rest[1..];
                Ok(hour)
            }
            _ => self.number("15", 0..=23, "hour"),
        }
    }

    /// Nanoseconds: what comes after the ninth digit is cut.
    fn fraction(&mut self) -> i32 {
        let Some(digits) = self.rest.strip_prefix(['.', ',']) else { return 0 };
        let length = digits.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 {
            return 0;
        }
        self.rest = &digits[length..];
        let nine = digits.bytes().take(length).chain(std::iter::repeat(b'0')).take(9);
        nine.fold(0, |sum, digit| 10 * sum + i32::from(digit - b'0'))
    }

    fn offset(&mut self) -> Result<Offset, Fault> {
        const WANTED: &str = "Z07:00";
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(Offset::UTC);
        }
        let direction = match self.rest.as_bytes() {
            [b'+', _, _, b':', _, _, ..] => 1,
            [b'-', _, _, b':', _, _, ..] => -1,
            _ => return Err(Fault::Unreadable(WANTED)),
        };
        let (Some(ten_hours), Some(hours), Some(ten_minutes), Some(minutes)) =
            (self.digit(1), self.digit(2), self.digit(4), self.digit(5))
        else {
            return Err(Fault::Unreadable(WANTED));
        };
        let (hours, minutes) = (10 * ten_hours + hours, 10 * ten_minutes + minutes);
        self.rest = &self.rest[6..];
        // Some people write 24 hours or 60 minutes.
        if hours > 24 {
            return Err(Fault::OutOfRange("time zone offset hour"));
        }
        if minutes > 60 {
            return Err(Fault::OutOfRange("time zone offset minute"));
        }
        let seconds = direction * (60 * i32::from(hours) + i32::from(minutes)) * 60;
        Offset::from_seconds(seconds).map_err(|_| Fault::OutOfRange("time zone offset hour"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";

    #[test]
    fn reads_rfc_3339() {
        for (text, expected) in [
            ("2026-11-20T10:57:29Z", "2026-11-20T10:57:29Z"),
            ("2026-11-20T10:57:29.5Z", "2026-11-20T10:57:29.5Z"),
            ("2026-11-20T10:57:29,25Z", "2026-11-20T10:57:29.25Z"),
            ("2026-11-20T10:57:29.1234567899Z", "2026-11-20T10:57:29.123456789Z"),
            ("2026-11-20T12:57:29+02:00", "2026-11-20T10:57:29Z"),
            ("2026-11-20T00:57:29-00:30", "2026-11-20T01:27:29Z"),
            ("2026-11-20T7:57:29Z", "2026-11-20T07:57:29Z"),
            ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"),
            ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
            ("2026-11-20T00:00:00+24:60", "2026-11-18T23:00:00Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
            ("0000-12-31T23:59:59-00:01", "0001-01-01T00:00:59Z"),
            ("9999-12-30T21:59:59Z", "9999-12-30T21:59:59Z"),
            ("9999-12-31T23:59:59Z", "9999-12-30T22:00:00.999999999Z"),
            ("9999-12-31T23:59:59.999999999Z", "9999-12-30T22:00:00.999999999Z"),
            ("9999-12-31T23:59:59+14:00", "9999-12-30T22:00:00.999999999Z"),
            ("9999-12-31T20:00:00-03:59", "9999-12-30T22:00:00.999999999Z"),
        ] {
            assert_eq!(read(text, LAYOUT).map(|it| it.to_string()), Ok(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn says_what_it_cannot_read() {
        for (text, rest, wanted) in [
            ("yesterday", "yesterday", "2006"),
            ("", "", "2006"),
            ("-004111-11-11T00:00:00Z", "-004111-11-11T00:00:00Z", "2006"),
            ("20é6-11-20T10:57:29Z", "20é6-11-20T10:57:29Z", "2006"),
            ("20261120T105729Z", "1120T105729Z", "-"),
            ("2026-1-20T10:57:29Z", "1-20T10:57:29Z", "01"),
            ("2026-11-20", "", "T"),
            ("2026-11-20 10:57:29Z", " 10:57:29Z", "T"),
            ("2026-11-20t10:57:29Z", "t10:57:29Z", "T"),
            ("2026-11-20T10Z", "Z", ":"),
            ("2026-11-20T10:57:29", "", "Z07:00"),
            ("2026-11-20T10:57:29.Z", ".Z", "Z07:00"),
            ("2026-11-20T10:57:29z", "z", "Z07:00"),
            ("2026-11-20T10:57:29+0200", "+0200", "Z07:00"),
            ("2026-11-20T10:57:29*02:00", "*02:00", "Z07:00"),
        ] {
            let expected = format!("parsing time {text:?} as {LAYOUT:?}: cannot parse {rest:?} as {wanted:?}");
            assert_eq!(read(text, LAYOUT).map_err(|it| it.to_string()), Err(expected));
        }
    }

    #[test]
    fn says_what_there_is_not() {
        for (text, what) in [
            ("2026-13-20T10:57:29Z", "month out of range"),
            ("2026-11-31T10:57:29Z", "day out of range"),
            ("2026-11-00T10:57:29Z", "day out of range"),
            ("2026-11-20T24:00:00Z", "hour out of range"),
            ("2026-11-20T10:60:29Z", "minute out of range"),
            ("2026-11-20T10:57:60Z", "second out of range"),
            ("2026-11-20T10:57:29+25:00", "time zone offset hour out of range"),
            ("2026-11-20T10:57:29+02:61", "time zone offset minute out of range"),
            ("0000-01-01T00:00:00+01:00", "year out of range"),
            ("9999-12-31T23:59:59-10:00", "year out of range"),
            ("2026-11-20T10:57:29Z[UTC]", "extra text: \"[UTC]\""),
        ] {
            let expected = format!("parsing time {text:?}: {what}");
            assert_eq!(read(text, LAYOUT).map_err(|it| it.to_string()), Err(expected));
        }
    }
}
