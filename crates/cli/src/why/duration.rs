//! How long something took or takes, for a column.

/// `0.3s`, `12s`, `4m05s`, `3h10m`, `2d`: short, because it stands in a column.
pub(crate) fn duration(duration: std::time::Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..=9 => format!("{:.1}s", duration.as_secs_f64()),
        10..=119 => format!("{seconds}s"),
        120..=7_199 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        7_200..=172_799 => format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d", seconds / 86_400),
    }
}
