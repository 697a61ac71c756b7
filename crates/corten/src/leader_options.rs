//! How control planes that share a store choose the one that runs the loops: kube-controller-manager's flags.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::ArgMatches;
use corten_options::server_options::{any_given, time};
use corten_runner::LeaseTimes;

/// client-go's `JitterFactor`: a retry may come so much later.
const JITTER: f64 = 1.2;

/// # Errors
/// Given for a server that shares its store with nobody; times with which a holder could not renew its lease before another takes it (`NewLeaderElector`).
pub(crate) fn lease_times(matches: &ArgMatches, is_shared: bool) -> Result<LeaseTimes> {
    if any_given(matches, "leader-elect-") && !is_shared {
        bail!(
            "--leader-elect-… is about several servers that share an etcd: name it with --etcd-servers, or leave it out"
        );
    }
    let times = LeaseTimes {
        duration: time(matches, "leader-elect-lease-duration"),
        renew_deadline: time(matches, "leader-elect-renew-deadline"),
        retry_period: time(matches, "leader-elect-retry-period"),
    };
    if times.duration < Duration::from_secs(1) {
        bail!("--leader-elect-lease-duration must be at least 1s");
    }
    // A Lease counts whole seconds.
    if Duration::from_secs(times.duration.as_secs()) <= times.renew_deadline {
        bail!("--leader-elect-lease-duration must be greater than --leader-elect-renew-deadline");
    }
    if times.retry_period.is_zero() || times.renew_deadline <= times.retry_period.mul_f64(JITTER) {
        bail!(
            "--leader-elect-renew-deadline must be greater than 1.2 times --leader-elect-retry-period, which must be greater than zero"
        );
    }
    Ok(times)
}
