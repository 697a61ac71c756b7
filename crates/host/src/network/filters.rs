//! Others' packet filters, as far as they drop what Pods send or are sent.
//!
//! Upstream's proxies open the FORWARD chain themselves. Here others' chains are only touched where their manager has a
//! place for such rules; what the administrator closed towards the outside stays closed. All else is named.

use std::collections::BTreeSet;

use corten_kubelet::Exposure;
use serde::Deserialize;
use serde_json::Value;

use crate::{HostError, Layout, command};

/// Marks what Corten has put into others' chains.
const MARK: &str = "corten";
const DOCKER_CHAIN: &str = "DOCKER-USER";
/// How far a chain is followed into those it calls.
const CALLS_MAX: usize = 8;

/// All chains and rules of the machine.
#[derive(Debug, Default)]
pub(super) struct Filters {
    chains: Vec<Chain>,
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Chain {
    family: String,
    table: String,
    name: String,
    #[serde(default)]
    hook: Option<String>,
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    policy: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Rule {
    family: String,
    table: String,
    chain: String,
    #[serde(default)]
    expr: Vec<Value>,
}

/// What becomes of a packet of a Pod in a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Accepted,
    Dropped,
    /// The chain's caller decides.
    Undecided,
}

impl Filters {
    pub(super) async fn read() -> Result<Self, HostError> {
        Ok(Self::parse(&command::run("nft", &["-j", "list", "ruleset"], "").await?))
    }

    fn parse(text: &str) -> Self {
        let mut this = Self::default();
        let list = serde_json::from_str::<Value>(text).unwrap_or_default();
        for item in list["nftables"].as_array().into_iter().flatten() {
            if let Ok(chain) = Chain::deserialize(&item["chain"]) {
                this.chains.push(chain);
            } else if let Ok(rule) = Rule::deserialize(&item["rule"]) {
                this.rules.push(rule);
            }
        }
        this
    }

    /// Opens what a manager of filters has a place for. True where anything was opened.
    pub(super) async fn open_by_managers(&self, layout: &Layout) -> bool {
        let mut opened = false;
        for (family, program) in [("ip", "iptables"), ("ip6", "ip6tables")] {
            let has_place = self.chains.iter().any(|it| it.family == family && it.name == DOCKER_CHAIN);
            let forwards = |it: &&Chain| it.family == family && it.hook.as_deref() == Some("forward");
            let is_closed = self.chains.iter().filter(forwards).any(|it| self.drops_pods(it, &layout.bridge));
            if has_place && is_closed {
                opened |= change(program, "-I", layout).await;
            }
        }
        opened
    }

    /// Those that drop what Pods send, each with what opens it.
    pub(super) fn drops(&self, layout: &Layout) -> Vec<Exposure> {
        let bridge = &layout.bridge;
        let closed = self.chains.iter().filter(|it| !it.table.starts_with(&layout.nft_table));
        let closed = closed.filter(|it| self.drops_pods(it, bridge));
        closed
            .map(|it| {
                let (family, table, name) = (&it.family, &it.table, &it.name);
                Exposure::Filtered {
                    chain: format!("{family} {table} {name}"),
                    hook: it.hook.clone().unwrap_or_default(),
                    command: format!("nft insert rule {family} {table} {name} iifname {bridge} accept"),
                }
            })
            .collect()
    }

    /// Does this chain, where packets begin, drop what comes from the Pods' bridge?
    fn drops_pods(&self, chain: &Chain, bridge: &str) -> bool {
        let is_filter = chain.kind.as_deref() == Some("filter");
        let is_on_way = matches!(chain.hook.as_deref(), Some("forward" | "input"));
        if !is_filter || !is_on_way || !["ip", "inet"].contains(&&*chain.family) {
            return false;
        }
        match self.fate(chain, bridge, CALLS_MAX) {
            Fate::Accepted => false,
            Fate::Dropped => true,
            Fate::Undecided => chain.policy.as_deref() == Some("drop"),
        }
    }

