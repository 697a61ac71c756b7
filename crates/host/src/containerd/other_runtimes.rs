//! The runtimes that the machine's administrator has told containerd of, beside the usual one: gVisor, Kata and their like.
//! A RuntimeClass names one by its handler.
//!
//! Corten's containerd has a configuration of its own. What the machine's says of further runtimes is taken over into it as it
//! stands, whenever containerd is started.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use toml::{Table, Value};

/// Its own file, and the folder that containerd 2 reads besides.
const MACHINE: &str = "/etc/containerd/config.toml";
const MACHINE_FOLDER: &str = "/etc/containerd/conf.d";
/// What is longer is no configuration that a person wrote.
const BYTES_MAX: u64 = 1 << 20;
/// Where runtimes stand in a configuration of version 2, and in one of version 3 (containerd 2).
const PLUGINS: [&str; 2] = ["io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"];
/// The usual one is Corten's own.
const USUAL: &str = "runc";
const RUNC_SHIM: &str = "io.containerd.runc.v2";

type Runtimes = BTreeMap<String, Table>;

/// Further runtimes, in the words of a configuration of version 2; empty where there are none.
pub(super) fn other_runtimes(has_systemd_cgroups: bool) -> String {
    let mut runtimes = Runtimes::new();
    for path in files(Path::new(MACHINE), Path::new(MACHINE_FOLDER)) {
        match read(&path) {
            Ok(found) => runtimes.extend(found),
            Err(problem) => tracing::warn!("no runtimes are taken from {}: {problem}", path.display()),
        }
    }
    written(runtimes, has_systemd_cgroups)
}

/// Those of the folder come last, by name: what they say holds.
fn files(file: &Path, folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(|it| Some(it.ok()?.path()));
    let mut more: Vec<PathBuf> = entries.filter(|it| it.extension().is_some_and(|it| it == "toml")).collect();
    more.sort();
    file.exists().then(|| file.to_owned()).into_iter().chain(more).collect()
}

fn read(path: &Path) -> Result<Runtimes, String> {
    let length = fs::metadata(path).map_err(|it| it.to_string())?.len();
    if length > BYTES_MAX {
        return Err(format!("it has {length} bytes, and at most {BYTES_MAX} are read"));
    }
    let text = fs::read_to_string(path).map_err(|it| it.to_string())?;
    runtimes(&text)
}

fn runtimes(text: &str) -> Result<Runtimes, String> {
    let mut config: Table = text.parse().map_err(|it: toml::de::Error| it.message().to_owned())?;
    let Some(Value::Table(plugins)) = config.get_mut("plugins") else { return Ok(Runtimes::new()) };
    let mut found = Runtimes::new();
    for plugin in PLUGINS {
        let table = plugins.get_mut(plugin).and_then(|it| it.get_mut("containerd")?.get_mut("runtimes"));
        let Some(Value::Table(runtimes)) = table.map(|it| std::mem::replace(it, Value::Boolean(false))) else {
            continue;
        };
        for (name, runtime) in runtimes {
            let Value::Table(runtime) = runtime else { return Err(format!("the runtime {name:?} is no table")) };
            if name == USUAL {
                continue;
            }
            if !is_handler(&name) {
                return Err(format!("no RuntimeClass can name the runtime {name:?}: a handler is a DNS label"));
            }
            found.insert(name, runtime);
        }
    }
    Ok(found)
}

/// As `handler` of a RuntimeClass must be.
fn is_handler(name: &str) -> bool {
    corten_meta::field::dns1123_label(name).is_empty()
}

fn written(runtimes: Runtimes, has_systemd_cgroups: bool) -> String {
    if runtimes.is_empty() {
        return String::new();
    }
    let runtimes: Table = runtimes
        .into_iter()
        .map(|(name, mut runtime)| {
            // Pods of all runtimes lie in the same tree of cgroups.
            if runtime.get("runtime_type").and_then(Value::as_str) == Some(RUNC_SHIM) {
                let options = runtime.entry("options").or_insert_with(|| Value::Table(Table::new()));
                if let Value::Table(options) = options {
                    options.insert("SystemdCgroup".into(), has_systemd_cgroups.into());
                }
            }
            (name, Value::Table(runtime))
        })
        .collect();
    let within = |name: &str, inner: Table| Table::from_iter([(name.to_owned(), Value::Table(inner))]);
    let config = within("plugins", within(PLUGINS[0], within("containerd", within("runtimes", runtimes))));
    toml::to_string(&config).expect("a table of a configuration is one again")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINES: &str = r#"
version = 2
root = "/elsewhere"
[plugins."io.containerd.grpc.v1.cri".containerd]
  default_runtime_name = "runsc"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runsc]
  runtime_type = "io.containerd.runsc.v1"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runsc.options]
  TypeUrl = "io.containerd.runsc.v1.options"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.second]
  runtime_type = "io.containerd.runc.v2"
  options = { BinaryName = "/opt/second" }
"#;

    #[test]
    fn further_runtimes_are_taken_over_and_nothing_else() {
        let text = written(runtimes(MACHINES).expect("it is a configuration"), true);
        let ours: Table = text.parse().expect("it is a configuration");
        assert_eq!(ours.len(), 1, "{text}");
        let of = |name: &str| ours["plugins"][PLUGINS[0]]["containerd"]["runtimes"].get(name).cloned();
        assert_eq!(of("runc"), None);
        assert_eq!(
            of("runsc").expect("it is there")["options"]["TypeUrl"].as_str(),
            Some("io.containerd.runsc.v1.options")
        );
        let second = of("second").expect("it is there");
        assert_eq!(second["options"]["BinaryName"].as_str(), Some("/opt/second"));
        assert_eq!(second["options"]["SystemdCgroup"].as_bool(), Some(true));
    }

    #[test]
    fn what_is_no_configuration_is_said() {
        for (text, expected) in [
            ("", Ok(0)),
            ("plugins = 3", Ok(0)),
            ("[plugins.\"io.containerd.grpc.v1.cri\"]\ncontainerd = 3", Ok(0)),
            ("[plugins", Err("unclosed table")),
            ("[plugins.\"io.containerd.grpc.v1.cri\".containerd]\nruntimes = { a = 1 }", Err("is no table")),
            ("[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.\"A b\"]", Err("a handler is a DNS label")),
        ] {
            match (runtimes(text), expected) {
                (Ok(found), Ok(n)) => assert_eq!(found.len(), n, "{text}"),
                (Err(problem), Err(words)) => assert!(problem.contains(words), "{text}: {problem}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
        assert_eq!(written(Runtimes::new(), false), "");
    }
}
