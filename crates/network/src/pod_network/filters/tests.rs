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

fn drops(items: &[String]) -> Vec<NodeProblem> {
    let text = format!(r#"{{"nftables":[{{"metainfo":{{}}}},{}]}}"#, items.join(","));
    Filters::parse(&text).drops(&Layout::new("/var/lib/corten", "/run/corten"))
}

/// The chains that drop what Pods send, or are sent.
fn dropping(items: &[String]) -> Vec<String> {
    let chain = |it: NodeProblem| match it {
        NodeProblem::Filtered { chain, hook, .. } => format!("{hook}: {chain}"),
        other => panic!("{other:?} is none"),
    };
    drops(items).into_iter().map(chain).collect()
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
    assert_eq!(dropping(&[chain("ip", "filter", "PREROUTING", "prerouting drop")]), [""; 0]);
    assert_eq!(dropping(&["{}".to_owned()]), [""; 0]);
}

#[test]
fn what_the_node_sends_to_pods_counts() {
    let output = chain("ip", "filter", "OUTPUT", "output drop");
    assert_eq!(dropping(std::slice::from_ref(&output)), ["output: ip filter OUTPUT"]);
    assert_eq!(dropping(&[output.clone(), rule("ip", "filter", "OUTPUT", FROM_PODS)]), ["output: ip filter OUTPUT"]);
    let to_pods = FROM_PODS.replace("iifname", "oifname");
    assert_eq!(dropping(&[output, rule("ip", "filter", "OUTPUT", &to_pods)]), [""; 0]);
}

/// The commands that open what is closed.
fn commands(items: &[String]) -> Vec<String> {
    let command = |it: NodeProblem| match it {
        NodeProblem::Filtered { command, .. } => command,
        other => panic!("{other:?} is none"),
    };
    drops(items).into_iter().map(command).collect()
}

/// As ufw has them, with what Debian 12 shows of a condition, and Debian 13.
fn ufw(local: &str) -> Vec<String> {
    let jump = |to: &str| format!(r#"{{"counter":{{"packets":0,"bytes":0}}}},{{"jump":{{"target":"{to}"}}}}"#);
    vec![
        chain("ip", "filter", "INPUT", "input drop"),
        chain("ip", "filter", "ufw-before-input", ""),
        chain("ip", "filter", "ufw-not-local", ""),
        chain("ip", "filter", "ufw-user-input", ""),
        rule("ip", "filter", "INPUT", &jump("ufw-before-input")),
        rule("ip", "filter", "ufw-before-input", FROM_LO),
        rule("ip", "filter", "ufw-before-input", &jump("ufw-not-local")),
        rule("ip", "filter", "ufw-before-input", &jump("ufw-user-input")),
        rule("ip", "filter", "ufw-not-local", &format!(r#"{local},{{"return":null}}"#)),
        rule("ip", "filter", "ufw-not-local", r#"{"drop":null}"#),
        rule("ip", "filter", "ufw-user-input", SSH),
    ]
}

#[test]
fn ufw_is_closed_until_it_has_a_rule() {
    for local in [
        r#"{"xt":{"type":"match","name":"addrtype"}}"#,
        r#"{"match":{"op":"==","left":{"fib":{"result":"type","flags":"daddr"}},"right":"local"}}"#,
    ] {
        let mut items = ufw(local);
        assert_eq!(dropping(&items), ["input: ip filter INPUT"]);
        assert!(commands(&items)[0].starts_with("ufw "), "by its own command");
        items.push(rule("ip", "filter", "ufw-user-input", FROM_PODS));
        assert_eq!(dropping(&items), [""; 0]);
    }
}

#[test]
fn firewalld_is_closed_until_the_bridge_is_in_its_zone() {
    let jump = |from: &str, to: &str| rule("inet", "firewalld", from, &format!(r#"{{"jump":{{"target":"{to}"}}}}"#));
    let mut items = vec![
        chain("inet", "firewalld", "filter_INPUT", "input accept"),
        chain("inet", "firewalld", "filter_INPUT_POLICIES", ""),
        chain("inet", "firewalld", "filter_IN_public", ""),
        rule("inet", "firewalld", "filter_INPUT", FROM_LO),
        jump("filter_INPUT", "filter_INPUT_POLICIES"),
        rule("inet", "firewalld", "filter_INPUT", REJECT),
        rule("inet", "firewalld", "filter_IN_public", SSH),
    ];
    let public = jump("filter_INPUT_POLICIES", "filter_IN_public");
    let closed = [items.clone(), vec![public.clone()]].concat();
    assert_eq!(dropping(&closed), ["input: inet firewalld filter_INPUT"]);
    assert_eq!(commands(&closed), ["firewall-cmd --zone=trusted --change-interface=corten0"]);
    items.extend([rule("inet", "firewalld", "filter_INPUT_POLICIES", FROM_PODS), public]);
    assert_eq!(dropping(&items), [""; 0]);
}

#[test]
fn what_is_gone_to_comes_back_to_the_caller_of_the_chain() {
    let zones = r#"{"goto":{"target":"zone"}}"#;
    let items = [
        chain("ip", "filter", "FORWARD", "forward drop"),
        chain("ip", "filter", "zones", ""),
        chain("ip", "filter", "zone", ""),
        rule("ip", "filter", "FORWARD", r#"{"jump":{"target":"zones"}}"#),
        rule("ip", "filter", "zones", zones),
        rule("ip", "filter", "zones", ACCEPT),
    ];
    assert_eq!(dropping(&items), ["forward: ip filter FORWARD"]);
}
