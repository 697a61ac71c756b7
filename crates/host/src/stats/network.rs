//! What went through the network interfaces of a process's network namespace.

use std::{collections::BTreeMap, fs, path::Path};

/// The counters of one interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) received: Traffic,
    pub(crate) sent: Traffic,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
    pub(crate) errors: u64,
    pub(crate) dropped: u64,
}

/// The interfaces that a process sees, but for the loopback and such as only join others.
pub(crate) fn of_process(proc: &Path) -> Vec<Interface> {
    parse(&fs::read_to_string(proc.join("net/dev")).unwrap_or_default())
}

/// Do two processes share a network namespace?
pub(crate) fn is_same(proc: &Path, other: &Path) -> bool {
    let namespace = |it: &Path| fs::read_link(it.join("ns/net")).ok();
    namespace(proc).is_some() && namespace(proc) == namespace(other)
}

/// The interface of the default route.
pub(crate) fn default_interface(proc: &Path) -> Option<String> {
    let routes = fs::read_to_string(proc.join("net/route")).ok()?;
    let mut rows = routes.lines().skip(1).map(|it| it.split_whitespace().collect::<Vec<_>>());
    rows.find(|it| it.get(1) == Some(&"00000000")).and_then(|it| it.first().map(|it| (*it).to_owned()))
}

fn parse(text: &str) -> Vec<Interface> {
    let mut interfaces = BTreeMap::new();
    for (name, counters) in text.lines().filter_map(|it| it.split_once(':')) {
        let name = name.trim();
        // As in cAdvisor: what is made for a container's other end, and bridges, would count everything twice.
        if name == "lo" || ["veth", "docker", "cbr"].iter().any(|it| name.starts_with(it)) {
            continue;
        }
        let numbers: Vec<u64> = counters.split_whitespace().map(|it| it.parse().unwrap_or(0)).collect();
        let traffic = |from: usize| {
            let at = |it: usize| numbers.get(from + it).copied().unwrap_or(0);
            Traffic { bytes: at(0), packets: at(1), errors: at(2), dropped: at(3) }
        };
        let interface = Interface { name: name.to_owned(), received: traffic(0), sent: traffic(8) };
        interfaces.insert(name.to_owned(), interface);
    }
    interfaces.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_writes() {
        let text = "Inter-|   Receive                                                |  Transmit\n \
                     face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop\n    \
                       lo:  9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0\n  \
                     eth0: 100 2 3 4 0 0 0 0 500 6 7 8 0 0 0 0\n\
                     veth12: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n";
        let expected = Interface {
            name: "eth0".into(),
            received: Traffic { bytes: 100, packets: 2, errors: 3, dropped: 4 },
            sent: Traffic { bytes: 500, packets: 6, errors: 7, dropped: 8 },
        };
        assert_eq!(parse(text), [expected]);
    }
}
