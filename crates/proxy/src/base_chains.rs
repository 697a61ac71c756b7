//! What stands in the table before any Service: the hooks, and the ways from them to the maps.
//!
//! ```text
//! raw:            from 127.0.0.0/8 or to it, by wire → drop
//! prerouting ┐
//! output     ┴→ services: address and port → map → a Service's chain → translated
//!                         a node's own address → map of node ports
//! input, forward, output → refused: what is not translated and leads nowhere
//! postrouting:    marked, or a Pod that reaches itself → masqueraded
//! ```
//! Only the first packet of a connection comes by the translating hooks: the kernel remembers the rest.

use corten_meta::address::Cidr;

use crate::{
    Config,
    rules::{Change, Family, Hook, Lookup, Map, Rule, Side, Term},
};

/// Goes with what stands here: a table without this chain was made by another version, and is replaced as a whole.
pub(crate) const LAYOUT: &str = "layout-1";
pub(crate) const REFUSE: &str = "refuse";

const CHAINS: [&str; 6] = [LAYOUT, REFUSE, "services4", "services6", "refused4", "refused6"];
const BASES: [(&str, Hook); 7] = [
    ("guard", Hook::Raw),
    ("prerouting", Hook::Prerouting),
    ("output", Hook::Output),
    ("input", Hook::Input),
    ("forward", Hook::Forward),
    ("output-translated", Hook::OutputTranslated),
    ("postrouting", Hook::Postrouting),
];

/// Is it a chain of the frame, and no Service's?
pub(crate) fn has_chain(name: &str) -> bool {
    CHAINS.contains(&name) || BASES.iter().any(|it| it.0 == name)
}

pub(crate) fn changes(config: &Config) -> Vec<Change> {
    let mut changes: Vec<Change> = Map::all().map(Change::Map).collect();
    changes.extend(BASES.map(|(name, hook)| Change::Base(name.to_owned(), hook)));
    changes.extend(CHAINS.map(|it| Change::Chain(it.to_owned())));
    let rules = rules(config).into_iter().map(|(chain, rule)| Change::Rule(chain, rule));
    changes.extend(rules);
    changes
}

fn rules(config: &Config) -> Vec<(String, Rule)> {
    let mut rules: Vec<(String, Rule)> = vec![(REFUSE.into(), vec![Term::Refuse])];
    let mut add = |chain: &str, rule: Rule| rules.push((chain.to_owned(), rule));
    // Nobody reaches by wire what listens at the loopback address only, whatever `route_localnet` says. What comes back to
    // a process that asked a node port at 127.0.0.1 has another address on the wire.
    for side in [Side::Source, Side::Destination] {
        add(
            "guard",
            vec![Term::Family(Family::V4), Term::Within(side, loopback()), Term::NotThrough("lo"), Term::Drop],
        );
    }
    for family in Family::BOTH {
        let named = |word: &str| format!("{word}{}", family.digit());
        let (services, refused) = (named("services"), named("refused"));
        for hook in ["prerouting", "output"] {
            add(hook, vec![Term::Family(family), Term::Jump(services.clone())]);
        }
        for hook in ["input", "forward", "output-translated"] {
            add(hook, vec![Term::NewConnection, Term::Family(family), Term::Jump(refused.clone())]);
        }
        let is_cluster_ip = || Term::In(Lookup::Destination, family, Map::ClusterIps(family).name());
        for pods in config.pod_cidrs.iter().filter(|it| Family::of(it.address) == family) {
            // As kube-proxy masquerades: what does not come from a Pod of this node takes the node's address, so that
            // answers come back.
            add(&services, vec![is_cluster_ip(), Term::NotWithin(Side::Source, *pods), Term::Mark]);
        }
        add(&services, vec![Term::Vmap(Lookup::Frontend, family, Map::Services(family).name())]);
        let local = || Term::Local(Side::Destination, family);
        add(&services, vec![local(), Term::Vmap(Lookup::Port, family, Map::NodePorts(family).name())]);
        add(&refused, vec![Term::Vmap(Lookup::Frontend, family, Map::Refused(family).name())]);
        add(&refused, vec![local(), Term::Vmap(Lookup::Port, family, Map::RefusedPorts(family).name())]);
        // A port that the Service does not have. Of an address out of the pool what the node itself answers at would be reached, too.
        add(&refused, vec![is_cluster_ip(), Term::Goto(REFUSE.into())]);
        let is_pool_ip = Term::In(Lookup::Destination, family, Map::PoolIps(family).name());
        add(&refused, vec![is_pool_ip, Term::Goto(REFUSE.into())]);
    }
    add("postrouting", vec![Term::Marked, Term::Unmark, Term::Masquerade]);
    for family in Family::BOTH {
        let hairpin = Term::In(Lookup::Pair, family, Map::Hairpins(family).name());
        add("postrouting", vec![Term::Family(family), hairpin, Term::Masquerade]);
    }
    rules
}

fn loopback() -> Cidr {
    Cidr { address: std::net::Ipv4Addr::new(127, 0, 0, 0).into(), bits: 8 }
}
