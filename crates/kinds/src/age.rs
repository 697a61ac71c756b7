//! How long ago something was, as `kubectl get` says it.

use corten_meta::Time;

/// How long ago a time was, as `kubectl get` says it.
pub(crate) fn since(time: &str, now: Time) -> String {
    match time.parse::<Time>() {
        Ok(time) => human_duration((now.unix_millis() - time.unix_millis()).div_euclid(1000)),
        Err(_) => "<unknown>".into(),
    }
}

/// Two units at most, the second only while it matters: `90s`, `5m12s`, `3h`, `2d4h`, `400d`.
pub fn human_duration(seconds: i64) -> String {
    let with_rest = |whole: i64, unit: &str, rest: i64, rest_unit: &str| match rest {
        0 => format!("{whole}{unit}"),
        rest => format!("{whole}{unit}{rest}{rest_unit}"),
    };
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    match () {
        () if seconds < -1 => "<invalid>".into(),
        () if seconds < 0 => "0s".into(),
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => with_rest(minutes, "m", seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => with_rest(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if hours < 24 * 8 => with_rest(hours / 24, "d", hours % 24, "h"),
        () if hours < 24 * 365 * 2 => format!("{}d", hours / 24),
        () if hours < 24 * 365 * 8 => with_rest(hours / 24 / 365, "y", hours / 24 % 365, "d"),
        () => format!("{}y", hours / 24 / 365),
    }
}
