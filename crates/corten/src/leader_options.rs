//! How control planes that share a store choose the one that runs the loops: kube-controller-manager's flags.

use anyhow::{Result, bail};
use clap::ArgMatches;
use corten_api::lease_times::{LeaseTimes, WrongTimes};
use corten_options::server_options::{any_given, time};

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
    match times.wrong().first() {
        None => Ok(times),
        Some(WrongTimes::DurationTooShort) => bail!("--leader-elect-lease-duration must be at least 1s"),
        Some(WrongTimes::DurationWithinRenewal) => {
            bail!("--leader-elect-lease-duration must be greater than --leader-elect-renew-deadline")
        }
        Some(WrongTimes::NoRetryPeriod | WrongTimes::RenewalWithinRetry) => bail!(
            "--leader-elect-renew-deadline must be greater than 1.2 times --leader-elect-retry-period, which must be greater than zero"
        ),
    }
}
