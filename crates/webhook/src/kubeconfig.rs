//! A server to ask, as a kubeconfig names it: how Kubernetes' API server is told of its webhooks for authentication and
//! authorization. The server's address is where requests are sent, with its path.

use std::path::{Path, PathBuf};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;

use crate::client_config::{ClientConfig, ConfigError, Location, Proof};

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Kubeconfig {
    clusters: Vec<NamedEntry<Cluster>>,
    users: Vec<NamedEntry<User>>,
    contexts: Vec<NamedEntry<Context>>,
    current_context: String,
}

#[derive(Deserialize)]
struct NamedEntry<T> {
    name: String,
    #[serde(alias = "cluster", alias = "user", alias = "context")]
    of: T,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Context {
    cluster: String,
    user: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Cluster {
    server: String,
    certificate_authority: String,
    certificate_authority_data: String,
    insecure_skip_tls_verify: bool,
    tls_server_name: String,
    proxy_url: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct User {
    client_certificate: String,
    client_certificate_data: String,
    client_key: String,
    client_key_data: String,
    token: String,
    #[serde(rename = "tokenFile")]
    token_file: String,
    username: String,
    exec: Option<serde_json::Value>,
    auth_provider: Option<serde_json::Value>,
}

impl ClientConfig {
    /// From the current context of a kubeconfig file. Files that it names are read now.
    ///
    /// # Errors
    /// It cannot be read, or names no server that can be asked.
    pub fn of_kubeconfig(path: &Path) -> Result<Self, ConfigError> {
        let wrong = |reason: String| ConfigError(format!("{}: {reason}", path.display()));
        let text = corten_files::read_to_string(path).map_err(|it| wrong(it.to_string()))?;
        let found: Kubeconfig = serde_saphyr::from_str(&text).map_err(|it| {
            // What follows shows the text around it, which may be a secret.
            wrong(it.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned())
        })?;
        let files = Files { folder: path.parent().unwrap_or(Path::new(".")) };
        let config = files.client(&found).map_err(wrong)?;
        config.check().map_err(|it| wrong(it.0))?;
        Ok(config)
    }
}

/// Where paths that are not absolute begin.
struct Files<'a> {
    folder: &'a Path,
}

impl Files<'_> {
    fn client(&self, found: &Kubeconfig) -> Result<ClientConfig, String> {
        let context = &*found.current_context;
        let context = named(&found.contexts, context).ok_or_else(|| match context {
            "" => "invalid configuration: no current-context is set".to_owned(),
            name => format!("context {name:?} does not exist"),
        })?;
        let cluster = named(&found.clusters, &context.cluster)
            .ok_or_else(|| format!("cluster {:?} does not exist", context.cluster))?;
        if cluster.server.is_empty() {
            return Err(format!("no server found for cluster {:?}", context.cluster));
        }
        if !cluster.proxy_url.is_empty() {
            return Err("proxy-url: this server asks webhooks without a proxy".into());
        }
        let mut config = ClientConfig::new(Location::Url(cluster.server.clone()));
        config.skip_verify = cluster.insecure_skip_tls_verify;
        config.ca_bundle = self.content(&cluster.certificate_authority_data, &cluster.certificate_authority)?;
        if config.skip_verify && !config.ca_bundle.is_empty() {
            return Err("specifying a root certificates file with the insecure flag is not allowed".into());
        }
        config.server_name = Some(cluster.tls_server_name.clone()).filter(|it| !it.is_empty());
        config.proof = match &*context.user {
            "" => None,
            name => {
                let user = named(&found.users, name).ok_or_else(|| format!("user {name:?} does not exist"))?;
                self.proof(user)?
            }
        };
        Ok(config)
    }

    fn proof(&self, user: &User) -> Result<Option<Proof>, String> {
        if user.exec.is_some() || user.auth_provider.is_some() || !user.username.is_empty() {
            return Err("a webhook is shown a client certificate or a token, nothing else".into());
        }
        let chain = self.content(&user.client_certificate_data, &user.client_certificate)?;
        let key = self.content(&user.client_key_data, &user.client_key)?;
        let token = match &*user.token_file {
            "" => user.token.clone(),
            path => String::from_utf8_lossy(&self.read(path)?).trim().to_owned(),
        };
        match (chain.is_empty() && key.is_empty(), token.is_empty()) {
            (true, true) => Ok(None),
            (true, false) => Ok(Some(Proof::BearerToken(token))),
            (false, true) => Ok(Some(Proof::Certificate { chain, key })),
            (false, false) => Err("a webhook is shown a client certificate or a token, not both".into()),
        }
    }

    /// What stands there, or else in the file.
    fn content(&self, data: &str, path: &str) -> Result<Vec<u8>, String> {
        match (data, path) {
            ("", "") => Ok(Vec::new()),
            ("", path) => self.read(path),
            (data, _) => BASE64_STANDARD.decode(data.trim()).map_err(|it| format!("illegal base64 data: {it}")),
        }
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let path: PathBuf = self.folder.join(path);
        corten_files::read(&path).map_err(|it| format!("unable to read {}: {it}", path.display()))
    }
}

fn named<'a, T>(list: &'a [NamedEntry<T>], name: &str) -> Option<&'a T> {
    list.iter().find(|it| it.name == name).map(|it| &it.of)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const GOOD: &str = "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster: {server: 'https://hook.example/ask'}\nusers:\n- name: u\n  user: {tokenFile: token}\ncontexts:\n- name: x\n  context: {cluster: c, user: u}\ncurrent-context: x\n";

    #[test]
    fn a_kubeconfig_names_a_server_and_what_it_is_shown() {
        let folder = std::env::temp_dir().join(format!("corten-kubeconfig-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("token"), "s3cret\n").expect("a file");
        let path = folder.join("hook.yaml");
        for (from, to, expected) in [
            ("", "", Ok(())),
            ("current-context: x", "current-context: y", Err("context \"y\" does not exist")),
            ("cluster: c", "cluster: d", Err("cluster \"d\" does not exist")),
            ("user: u", "user: v", Err("user \"v\" does not exist")),
            ("https://", "http://", Err("must begin with https:// and a host")),
            ("tokenFile: token", "tokenFile: none", Err("unable to read")),
            ("tokenFile: token", "username: jane", Err("a client certificate or a token, nothing else")),
            ("tokenFile: token", "client-certificate-data: '?'", Err("illegal base64 data")),
            ("/ask'", "/ask', certificate-authority-data: eA==", Err("unable to parse bytes as PEM block")),
            ("/ask'", "/ask', proxy-url: 'http://p'", Err("without a proxy")),
        ] {
            fs::write(&path, GOOD.replacen(from, to, 1)).expect("a file");
            let found = ClientConfig::of_kubeconfig(&path).map_err(|it| it.0);
            match expected {
                Ok(()) => assert!(
                    found.is_ok_and(|it| it.proof == Some(Proof::BearerToken("s3cret".into()))
                        && it.location == Location::Url("https://hook.example/ask".into())),
                    "{to}"
                ),
                Err(part) => assert!(found.as_ref().is_err_and(|it| it.contains(part)), "{to}: {:?}", found.err()),
            }
        }
        fs::remove_dir_all(&folder).expect("it can be removed");
    }
}
