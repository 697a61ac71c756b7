//! Docker drops what is forwarded, and has a chain for its users' rules.

use std::collections::BTreeSet;

use super::MARK;
use crate::{
    HostError, Layout, command,
    network::filters::{Chain, Filters},
};

const CHAIN: &str = "DOCKER-USER";
const PROGRAMS: [(&str, &str); 2] = [("ip", "iptables"), ("ip6", "ip6tables")];

pub(super) fn keeps(filters: &Filters, chain: &Chain) -> bool {
    chain.hook() == "forward" && filters.has_beside(chain, CHAIN)
}

/// True where a rule was put.
pub(super) async fn open(filters: &Filters, layout: &Layout) -> Result<bool, HostError> {
    let families: BTreeSet<&str> = filters.families_with(CHAIN).collect();
    let mut is_put = false;
    for (_, program) in PROGRAMS.iter().filter(|it| families.contains(it.0)) {
        for rule in rules(layout) {
            // What stands there already is not put twice. Where it does not help, nothing leads to the chain.
            if change(program, "-C", &rule).await.is_err() {
                change(program, "-I", &rule).await?;
                is_put = true;
            }
        }
    }
    if is_put {
        tracing::info!("Docker drops what is forwarded: pods' traffic is let through in {CHAIN}");
    }
    Ok(is_put)
}

pub(super) async fn withdraw(layout: &Layout) -> Result<(), HostError> {
    let Ok(filters) = Filters::read().await else { return Ok(()) };
    let families: BTreeSet<&str> = filters.families_with(CHAIN).collect();
    for (_, program) in PROGRAMS.iter().filter(|it| families.contains(it.0)) {
        for rule in rules(layout) {
            // Each as often as it is there.
            while change(program, "-D", &rule).await.is_ok() {}
        }
    }
    Ok(())
}

/// What Docker's users put before its own rules: what Pods send, what answers them, and what a Service leads to them.
fn rules(layout: &Layout) -> [Vec<&str>; 2] {
    let bridge = layout.bridge.as_str();
    let mark = ["-m", "comment", "--comment", MARK, "-j", "ACCEPT"];
    let led = ["-o", bridge, "-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED,DNAT"];
    [["-i", bridge].iter().chain(&mark).copied().collect(), led.iter().chain(&mark).copied().collect()]
}

async fn change(program: &str, action: &str, rule: &[&str]) -> Result<(), HostError> {
    let args: Vec<&str> = ["-w", action, CHAIN].into_iter().chain(rule.iter().copied()).collect();
    command::run(program, &args, "").await.map(drop)
}
