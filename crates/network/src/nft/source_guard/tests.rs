use std::process::Command;

use super::*;
use crate::nft::tests::in_own_network;

fn run(program: &str, args: &str) -> String {
    let output = Command::new(program).args(args.split(' ')).output().expect("started");
    assert!(output.status.success(), "{program} {args}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn guard() -> SourceGuard {
    let layout = Layout::new("/none/data", "/run/corten");
    SourceGuard::new(&layout)
}

fn port(interface: &str, addresses: &[&str]) -> Port {
    let addresses = addresses.iter().map(|it| it.parse().expect("an address")).collect();
    Port { interface: interface.to_owned(), mac: [0x0a, 0x58, 0, 1, 2, 3], addresses }
}

fn block<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(work)
}

#[test]
fn a_link_local_address_is_made_of_the_hardware_address() {
    let own = port("veth1", &["10.244.0.2", "fd00::2"]).addresses6();
    assert_eq!(own, ["fd00::2", "fe80::858:ff:fe01:203"].map(|it| it.parse::<Ipv6Addr>().expect("an address")));
    assert!(port("veth1", &["10.244.0.2"]).addresses6().is_empty(), "a network without IPv6 has no messages of it");
}

/// The chain as `nft` shows it. What packets make of it is tried on a node.
#[test]
fn the_kernel_takes_the_checks_of_a_pod() {
    in_own_network(|| {
        let guard = guard();
        run("ip", "link add veth1 type veth peer name pod1");
        run("ip", "link add veth2 type veth peer name pod2");
        assert!(!block(guard.is_there()).expect("an answer"));
        block(guard.remove()).expect("harmless");
        block(guard.put(Vec::new())).expect("taken");
        block(guard.add(port("veth1", &["10.244.0.2", "fd00::2"]))).expect("taken");
        let listed = run("nft", "list chain netdev corten veth1");
        let rules: Vec<&str> =
            listed.lines().map(str::trim).filter(|it| it.ends_with("drop") || it.ends_with("accept")).collect();
        assert_eq!(rules, include_str!("rules.txt").lines().collect::<Vec<_>>(), "{listed}");

        block(guard.put(vec![port("veth1", &["10.244.0.2"]), port("veth2", &["10.244.0.3"])])).expect("taken anew");
        assert!(block(guard.is_there()).expect("an answer"));
        assert_eq!(run("nft", "list table netdev corten").matches("device \"veth").count(), 2);
        block(guard.forget("veth2")).expect("forgotten");
        block(guard.forget("veth2")).expect("harmless");
        block(guard.put(vec![port("veth1", &["10.244.0.2"])])).expect("taken anew");
        run("ip", "link delete veth1");
        block(guard.forget("veth1")).expect("whether the kernel keeps a chain without its interface or not");
        block(guard.remove()).expect("removed");
        assert!(!block(guard.is_there()).expect("an answer"));
    });
}

/// A Pod's start must not wait for it, however many Pods there are: what is said to the kernel is of this Pod alone, and what
/// others have stays what it was.
#[test]
fn one_pod_more_is_said_alone() {
    const MESSAGES_MAX: usize = 24;
    in_own_network(|| {
        let guard = guard();
        block(guard.put(Vec::new())).expect("taken");
        let listed = |interface: &str| run("nft", &format!("-a list chain netdev corten {interface}"));
        let mut before: Vec<String> = Vec::new();
        let mut sizes = std::collections::BTreeSet::new();
        for pod in 0..20 {
            let interface = format!("veth{pod:02}");
            run("ip", &format!("link add {interface} type veth peer name pod{pod}"));
            let port = port(&interface, &["10.244.0.2", "fd00::2"]);
            let messages = guard.chain(&port);
            assert!(messages.len() <= MESSAGES_MAX, "{}", messages.len());
            sizes.insert(Batch::of_messages(NETDEV, &messages).bytes.len());
            block(guard.add(port)).expect("taken");
            // With the kernel's numbers, which a chain or a rule that is made anew has not.
            before.push(listed(&interface));
        }
        assert_eq!(sizes.len(), 1, "the last is as short as the first: {sizes:?}");
        for (pod, before) in before.iter().enumerate() {
            assert_eq!(listed(&format!("veth{pod:02}")), *before);
        }
    });
}
