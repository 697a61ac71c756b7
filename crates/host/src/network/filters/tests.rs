use super::*;

fn chain(family: &str, table: &str, name: &str, base: &str) -> String {
    let base = match base.split_once(' ') {
        Some((hook, policy)) => format!(r#","type":"filter","hook":"{hook}","prio":0,"policy":"{policy}""#),
        None => String::new(),
    };
    format!(r#"{{"chain":{{"family":"{family}","table":"{table}","name":"{name}","handle":1{base}}}}}"#)
}

fn rule(family: &str, table: &str, chain: &str, expr: &str) -> String {
    format!(r#"{{"rule":{{"family":"{family}","table":"{table}","chain":"{chain}","handle":2,"expr":[{expr}]}}}}"#)
}

/// The chains that drop what Pods send.
fn dropping(items: &[String]) -> Vec<String> {
    let text = format!(r#"{{"nftables":[{{"metainfo":{{}}}},{}]}}"#, items.join(","));
    let drops = Filters::parse(&text).drops(&Layout::new("/var/lib/corten", "/run/corten"));
    let chain = |it: Exposure| match it {
        Exposure::Filtered { chain, hook, .. } => format!("{hook}: {chain}"),
        other => panic!("{other:?} is none"),
    };
    drops.into_iter().map(chain).collect()
}

const ACCEPT: &str = r#"{"counter":{"packets":0,"bytes":0}},{"accept":null}"#;
const REJECT: &str = r#"{"reject":{"type":"icmpx","expr":"admin-prohibited"}}"#;
const SSH: &str =
    r#"{"match":{"op":"==","left":{"payload":{"protocol":"tcp","field":"dport"}},"right":22}},{"accept":null}"#;
const FROM_PODS: &str = r#"{"match":{"op":"==","left":{"meta":{"key":"iifname"}},"right":"corten0"}},{"accept":null}"#;
const FROM_LO: &str = r#"{"match":{"op":"==","left":{"meta":{"key":"iifname"}},"right":"lo"}},{"accept":null}"#;

#[test]
fn a_policy_that_drops_is_found_and_one_that_lets_pods_through_is_not() {
    let docker = chain("ip", "filter", "FORWARD", "forward drop");
    assert_eq!(dropping(std::slice::from_ref(&docker)), ["forward: ip filter FORWARD"]);
    assert_eq!(dropping(&[chain("ip", "filter", "FORWARD", "forward accept")]), [""; 0]);
    assert_eq!(dropping(&[docker.clone(), rule("ip", "filter", "FORWARD", ACCEPT)]), [""; 0]);
    assert_eq!(dropping(&[docker.clone(), rule("ip", "filter", "FORWARD", FROM_PODS)]), [""; 0]);
    assert_eq!(dropping(&[docker, rule("ip", "filter", "FORWARD", FROM_LO)]), ["forward: ip filter FORWARD"]);
}

#[test]
fn a_filter_that_lets_in_ssh_alone_is_found() {
    let input = chain("inet", "filter", "input", "input accept");
    let rules =
        |last: &str| [input.clone(), rule("inet", "filter", "input", SSH), rule("inet", "filter", "input", last)];
    assert_eq!(dropping(&rules(REJECT)), ["input: inet filter input"]);
    assert_eq!(dropping(&rules(SSH)), [""; 0]);
    let mut opened = rules(REJECT).to_vec();
    opened.insert(1, rule("inet", "filter", "input", FROM_PODS));
    assert_eq!(dropping(&opened), [""; 0]);
}

#[test]
fn what_a_chain_calls_counts() {
    let call = r#"{"jump":{"target":"USER"}}"#;
    let items = |called: &str| {
        [
            chain("ip", "filter", "FORWARD", "forward drop"),
            chain("ip", "filter", "USER", ""),
            rule("ip", "filter", "FORWARD", call),
            rule("ip", "filter", "USER", called),
        ]
    };
    assert_eq!(dropping(&items(FROM_PODS)), [""; 0]);
    assert_eq!(dropping(&items(r#"{"return":null}"#)), ["forward: ip filter FORWARD"]);
    // A chain that calls itself has an end.
    assert_eq!(dropping(&items(call)), ["forward: ip filter FORWARD"]);
}

#[test]
fn its_own_tables_and_other_hooks_are_none_of_it() {
    assert_eq!(dropping(&[chain("inet", "corten_services", "filter", "forward drop")]), [""; 0]);
    assert_eq!(dropping(&[chain("ip", "filter", "OUTPUT", "output drop")]), [""; 0]);
    assert_eq!(dropping(&["{}".to_owned()]), [""; 0]);
}