    /// Follows a packet from a Pod that no rule knows: only rules for everything, and for the bridge, decide about it.
    fn fate(&self, chain: &Chain, bridge: &str, calls_left: usize) -> Fate {
        let of_chain = |it: &&Rule| it.family == chain.family && it.table == chain.table && it.chain == chain.name;
        for rule in self.rules.iter().filter(of_chain) {
            if !rule.concerns(bridge) {
                continue;
            }
            let fate = match rule.verdict() {
                Some(Verdict::Accept) => Fate::Accepted,
                Some(Verdict::Drop) => Fate::Dropped,
                Some(Verdict::Return) => return Fate::Undecided,
                Some(Verdict::Call(name)) if calls_left > 0 => {
                    let called = Chain { name: name.to_owned(), hook: None, ..chain.clone() };
                    self.fate(&called, bridge, calls_left - 1)
                }
                Some(Verdict::Call(_)) | None => Fate::Undecided,
            };
            if fate != Fate::Undecided {
                return fate;
            }
        }
        Fate::Undecided
    }
}

enum Verdict<'a> {
    Accept,
    Drop,
    Return,
    Call(&'a str),
}

impl Rule {
    /// It looks at nothing of a packet, or at where it comes from alone.
    fn concerns(&self, bridge: &str) -> bool {
        self.expr.iter().filter_map(|it| it.get("match")).all(|it| {
            let key = it["left"]["meta"]["key"].as_str();
            let names_bridge = match &it["right"] {
                Value::String(name) => matches_name(name, bridge),
                right => right["set"].as_array().into_iter().flatten().any(|it| it.as_str() == Some(bridge)),
            };
            let is_equal = it["op"] == "==";
            key == Some("iifname") && is_equal == names_bridge
        }) && !self.expr.iter().any(|it| it.get("xt").is_some_and(|it| it["type"] == "match"))
    }

    fn verdict(&self) -> Option<Verdict<'_>> {
        self.expr.iter().find_map(|it| {
            let it = it.as_object()?;
            let target = |name: &str| it.get(name).and_then(|it| it["target"].as_str());
            if it.contains_key("accept") {
                Some(Verdict::Accept)
            } else if it.contains_key("drop") || it.contains_key("reject") {
                Some(Verdict::Drop)
            } else if it.contains_key("return") {
                Some(Verdict::Return)
            } else {
                target("jump").or_else(|| target("goto")).map(Verdict::Call)
            }
        })
    }
}

/// `corten*` stands for every name that begins so.
fn matches_name(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |it| name.starts_with(it))
}

/// What Docker's users put before its own rules: what Pods send, what answers them, and what a Service leads to them.
fn rules(layout: &Layout) -> [Vec<&str>; 2] {
    let bridge = layout.bridge.as_str();
    let mark = ["-m", "comment", "--comment", MARK, "-j", "ACCEPT"];
    let led = ["-o", bridge, "-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED,DNAT"];
    [["-i", bridge].iter().chain(&mark).copied().collect(), led.iter().chain(&mark).copied().collect()]
}

/// Puts the rules into Docker's place, or takes them out. True where one of them went well.
async fn change(program: &str, action: &str, layout: &Layout) -> bool {
    let mut changed = false;
    for rule in rules(layout) {
        let args: Vec<&str> = ["-w", action, DOCKER_CHAIN].into_iter().chain(rule).collect();
        match command::run(program, &args, "").await {
            Ok(_) => changed = true,
            Err(error) => tracing::debug!(%error, "others' filters are not changed"),
        }
    }
    if changed && action == "-I" {
        tracing::info!(program, "Docker drops what is forwarded: pods' traffic is let through in {DOCKER_CHAIN}");
    }
    changed
}

/// Takes back what [`Filters::open_by_managers`] has put.
pub(super) async fn withdraw(layout: &Layout) -> Result<(), HostError> {
    let Ok(filters) = Filters::read().await else { return Ok(()) };
    let families: BTreeSet<&str> =
        filters.chains.iter().filter(|it| it.name == DOCKER_CHAIN).map(|it| &*it.family).collect();
    for (family, program) in [("ip", "iptables"), ("ip6", "ip6tables")] {
        if families.contains(family) {
            // Each as often as it is there.
            while change(program, "-D", layout).await {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
