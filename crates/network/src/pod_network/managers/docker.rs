//! Docker drops what is forwarded, and has a chain for its users' rules.

use std::collections::BTreeSet;

use corten_machine::{Layout, MachineError, command};

use super::MARK;
use crate::pod_network::filters::{Chain, Filters};

const CHAIN: &str = "DOCKER-USER";
const PROGRAMS: [(&str, &str); 2] = [("ip", "iptables"), ("ip6", "ip6tables")];

pub(super) fn keeps(filters: &Filters, chain: &Chain) -> bool {
    chain.hook() == "forward" && filters.has_beside(chain, CHAIN)
}

/// True where rules were put. They stand after those of the administrator, whose chain it is: what these close stays closed.
pub(super) async fn open(filters: &Filters, layout: &Layout) -> Result<bool, MachineError> {
    let families: BTreeSet<&str> = filters.families_with(CHAIN).collect();
    let mut is_put = false;
    for (_, program) in PROGRAMS.iter().filter(|it| families.contains(it.0)) {
        // Where they stand and do not help, nothing leads to the chain.
        if !are_there(program, layout).await {
            remove(program, layout).await;
            let place = place_in(&command::run(program, &["-w", "-S", CHAIN], "").await?).to_string();
            // Each pushes the one before it on.
            for rule in rules(layout).iter().rev() {
                let action = ["-w", "-I", CHAIN, &place];
                let args: Vec<&str> = action.into_iter().chain(rule.iter().copied()).collect();
                command::run(program, &args, "").await?;
            }
            is_put = true;
        }
    }
    if is_put {
        tracing::info!("Docker drops what is forwarded: pods' traffic is let through in {CHAIN}");
    }
    Ok(is_put)
}

async fn are_there(program: &str, layout: &Layout) -> bool {
    for rule in rules(layout) {
        if change(program, "-C", &rule).await.is_err() {
            return false;
        }
    }
    true
}

/// Each as often as it is there.
async fn remove(program: &str, layout: &Layout) {
    for rule in rules(layout) {
        while change(program, "-D", &rule).await.is_ok() {}
    }
}

/// The number, from one, that a rule gets which stands after all others: before the last one where that sends everything back,
/// as Docker's own does.
fn place_in(listing: &str) -> usize {
    let rules: Vec<&str> = listing.lines().filter(|it| it.starts_with("-A ")).collect();
    let returns = rules.last().is_some_and(|it| *it == format!("-A {CHAIN} -j RETURN"));
    rules.len() + usize::from(!returns)
}

pub(super) async fn withdraw(layout: &Layout) -> Result<(), MachineError> {
    let Ok(filters) = Filters::read().await else { return Ok(()) };
    let families: BTreeSet<&str> = filters.families_with(CHAIN).collect();
    for (_, program) in PROGRAMS.iter().filter(|it| families.contains(it.0)) {
        remove(program, layout).await;
    }
    Ok(())
}

/// What Docker's users put before its own rules: what Pods send, except to Docker's own networks, which Docker keeps apart; what
/// answers Pods, and what a Service leads to them.
fn rules(layout: &Layout) -> [Vec<&str>; 4] {
    let bridge = layout.bridge.as_str();
    let to_dockers = |name: &'static str| -> Vec<&str> {
        vec!["-i", bridge, "-o", name, "-m", "comment", "--comment", MARK, "-j", "RETURN"]
    };
    let accept = ["-m", "comment", "--comment", MARK, "-j", "ACCEPT"];
    let led = ["-o", bridge, "-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED,DNAT"];
    [
        to_dockers("docker0"),
        to_dockers("br-+"),
        ["-i", bridge].iter().chain(&accept).copied().collect(),
        led.iter().chain(&accept).copied().collect(),
    ]
}

async fn change(program: &str, action: &str, rule: &[&str]) -> Result<(), MachineError> {
    let args: Vec<&str> = ["-w", action, CHAIN].into_iter().chain(rule.iter().copied()).collect();
    command::run(program, &args, "").await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_stand_after_the_administrators() {
        for (listing, expected) in [
            ("-N DOCKER-USER\n", 1),
            ("-N DOCKER-USER\n-A DOCKER-USER -j RETURN\n", 1),
            ("-N DOCKER-USER\n-A DOCKER-USER -i eth0 -j DROP\n-A DOCKER-USER -j RETURN\n", 2),
            ("-N DOCKER-USER\n-A DOCKER-USER -i eth0 -j DROP\n", 2),
        ] {
            assert_eq!(place_in(listing), expected, "{listing}");
        }
    }
}
