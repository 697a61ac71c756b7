//! The first words with etcd: whether its members answer, are of one cluster, and new enough.

use std::sync::Arc;

use corten_etcd_api::{StatusRequest, StatusResponse, method::STATUS};
use corten_store::{Limits, Store};

use crate::{
    client::Client,
    keys::Keys,
    options::Options,
    store::EtcdStore,
    tls::{Connector, Tls},
};

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("{0}")]
    Options(String),
    #[error("no member of etcd answers: {0}; start etcd, or correct --etcd-servers and the files for TLS")]
    Silent(String),
    #[error("{0}")]
    Member(String),
}

/// Before these a progress notification may come before what it is about (etcd's issue 15220), so that no read is consistent.
const OLDEST: &[(u64, u64, u64)] = &[(3, 4, 31), (3, 5, 13)];

impl EtcdStore {
    /// Asks every member who it is. One that does not answer is no reason not to start.
    ///
    /// # Errors
    /// None answers, one is too old, or they are of several clusters.
    pub async fn connect(options: &Options, limits: Limits) -> Result<Self, StartError> {
        let tls = options.tls.as_ref().map(Tls::read).transpose().map_err(StartError::Options)?;
        let connector = Connector { tls: tls.map(Arc::new) };
        if options.servers.is_empty() {
            return Err(StartError::Options("--etcd-servers names no member of etcd".into()));
        }
        let client = Client::new(&options.servers, &connector).map_err(StartError::Options)?;
        let store = Self::new(Arc::new(client), Keys::new(&options.prefix), limits);
        store.ask_members().await?;
        store.newest().await.map_err(|it| StartError::Silent(it.to_string()))?;
        Ok(store)
    }

    async fn ask_members(&self) -> Result<(), StartError> {
        let client = self.client();
        let (mut silent, mut n_answered) = (Vec::new(), 0);
        for (at, url) in client.urls().iter().enumerate() {
            let answer = client.ask_member::<_, StatusResponse>(at, STATUS, &StatusRequest {}).await;
            match answer {
                Ok(status) => {
                    n_answered += 1;
                    check_version(url, &status.version)?;
                }
                Err(failure) if failure.code == tonic::Code::FailedPrecondition => {
                    return Err(StartError::Member(failure.to_string()));
                }
                Err(failure) => silent.push(failure.to_string()),
            }
        }
        if n_answered == 0 {
            return Err(StartError::Silent(silent.join("; ")));
        }
        silent.iter().for_each(|it| tracing::warn!(error = it, "a member of etcd does not answer"));
        Ok(())
    }
}

/// Is progress told by an etcd of this version (`3.5.16`) what every read counts on? What is no version is not.
pub fn is_new_enough(version: &str) -> bool {
    let number = |it: &str| it.split(|it: char| !it.is_ascii_digit()).next()?.parse::<u64>().ok();
    let mut numbers = version.split('.').map(|it| number(it).unwrap_or_default());
    let mut next = || numbers.next().unwrap_or_default();
    let is = (next(), next(), next());
    OLDEST.iter().any(|it| (is.0, is.1) == (it.0, it.1) && is.2 >= it.2) || (is.0, is.1) > (3, 5)
}

fn check_version(url: &str, version: &str) -> Result<(), StartError> {
    if is_new_enough(version) {
        return Ok(());
    }
    Err(StartError::Member(format!(
        "etcd {url} is of version {version}, whose watches may tell progress too early: upgrade it to 3.4.31, 3.5.13 or newer"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etcd_that_is_too_old_is_refused() {
        for (version, is_taken) in [
            ("3.4.30", false),
            ("3.4.31", true),
            ("3.5.12", false),
            ("3.5.13", true),
            ("3.5.16-rc.1", true),
            ("3.6.0", true),
            ("4.0.0", true),
            ("3.3.99", false),
            ("", false),
        ] {
            assert_eq!(check_version("http://e", version).is_ok(), is_taken, "{version}");
        }
    }
}
