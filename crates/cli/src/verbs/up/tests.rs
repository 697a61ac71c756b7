//! What `corten up` says and refuses.

use serde_json::json;

use super::{
    told::{differences, given},
    *,
};
use corten_node_process::command_line::CommandLine;

#[test]
fn says_why_a_node_is_not_ready() {
    let node = |status: &str| {
        let ready = json!({ "type": "Ready", "status": status, "message": "container runtime is down" });
        json!({ "status": { "conditions": [{ "type": "MemoryPressure", "status": "False" }, ready] } })
    };
    assert_eq!(Awaited::Ready.lack(&node("True")), Ok(()));
    assert_eq!(Awaited::Ready.lack(&node("False")), Err("container runtime is down".to_owned()));
    assert_eq!(Awaited::Ready.lack(&json!({})), Err("it has not said yet how it is".to_owned()));
}

#[test]
fn a_plugin_may_come_after_its_node() {
    let node = |message: &str| json!({ "status": { "conditions": [{ "type": "Ready", "status": "False", "message": message }] } });
    let network = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:none";
    let awaited = Awaited::of(&["--pod-network=cni".to_owned(), "--cni-config=/x".to_owned()]);
    assert_eq!(awaited, Awaited::AllButNetwork { config: "/x".to_owned() });
    assert_eq!(Awaited::of(&["--pod-network=vxlan".to_owned()]), Awaited::Ready);
    assert_eq!(awaited.lack(&node(network)), Ok(()));
    assert_eq!(Awaited::Ready.lack(&node(network)), Err(network.to_owned()));
    let both = format!("[container runtime is down: gone, {network}]");
    assert_eq!(awaited.lack(&node(&both)), Err(both.clone()));
    assert!(awaited.lack(&json!({})).is_err());
}

#[test]
fn a_kubelet_without_a_certificate_is_about_to_have_one() {
    for (error, said) in [
        (
            "dial tcp 10.0.0.5:10250: the kubelet has no serving certificate yet: its node's \
             CertificateSigningRequest is not signed",
            "its certificate is being signed",
        ),
        ("connect: connection refused", "its kubelet does not answer: connect: connection refused"),
    ] {
        assert_eq!(format!("{:#}", of_kubelet(anyhow::anyhow!(error))), said);
    }
}

#[test]
fn what_the_machine_lacks_is_a_table() {
    let node = |lacks: &str| json!({ "metadata": { "annotations": { "corten.dev/machine-lacks": lacks } } });
    let table = lacks(&node("AppArmor,Systemd"));
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 6, "{table}");
    assert!(lines[2].starts_with("  AppArmor  Pods that ask for") && lines[3].starts_with("            needs "));
    assert!(lines[4].starts_with("  Systemd   nothing starts the cluster"), "{table}");
    assert_eq!(lacks(&json!({})), "");
}

#[test]
fn a_bare_up_goes_on_with_the_options_of_before() {
    let before = ["--port=7443".to_owned(), "--eviction-hard=memory.available<5%".to_owned()];
    let gone = ["--gone=1".to_owned()];
    for (line, before, port, remark) in [
        ("up --data-dir=/d --timeout=5", &before[..], 7443, "as before: --port=7443 '--eviction-hard="),
        ("up --data-dir=/d", &before[..0], 6443, ""),
        ("up --data-dir=/d --port=8443", &before[..], 8443, "without options of before: '--eviction-hard="),
        ("up --data-dir=/d", &gone[..], 6443, "not known any more: --gone=1"),
    ] {
        let matches = args(Command::new("up")).get_matches_from(line.split(' '));
        let (matches, said) = as_before(&matches, before);
        assert_eq!(matches.get_one::<u16>("port"), Some(&port), "{line}");
        assert_eq!(matches.get_raw("data-dir").and_then(|mut it| it.next()), Some("/d".as_ref()), "{line}");
        assert_eq!(said.is_some(), !remark.is_empty(), "{line}: {said:?}");
        assert!(said.unwrap_or_default().contains(remark), "{line}");
    }
    // They are remembered again.
    let matches = args(Command::new("up")).get_matches_from(["up"]);
    assert_eq!(options(&as_before(&matches, &before).0), before);
}

#[test]
fn options_that_a_running_node_has_otherwise_are_named() {
    let line = |words: &str| {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        CommandLine::new(rustix::process::getpid(), &words)
    };
    let running = line("corten node --data-dir /d --port 7443 --eviction-hard=memory.available<5%");
    for (options, said) in [
        ("--port=7443", None),
        ("--port=6443", Some("--port is \"7443\", not \"6443\"")),
        ("--bind=127.0.0.1", None),
        ("--bind=::1", Some("--bind is \"127.0.0.1\", not \"::1\"")),
        ("--eviction-hard=memory.available<5%", None),
        ("--eviction-hard=memory.available<9%", Some("--eviction-hard is \"memory.available<5%\"")),
        ("--eviction-soft=memory.available<9%", Some("--eviction-soft is not set, not \"memory.available<9%\"")),
        ("--pod-manifest-path=/d/manifests", None),
        ("--node-name=another-one", Some(", not \"another-one\"")),
        ("--kubelet-port=10251", Some("--kubelet-port is \"10250\"")),
        ("--timeout=5 --data-dir=/d", None),
    ] {
        let words: Vec<&str> = ["up"].into_iter().chain(options.split(' ')).collect();
        let matches = args(Command::new("up")).get_matches_from(words);
        let found = differences(&given(&matches), &line(options), &running, Path::new("/d"));
        assert_eq!(found.len(), usize::from(said.is_some()), "{options}: {found:?}");
        assert!(found.first().is_none_or(|it| it.contains(said.unwrap_or_default())), "{options}: {found:?}");
    }
}
