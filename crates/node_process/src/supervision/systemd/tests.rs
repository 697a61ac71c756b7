//! Units as they are written.

use corten_machine::Layout;

use super::*;

fn node(data: &str, run: &str) -> NodeProcess {
    NodeProcess { layout: Layout::new(data, run) }
}

#[test]
fn the_unit_says_what_is_run_and_expands_nothing() {
    let args = ["--eviction-hard=memory.available<10%".to_owned(), "--node-name".into(), "a $HOME \"b\"".into()];
    let text = unit(
        &node("/srv/50% full", "/run/corten"),
        Path::new("/usr/local/bin/corten"),
        Path::new("/run/corten/environment"),
        &args,
    );
    let line = |name: &str| {
        let lines: Vec<&str> = text.lines().filter_map(|it| it.strip_prefix(name)).collect();
        assert_eq!(lines.len(), 1, "{name} is there once");
        lines[0].to_owned()
    };
    assert_eq!(
        line("ExecStart="),
        r#""/usr/local/bin/corten" "supervise" "start" "--data-dir" "/srv/50%% full" "--run-dir" "/run/corten" "--" "--eviction-hard=memory.available<10%%" "--node-name" "a $$HOME \"b\"""#
    );
    assert!(line("ExecStopPost=").starts_with(r#"-"/usr/local/bin/corten" "supervise" "ended""#));
    assert_eq!(line("StandardOutput="), "append:/srv/50%% full/log/corten.log");
    // Containers outlive Corten, and nothing is taken from it that they need.
    assert_eq!((&*line("KillMode="), &*line("Delegate=")), ("process", "yes"));
    assert_eq!((&*line("Slice="), &*line("OOMScoreAdjust=")), ("corten.slice", "-999"));
    for sandbox in ["Protect", "Private", "ReadOnly", "NoNewPrivileges", "MountFlags", "SystemCall", "Capability"] {
        assert!(!text.contains(sandbox), "{sandbox}");
    }
}

#[test]
fn of_the_environment_only_what_is_for_the_node_gets_there() {
    let variables = [
        ("CORTEN_LOG", "debug"),
        ("https_proxy", "http://u:p$\"`\\@proxy:3128"),
        ("NO_PROXY", "10.0.0.0/8"),
        ("ETCD_QUOTA_BACKEND_BYTES", "1"),
        ("ETCD_FORCE_NEW_CLUSTER", "true"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("LD_PRELOAD", "x"),
    ];
    let text = environment(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
    assert_eq!(
        String::from_utf8_lossy(&text),
        "CORTEN_LOG=\"debug\"\nhttps_proxy=\"http://u:p\\$\\\"\\`\\\\@proxy:3128\"\nNO_PROXY=\"10.0.0.0/8\"\n\
         ETCD_QUOTA_BACKEND_BYTES=\"1\"\n"
    );
}

/// systemd's own reader, where this machine has it.
#[test]
fn systemd_has_nothing_to_say_against_it() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let text = unit(
        &node("/var/lib/corten", "/run/corten"),
        Path::new("/bin/true"),
        Path::new("/run/corten/environment"),
        &["--eviction-hard=memory.available<10%".to_owned()],
    );
    let path = dir.path().join("corten.service");
    fs::write(&path, text).expect("written");
    let Ok(verified) =
        Command::new("systemd-analyze").arg("verify").arg(&path).env("SYSTEMD_LOG_LEVEL", "warning").output()
    else {
        return;
    };
    let said = String::from_utf8_lossy(&verified.stderr);
    let ours: Vec<&str> = said.lines().filter(|it| it.contains("corten")).collect();
    assert!(ours.is_empty(), "{ours:?}");
}
