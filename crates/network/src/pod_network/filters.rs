//! Others' packet filters, as far as they drop what Pods send or are sent.
//!
//! Upstream's proxies open the FORWARD chain themselves. Here others' chains are only touched where their manager has a
//! place for such rules; what the administrator closed towards the outside stays closed. All else is named.

use corten_kubelet::NodeProblem;
use corten_machine::{Layout, MachineError, command};
use serde::Deserialize;
use serde_json::Value;

use super::managers;

/// How far a chain is followed into those it calls.
const CALLS_MAX: usize = 8;

/// All chains and rules of the machine.
#[derive(Debug, Default)]
pub(super) struct Filters {
    chains: Vec<Chain>,
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Chain {
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
enum ChainVerdict {
    Accepted,
    Dropped,
    /// By a rule that names the Pods' bridge: somebody means just them.
    Forbidden,
    /// The chain's caller decides.
    Undecided,
}

impl Filters {
    pub(super) async fn read() -> Result<Self, MachineError> {
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

    /// The chains that drop what Pods send, or what the node sends to them.
    pub(super) fn closed(&self, layout: &Layout) -> Vec<&Chain> {
        let others = self.chains.iter().filter(|it| !it.table.starts_with(&layout.nft_table));
        others.filter(|it| self.drops_pods(it, &layout.bridge)).collect()
    }

    /// As [`Filters::closed`], each with what opens it.
    pub(super) fn drops(&self, layout: &Layout) -> Vec<NodeProblem> {
        let named = |it: &Chain| NodeProblem::Filtered {
            chain: format!("{} {} {}", it.family, it.table, it.name),
            hook: it.hook().to_owned(),
            command: managers::command(self, it, &layout.bridge),
        };
        self.closed(layout).into_iter().map(named).collect()
    }

    /// Is there a chain of this name where that one is?
    pub(super) fn has_beside(&self, chain: &Chain, name: &str) -> bool {
        self.chains.iter().any(|it| it.family == chain.family && it.table == chain.table && it.name == name)
    }

    /// The families of addresses that have a chain of this name.
    pub(super) fn families_with(&self, name: &str) -> impl Iterator<Item = &str> {
        self.chains.iter().filter(move |it| it.name == name).map(|it| &*it.family)
    }

    /// Does this chain, where packets begin, drop what comes from the Pods' bridge, or what the node sends to it?
    fn drops_pods(&self, chain: &Chain, bridge: &str) -> bool {
        let is_filter = chain.kind.as_deref() == Some("filter");
        let by = match chain.hook() {
            "forward" | "input" => By { key: "iifname", bridge },
            "output" => By { key: "oifname", bridge },
            _ => return false,
        };
        if !is_filter || !["ip", "inet"].contains(&&*chain.family) {
            return false;
        }
        match self.chain_verdict(chain, by, CALLS_MAX) {
            ChainVerdict::Accepted => false,
            ChainVerdict::Dropped | ChainVerdict::Forbidden => true,
            ChainVerdict::Undecided => chain.policy.as_deref() == Some("drop"),
        }
    }

    /// Is it a rule about the Pods' bridge that drops? Then the chain is not opened: that is what somebody wants.
    pub(super) fn forbids_pods(&self, chain: &Chain, bridge: &str) -> bool {
        let key = if chain.hook() == "output" { "oifname" } else { "iifname" };
        self.chain_verdict(chain, By { key, bridge }, CALLS_MAX) == ChainVerdict::Forbidden
    }

    /// Follows a packet of a Pod that no rule knows: only rules for everything, and for the bridge, decide about it.
    fn chain_verdict(&self, chain: &Chain, by: By<'_>, calls_left: usize) -> ChainVerdict {
        let of_chain = |it: &&Rule| it.family == chain.family && it.table == chain.table && it.chain == chain.name;
        for rule in self.rules.iter().filter(of_chain) {
            let verdict = rule.verdict();
            if !rule.concerns(by) {
                // What cannot be read may let a Pod's packet out of here, as ufw's `ufw-not-local` does: what stands after
                // it is not for certain.
                if rule.is_unreadable() && matches!(verdict, Some(Verdict::Return)) && chain.hook.is_none() {
                    return ChainVerdict::Undecided;
                }
                continue;
            }
            let (called, is_last) = match verdict {
                Some(Verdict::Accept) => return ChainVerdict::Accepted,
                Some(Verdict::Drop) if rule.has_condition() => return ChainVerdict::Forbidden,
                Some(Verdict::Drop) => return ChainVerdict::Dropped,
                Some(Verdict::Return) => return ChainVerdict::Undecided,
                Some(Verdict::Jump(name)) => (name, false),
                Some(Verdict::Goto(name)) => (name, true),
                None => continue,
            };
            if calls_left > 0 {
                let called = Chain { name: called.to_owned(), hook: None, ..chain.clone() };
                let chain_verdict = self.chain_verdict(&called, by, calls_left - 1);
                // From where it has gone to a packet comes back to the caller of this chain.
                if chain_verdict != ChainVerdict::Undecided || is_last {
                    return chain_verdict;
                }
            }
        }
        ChainVerdict::Undecided
    }
}

/// Where a packet of a Pod is told by: the interface it comes from, or leaves by.
#[derive(Clone, Copy)]
struct By<'a> {
    key: &'static str,
    bridge: &'a str,
}

enum Verdict<'a> {
    Accept,
    Drop,
    Return,
    Jump(&'a str),
    Goto(&'a str),
}

impl Chain {
    pub(super) fn family(&self) -> &str {
        &self.family
    }

    pub(super) fn table(&self) -> &str {
        &self.table
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Nothing for a chain that others call.
    pub(super) fn hook(&self) -> &str {
        self.hook.as_deref().unwrap_or_default()
    }
}

impl Rule {
    /// It looks at nothing of a packet, or at its interface alone.
    fn concerns(&self, by: By<'_>) -> bool {
        self.expr.iter().filter_map(|it| it.get("match")).all(|it| {
            let key = it["left"]["meta"]["key"].as_str();
            let names_bridge = match &it["right"] {
                Value::String(name) => matches_name(name, by.bridge),
                right => right["set"].as_array().into_iter().flatten().any(|it| it.as_str() == Some(by.bridge)),
            };
            let is_equal = it["op"] == "==";
            key == Some(by.key) && is_equal == names_bridge
        }) && !self.is_unreadable()
    }

    /// It looks at something of a packet. A rule that concerns Pods looks at nothing but their bridge.
    fn has_condition(&self) -> bool {
        self.expr.iter().any(|it| it.get("match").is_some())
    }

    /// It has a condition of iptables that nft shows by its name alone, or asks whose an address is: newer programs show one
    /// as the other.
    fn is_unreadable(&self) -> bool {
        let is_shown_by_name = |it: &Value| it["xt"]["type"] == "match";
        self.expr.iter().any(|it| is_shown_by_name(it) || it["match"]["left"].get("fib").is_some())
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
                target("jump").map(Verdict::Jump).or_else(|| target("goto").map(Verdict::Goto))
            }
        })
    }
}

/// `corten*` stands for every name that begins so.
fn matches_name(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |it| name.starts_with(it))
}

#[cfg(test)]
mod tests;
