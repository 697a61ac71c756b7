//! What etcd is asked by its own client.

use std::{
    collections::BTreeMap,
    process::{Command, Output, Stdio},
};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use tokio::time::Instant;

use super::cluster::{Cluster, LOOK_EVERY, NAMES, PATIENCE, Part, client_url, peer_url};

#[derive(Deserialize)]
struct Endpoint {
    #[serde(rename = "Endpoint")]
    url: String,
    #[serde(rename = "Status")]
    status: Status,
}

#[derive(Deserialize)]
struct Status {
    header: Header,
    #[serde(default)]
    leader: u64,
}

#[derive(Deserialize)]
struct Header {
    member_id: u64,
}

#[derive(Deserialize)]
struct List {
    members: Vec<Member>,
}

#[derive(Deserialize)]
struct Member {
    #[serde(rename = "ID")]
    id: u64,
    #[serde(rename = "peerURLs")]
    peer_urls: Vec<String>,
}

impl Cluster {
    fn etcdctl(&self, members: &[usize], args: &[&str]) -> Result<Output> {
        let urls: Vec<String> = members.iter().copied().map(client_url).collect();
        let mut command = Command::new(self.etcd.join("etcdctl"));
        command.args(["--endpoints", &urls.join(","), "--dial-timeout", "2s", "--command-timeout", "5s"]).args(args);
        command.stdin(Stdio::null()).output().context("running etcdctl")
    }

    /// Answers what it printed.
    fn ask(&self, args: &[&str]) -> Result<String> {
        let members: Vec<usize> = (0..NAMES.len()).filter(|it| Some(*it) != self.lost).collect();
        let output = self.etcdctl(&members, args)?;
        if !output.status.success() {
            bail!("etcdctl {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    pub(super) fn is_healthy(&self, member: usize) -> Result<bool> {
        Ok(self.etcdctl(&[member], &["endpoint", "health"])?.status.success())
    }

    /// The member that leads.
    pub(super) fn leader(&self) -> Result<usize> {
        let told = self.ask(&["endpoint", "status", "--write-out", "json"])?;
        let endpoints: Vec<Endpoint> = serde_json::from_str(&told).context("reading the status of etcd")?;
        let leading = endpoints.iter().find(|it| it.status.leader == it.status.header.member_id);
        let url = &leading.context("no member of etcd leads")?.url;
        (0..NAMES.len()).find(|it| client_url(*it) == *url).with_context(|| format!("nobody is at {url}"))
    }

    /// The number that etcd has given to each, by where its peers find it.
    fn numbers(&self) -> Result<BTreeMap<String, u64>> {
        let told = self.ask(&["member", "list", "--write-out", "json"])?;
        let list: List = serde_json::from_str(&told).context("reading the members of etcd")?;
        Ok(list.members.into_iter().flat_map(|it| it.peer_urls.into_iter().map(move |url| (url, it.id))).collect())
    }

    /// Puts another member in the place of one that has lost what it had. Under its number it could take back what it has voted for.
    pub(super) async fn replace_lost(&mut self) -> Result<()> {
        let Some(member) = self.lost else { return Ok(()) };
        let (url, start, mut old, mut said) = (peer_url(member), Instant::now(), None, String::new());
        while start.elapsed() < PATIENCE {
            let asked = match self.numbers() {
                Ok(numbers) => match (numbers.get(&url).copied(), old) {
                    (Some(number), Some(old)) if number != old => {
                        self.lost = None;
                        return self.start_part(Part::Member(member));
                    }
                    (Some(number), _) => {
                        old = Some(number);
                        self.ask(&["member", "remove", &format!("{number:x}")])
                    }
                    (None, _) => self.ask(&["member", "add", NAMES[member], "--peer-urls", &url]),
                },
                Err(error) => Err(error),
            };
            // It refuses until those that are left have heard of each other for a while.
            if let Err(error) = asked {
                said = error.to_string();
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        bail!("member {} was not replaced after {PATIENCE:?}: {said}", NAMES[member])
    }

    /// An alarm stays until somebody takes it back, also where there is room again.
    pub(super) fn disarm(&self) -> Result<()> {
        let raised = self.ask(&["alarm", "list"])?;
        if raised.lines().any(|it| !it.contains("NOSPACE")) {
            bail!("etcd raises an alarm: {raised}");
        }
        if !raised.is_empty() {
            self.ask(&["alarm", "disarm"])?;
        }
        Ok(())
    }
}
