//! One line of a log file.

use corten_meta::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogStream {
    Stdout,
    Stderr,
}

/// A line, or a part of one, as it lies in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) time: &'a str,
    pub(super) stream: LogStream,
    /// Is the line at its end with this part?
    pub(super) full: bool,
    pub(super) text: &'a [u8],
}

impl<'a> Line<'a> {
    /// Nothing where this is no line of a log: a runtime that was killed may have written half of one.
    pub(super) fn parse(raw: &'a [u8]) -> Option<Self> {
        let mut fields = raw.splitn(4, |it| *it == b' ');
        let time = std::str::from_utf8(fields.next()?).ok().filter(|it| it.len() >= 20 && it.is_ascii())?;
        let stream = match fields.next()? {
            b"stdout" => LogStream::Stdout,
            b"stderr" => LogStream::Stderr,
            _ => return None,
        };
        // More tags may follow the first, after colons.
        let full = match fields.next()?.first()? {
            b'F' => true,
            b'P' => false,
            _ => return None,
        };
        Some(Self { time, stream, full, text: fields.next().unwrap_or_default() })
    }

    pub(super) fn is_before(&self, since: Time) -> bool {
        self.time.parse::<Time>().is_ok_and(|it| it < since)
    }

    /// The time with all nine digits of its second: the runtime leaves trailing zeros out.
    pub(super) fn padded_time(&self) -> String {
        let (seconds, rest) = self.time.split_at(19);
        let (digits, zone) = match rest.strip_prefix('.') {
            Some(rest) => rest.split_at(rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len())),
            None => ("", rest),
        };
        format!("{seconds}.{digits:0<9}{zone}")
    }
}
