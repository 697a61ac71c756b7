//! How much slower a guest is than this machine, so that a script can speak of seconds of a real machine.

use std::{process::Command, time::Duration};

use anyhow::{Context, Result};

use super::Guest;

/// What most of a node's start is made of: a program that branches and remembers, and programs that are started.
const WORK: &str = "t=$EPOCHREALTIME; for ((i = 0; i < 60000; i++)); do a[i % 97]=$((i * 7)); done; \
                    for ((i = 0; i < 40; i++)); do /bin/true; done; \
                    echo $((10#${EPOCHREALTIME/./} - 10#${t/./}))";
/// Whoever measures more has met a machine that does other things.
const SLOWNESS_MAX: f64 = 20.0;

/// At least 1.
pub(crate) fn slowness(guest: &Guest) -> Result<f64> {
    let here = Command::new("bash").args(["-c", WORK]).output().context("measuring this machine")?.stdout;
    let there = guest.output(WORK).context("measuring the guest")?;
    let time = |text: &str| -> Result<Duration> {
        let micros = text.trim().parse().with_context(|| format!("reading how long it took: {text:?}"))?;
        Ok(Duration::from_micros(micros))
    };
    let (here, there) = (time(&String::from_utf8_lossy(&here))?, time(&there)?);
    Ok((there.as_secs_f64() / here.as_secs_f64().max(1e-6)).clamp(1.0, SLOWNESS_MAX))
}
