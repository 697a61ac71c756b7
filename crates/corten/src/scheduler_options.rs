//! How the scheduler is configured: the file that `--scheduler-config` names.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use corten_scheduler::Config;
use serde_json::Value;

/// Upstream's defaults where no file is named.
///
/// # Errors
/// The file cannot be read, or is no configuration that can be kept to.
pub(crate) fn config(file: Option<&Path>) -> Result<Config> {
    let Some(file) = file else { return Ok(Config::default()) };
    let text = corten_files::read_to_string(file)
        .with_context(|| format!("reading the scheduler's configuration {}", file.display()))?;
    read(&text).with_context(|| format!("reading the scheduler's configuration {}", file.display()))
}

/// As [`config`], of the scheduler that runs with an API server, and leads whenever that does.
///
/// # Errors
/// As there; and a leader is to be elected, or another server asked.
pub(crate) fn config_of_server(file: Option<&Path>) -> Result<Config> {
    of_server(config(file)?)
}

fn of_server(config: Config) -> Result<Config> {
    if config.leader_election.is_some() {
        bail!(
            "the scheduler's configuration: leaderElection.leaderElect: must be false: this scheduler runs with its API server, and of \
             several on the same etcd with the one that leads; `corten scheduler` is one that can be elected by itself"
        );
    }
    if config.kubeconfig.is_some() {
        bail!(
            "the scheduler's configuration: clientConnection.kubeconfig: must be left out: this scheduler asks the API server that it \
             runs with; `corten scheduler` is one that asks another"
        );
    }
    Ok(config)
}

fn read(text: &str) -> Result<Config> {
    let value: Value = match serde_saphyr::from_str(text) {
        Ok(value) => value,
        // The first line is the error, the lines after it show the text around it.
        Err(error) => bail!("{}", error.to_string().lines().next().unwrap_or_default()),
    };
    let config = match Config::read(&value) {
        Ok(config) => config,
        Err(problems) => bail!("{}", problems.join("; ")),
    };
    corten_runner::check_extenders(&config.extenders).map_err(|it| anyhow!("extenders: {it}"))?;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_yaml_and_strict() {
        let head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
        let config = read(&format!("{head}profiles:\n- schedulerName: packing\n")).expect("it can be read");
        assert_eq!(config.profiles[0].name, "packing");
        let error = read(&format!("{head}profile: []\n")).expect_err("a field of another name").to_string();
        assert_eq!(error, "unknown field \"profile\"");
        assert!(read("a: [").is_err());
        let refused = |more: &str| {
            let config = read(&format!("{head}{more}\n")).expect("it can be read");
            of_server(config).expect_err("of a process of its own").to_string()
        };
        assert!(refused("leaderElection: {leaderElect: true}").contains("leaderElection.leaderElect: must be false"));
        assert!(
            refused("clientConnection: {kubeconfig: /x}").contains("clientConnection.kubeconfig: must be left out")
        );
        let error =
            read(&format!("{head}extenders:\n- urlPrefix: https://x\n")).expect_err("nobody can know it").to_string();
        assert!(error.starts_with("extenders: "), "{error}");
    }
}
