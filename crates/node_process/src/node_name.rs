//! What the node of a data folder is called: a machine that gets another name keeps its node, with its Pods.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use clap::ArgMatches;

const FILE: &str = "node-name";

/// A node's name, and what else it could be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeName {
    pub name: String,
    /// What the machine is called, where the node keeps an earlier name of its.
    pub machine: Option<String>,
}

impl NodeName {
    /// What was asked for; else what the data folder knows; else what the machine is called.
    pub fn of(matches: &ArgMatches, data: &Path) -> Result<Self> {
        let asked = matches.get_one::<String>("node-name").cloned();
        Ok(Self::choose(asked, known(data)?, machine_name()))
    }

    /// Where nobody asks for another.
    pub fn unasked(data: &Path) -> Result<Self> {
        Ok(Self::choose(None, known(data)?, machine_name()))
    }

    fn choose(asked: Option<String>, known: Option<String>, machine: String) -> Self {
        match (asked, known) {
            (Some(name), _) => Self { name, machine: None },
            (None, Some(name)) if name != machine => Self { name, machine: Some(machine) },
            (None, _) => Self { name: machine, machine: None },
        }
    }

    /// For whoever wonders which name is which.
    pub fn remark(&self) -> Option<String> {
        let machine = self.machine.as_ref()?;
        Some(format!(
            "the machine is called {machine}, its node stays {}: --node-name gives it another name",
            self.name
        ))
    }

    /// Lets the data folder know it. Durable when it returns.
    pub fn keep(&self, data: &Path) -> Result<()> {
        if known(data)?.as_ref() == Some(&self.name) {
            return Ok(());
        }
        corten_machine::close_data(data)?;
        let path = path(data);
        corten_machine::write_whole(&path, 0o644, format!("{}\n", self.name).as_bytes())
            .with_context(|| format!("writing {}", path.display()))
    }
}

fn machine_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().to_lowercase()
}

fn path(data: &Path) -> PathBuf {
    data.join(FILE)
}

fn known(data: &Path) -> Result<Option<String>> {
    let path = path(data);
    match fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text.trim().to_owned()).filter(|it| !it.is_empty())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_folder_knows_its_node() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let chosen = |asked: Option<&str>, machine: &str| {
            let known = known(dir.path()).expect("readable");
            NodeName::choose(asked.map(str::to_owned), known, machine.to_owned())
        };
        let first = chosen(None, "alpha");
        assert_eq!((&*first.name, first.remark()), ("alpha", None));
        first.keep(dir.path()).expect("written");
        let renamed = chosen(None, "beta");
        assert_eq!(renamed.name, "alpha");
        assert_eq!(
            renamed.remark().as_deref(),
            Some("the machine is called beta, its node stays alpha: --node-name gives it another name")
        );
        let asked = chosen(Some("gamma"), "beta");
        assert_eq!((&*asked.name, asked.remark()), ("gamma", None));
        asked.keep(dir.path()).expect("written");
        assert_eq!(chosen(None, "beta").name, "gamma");
    }
}
