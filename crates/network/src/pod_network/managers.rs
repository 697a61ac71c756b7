//! Those who keep packet filters on a machine and have a place for others' rules: Pods' traffic is let through there.
//!
//! Only what comes from Pods, and what answers them, is: who may reach them from outside is the administrator's to say.

mod docker;
mod firewalld;
mod ufw;

use corten_machine::{Layout, MachineError};

use super::filters::{Chain, Filters};

/// Marks what Corten has put into others' places.
const MARK: &str = "corten";

/// Whose a chain is. Where ufw is there, Docker's place is not used: it would open what ufw closes towards the outside.
enum Manager {
    Firewalld,
    Ufw,
    Docker,
}

fn manager(filters: &Filters, chain: &Chain) -> Option<Manager> {
    if firewalld::keeps(chain) {
        Some(Manager::Firewalld)
    } else if ufw::keeps(filters, chain) {
        Some(Manager::Ufw)
    } else if docker::keeps(filters, chain) {
        Some(Manager::Docker)
    } else {
        None
    }
}

/// Opens what is closed and has a manager. True where anything was opened.
pub(super) async fn open(filters: &Filters, layout: &Layout) -> bool {
    let mut opened = false;
    for chain in filters.closed(layout).into_iter().filter(|it| !filters.forbids_pods(it, &layout.bridge)) {
        let done = match manager(filters, chain) {
            Some(Manager::Firewalld) => firewalld::open(layout).await,
            Some(Manager::Ufw) => ufw::open(chain, layout).await,
            Some(Manager::Docker) => docker::open(filters, layout).await,
            None => continue,
        };
        match done {
            Ok(changed) => opened |= changed,
            Err(error) => tracing::warn!(%error, chain = chain.name(), "others' filters cannot be opened for pods"),
        }
    }
    opened
}

/// What opens a chain by hand.
pub(super) fn command(filters: &Filters, chain: &Chain, bridge: &str) -> String {
    match manager(filters, chain) {
        Some(Manager::Firewalld) => firewalld::command(bridge),
        Some(Manager::Ufw) => ufw::command(chain, bridge),
        Some(Manager::Docker) | None => {
            let direction = if chain.hook() == "output" { "oifname" } else { "iifname" };
            let place = format!("{} {} {}", chain.family(), chain.table(), chain.name());
            format!("nft insert rule {place} {direction} {bridge} accept")
        }
    }
}

/// Takes back what [`open`] has put, whether its manager runs or not.
pub(super) async fn withdraw(layout: &Layout) -> Result<(), MachineError> {
    // One manager that fails keeps no other from it.
    let withdrawn = [firewalld::withdraw(layout).await, ufw::withdraw(layout).await, docker::withdraw(layout).await];
    withdrawn.into_iter().collect()
}
