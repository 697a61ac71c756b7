//! The file that says where a cluster is and who one is there, as kubectl reads and writes it.
//!
//! What this program does not know of it is kept as it stands, so that writing never loses anything.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde::{Deserialize, Serialize};
use serde_json::Value;

type Unknown = BTreeMap<String, Value>;

/// The whole file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Kubeconfig {
    #[serde(rename = "apiVersion")]
    pub api_version: String,
    pub kind: String,
    #[serde(deserialize_with = "null_is_empty")]
    pub clusters: Vec<NamedCluster>,
    #[serde(deserialize_with = "null_is_empty")]
    pub users: Vec<NamedUser>,
    #[serde(deserialize_with = "null_is_empty")]
    pub contexts: Vec<NamedContext>,
    pub current_context: String,
    #[serde(flatten)]
    pub unknown: Unknown,
    /// Where it was read from; relative paths in it start at its folder.
    #[serde(skip)]
    pub path: Option<PathBuf>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NamedCluster {
    pub name: String,
    pub cluster: Cluster,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NamedUser {
    pub name: String,
    #[serde(default)]
    pub user: User,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NamedContext {
    pub name: String,
    pub context: Context,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Cluster {
    pub server: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate_authority: Option<String>,
    /// PEM in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate_authority_data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_server_name: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub insecure_skip_tls_verify: bool,
    #[serde(flatten)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct User {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_certificate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_certificate_data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_key_data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    #[serde(rename = "tokenFile", skip_serializing_if = "Option::is_none")]
    pub token_file: Option<String>,
    #[serde(flatten)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Context {
    pub cluster: String,
    pub user: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// One context with everything it names read: what is needed to connect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestConfig {
    /// `https://127.0.0.1:6443`.
    pub server: String,
    /// PEM; empty: the server must be known otherwise, which for now means refused.
    pub ca: Vec<u8>,
    /// PEM of the certificate chain and of its key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    pub token: Option<String>,
    /// The name the server's certificate must carry, where it is not the server's address.
    pub server_name: Option<String>,
    pub insecure_skip_tls_verify: bool,
    pub namespace: String,
}

#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    #[error("cannot read {path}: {cause}")]
    Read { path: PathBuf, cause: io::Error },
    #[error("cannot write {path}: {cause}")]
    Write { path: PathBuf, cause: io::Error },
    #[error("cannot read {path} as a kubeconfig: {reason}")]
    Parse { path: PathBuf, reason: String },
    #[error("cannot write a kubeconfig: {0}")]
    Encode(String),
    #[error("{0}")]
    Incomplete(String),
}

impl Cluster {
    /// The authorities that are written inside, as PEM.
    pub fn authorities(&self) -> Option<String> {
        let bytes = BASE64.decode(self.certificate_authority_data.as_ref()?.trim()).ok()?;
        String::from_utf8(bytes).ok()
    }
}

impl Default for Kubeconfig {
    fn default() -> Self {
        Self {
            api_version: "v1".into(),
            kind: "Config".into(),
            clusters: Vec::new(),
            users: Vec::new(),
            contexts: Vec::new(),
            current_context: String::new(),
            unknown: Unknown::new(),
            path: None,
        }
    }
}

impl Kubeconfig {
    /// A file that says where a cluster is and whom it is known by, and no more: `cluster-info`, as kubeadm publishes it.
    pub fn anonymous(server: &str, ca: &[u8]) -> Self {
        let cluster = Cluster {
            server: server.into(),
            certificate_authority_data: Some(BASE64.encode(ca)),
            ..Cluster::default()
        };
        Self { clusters: vec![NamedCluster { name: String::new(), cluster }], ..Self::default() }
    }

    /// A file for one cluster and one user, whose certificate and key are in another file, where they are replaced.
    pub fn with_files(target: &RestConfig, user: &str, certificate: &Path) -> Self {
        let mut config = Self::embedded("kubernetes", user, &target.server, &target.ca, b"", b"");
        for named in &mut config.clusters {
            named.cluster.tls_server_name.clone_from(&target.server_name);
        }
        let path = certificate.to_string_lossy().into_owned();
        for named in &mut config.users {
            let (client_certificate, client_key) = (Some(path.clone()), Some(path.clone()));
            named.user = User { client_certificate, client_key, ..User::default() };
        }
        config
    }

    /// A file for one cluster and one user, with the certificates inside.
    pub fn embedded(name: &str, user: &str, server: &str, ca: &[u8], certificate: &[u8], key: &[u8]) -> Self {
        let cluster = Cluster {
            server: server.into(),
            certificate_authority_data: Some(BASE64.encode(ca)),
            ..Cluster::default()
        };
        let credentials = User {
            client_certificate_data: Some(BASE64.encode(certificate)),
            client_key_data: Some(BASE64.encode(key)),
            ..User::default()
        };
        let context = Context { cluster: name.into(), user: user.into(), ..Context::default() };
        Self {
            clusters: vec![NamedCluster { name: name.into(), cluster }],
            users: vec![NamedUser { name: user.into(), user: credentials }],
            contexts: vec![NamedContext { name: name.into(), context }],
            current_context: name.into(),
            ..Self::default()
        }
    }

    /// # Errors
    /// The file cannot be read or is not a kubeconfig.
    pub fn load(path: &Path) -> Result<Self, KubeconfigError> {
        let text = fs::read_to_string(path).map_err(|cause| KubeconfigError::Read { path: path.into(), cause })?;
        let mut config = Self::parse(&text).map_err(|reason| KubeconfigError::Parse { path: path.into(), reason })?;
        config.path = Some(path.into());
        Ok(config)
    }

    /// The files that kubectl would read: those in `KUBECONFIG`, else `~/.kube/config`. Of two entries with one name the
    /// first file's counts. None of them has to exist.
    ///
    /// # Errors
    /// A file is there but cannot be read.
    pub fn load_default() -> Result<Self, KubeconfigError> {
        let mut merged = Self::default();
        for path in default_paths() {
            match Self::load(&path) {
                Ok(config) => merged.merge(config.with_absolute_paths()),
                Err(KubeconfigError::Read { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(merged)
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// It is no kubeconfig; why, without what it holds.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        serde_saphyr::from_str(text).map_err(|error| without_content(&error.without_snippet().to_string()))
    }

    /// # Errors
    /// Never for a file that was read or made here; serializers may fail in principle.
    pub fn to_yaml(&self) -> Result<String, KubeconfigError> {
        serde_saphyr::to_string(self).map_err(|error| KubeconfigError::Encode(error.to_string()))
    }

    /// Writes the file so that only its owner can read it, all of it or nothing.
    ///
    /// # Errors
    /// The folder or the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), KubeconfigError> {
        use std::{io::Write, os::unix::fs::OpenOptionsExt};
        let text = self.to_yaml()?;
        let beside = path.with_extension("new");
        let write = || -> io::Result<()> {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&beside, path)
        };
        write().map_err(|cause| KubeconfigError::Write { path: path.into(), cause })
    }

    /// Takes in what `other` has under names that are still free.
    pub fn merge(&mut self, other: Self) {
        let Self { clusters, users, contexts, current_context, unknown, .. } = other;
        for it in clusters {
            if !self.clusters.iter().any(|mine| mine.name == it.name) {
                self.clusters.push(it);
            }
        }
        for it in users {
            if !self.users.iter().any(|mine| mine.name == it.name) {
                self.users.push(it);
            }
        }
        for it in contexts {
            if !self.contexts.iter().any(|mine| mine.name == it.name) {
                self.contexts.push(it);
            }
        }
        if self.current_context.is_empty() {
            self.current_context = current_context;
        }
        for (name, value) in unknown {
            self.unknown.entry(name).or_insert(value);
        }
    }

    /// Takes the authorities, and where the user has the same name its certificate, out of `fresh`: from current context to
    /// current context.
    pub fn take_credentials(&mut self, fresh: &Self) {
        let context =
            |it: &Self| it.contexts.iter().find(|all| all.name == it.current_context).map(|it| it.context.clone());
        let (Some(own), Some(other)) = (context(self), context(fresh)) else { return };
        let cluster = fresh.clusters.iter().find(|it| it.name == other.cluster);
        if let Some(from) = cluster
            && let Some(to) = self.clusters.iter_mut().find(|it| it.name == own.cluster)
        {
            to.cluster.certificate_authority_data.clone_from(&from.cluster.certificate_authority_data);
        }
        let user = fresh.users.iter().find(|it| it.name == other.user && own.user == other.user);
        if let Some(from) = user
            && let Some(to) = self.users.iter_mut().find(|it| it.name == own.user)
            && to.user.client_certificate_data.is_some()
        {
            to.user.client_certificate_data.clone_from(&from.user.client_certificate_data);
            to.user.client_key_data.clone_from(&from.user.client_key_data);
        }
    }

    /// Reads everything that a context names; `None` is the current context.
    ///
    /// # Errors
    /// A name that is not there, a file that cannot be read, or a way of signing in that Corten does not know.
    pub fn target(&self, context: Option<&str>) -> Result<RestConfig, KubeconfigError> {
        let name = context.unwrap_or(&self.current_context);
        if name.is_empty() {
            return Err(incomplete("the kubeconfig names no current context"));
        }
        let context = &self
            .contexts
            .iter()
            .find(|it| it.name == name)
            .ok_or_else(|| incomplete(format!("context {name:?} does not exist")))?
            .context;
        let cluster = &self
            .clusters
            .iter()
            .find(|it| it.name == context.cluster)
            .ok_or_else(|| incomplete(format!("cluster {:?} does not exist", context.cluster)))?
            .cluster;
        let nobody = User::default();
        let user = match self.users.iter().find(|it| it.name == context.user) {
            Some(named) => &named.user,
            None if context.user.is_empty() => &nobody,
            None => return Err(incomplete(format!("user {:?} does not exist", context.user))),
        };
        for way in ["exec", "auth-provider", "username", "password", "as", "as-groups"] {
            if user.unknown.contains_key(way) {
                return Err(incomplete(format!("user {:?} signs in by {way:?}, which is not supported", context.user)));
            }
        }
        if cluster.unknown.contains_key("proxy-url") {
            return Err(incomplete(format!("cluster {:?} has a proxy-url, which is not supported", context.cluster)));
        }
        self.read_target(context, cluster, user)
    }

    fn read_target(&self, context: &Context, cluster: &Cluster, user: &User) -> Result<RestConfig, KubeconfigError> {
        let ca = self.either(cluster.certificate_authority_data.as_ref(), cluster.certificate_authority.as_ref())?;
        let certificate = self.either(user.client_certificate_data.as_ref(), user.client_certificate.as_ref())?;
        let key = self.either(user.client_key_data.as_ref(), user.client_key.as_ref())?;
        let identity = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            (Some(_), None) => return Err(incomplete(format!("user {:?} has a certificate, no key", context.user))),
            (None, Some(_)) => return Err(incomplete(format!("user {:?} has a key, no certificate", context.user))),
        };
        let token = match (&user.token, &user.token_file) {
            (Some(token), _) => Some(token.clone()),
            (None, Some(file)) => Some(String::from_utf8_lossy(&self.read(file)?).trim().to_owned()),
            (None, None) => None,
        };
        Ok(RestConfig {
            server: cluster.server.clone(),
            ca: ca.unwrap_or_default(),
            identity,
            token,
            server_name: cluster.tls_server_name.clone(),
            insecure_skip_tls_verify: cluster.insecure_skip_tls_verify,
            namespace: context.namespace.clone(),
        })
    }

    fn either(&self, data: Option<&String>, file: Option<&String>) -> Result<Option<Vec<u8>>, KubeconfigError> {
        match (data, file) {
            (Some(data), _) if !data.is_empty() => BASE64
                .decode(data.trim())
                .map(Some)
                .map_err(|error| incomplete(format!("embedded certificate data is not base64: {error}"))),
            (_, Some(file)) => self.read(file).map(Some),
            _ => Ok(None),
        }
    }

    fn read(&self, file: &str) -> Result<Vec<u8>, KubeconfigError> {
        let path = self.resolve(file);
        fs::read(&path).map_err(|cause| KubeconfigError::Read { path, cause })
    }

    fn resolve(&self, file: &str) -> PathBuf {
        let folder = self.path.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        folder.join(file)
    }

    /// So that entries of several files can stand in one.
    fn with_absolute_paths(mut self) -> Self {
        let folder = self.path.clone();
        let absolute = |file: &mut Option<String>| {
            if let (Some(file), Some(folder)) = (file, folder.as_deref().and_then(Path::parent)) {
                *file = folder.join(&*file).to_string_lossy().into_owned();
            }
        };
        for it in &mut self.clusters {
            absolute(&mut it.cluster.certificate_authority);
        }
        for it in &mut self.users {
            absolute(&mut it.user.client_certificate);
            absolute(&mut it.user.client_key);
            absolute(&mut it.user.token_file);
        }
        self
    }
}

/// Where kubectl looks: the files in `KUBECONFIG`, else `~/.kube/config`.
pub fn default_paths() -> Vec<PathBuf> {
    let listed: Vec<PathBuf> = std::env::var_os("KUBECONFIG")
        .map(|it| std::env::split_paths(&it).filter(|it| !it.as_os_str().is_empty()).collect())
        .unwrap_or_default();
    if !listed.is_empty() {
        return listed;
    }
    std::env::home_dir().map(|it| it.join(".kube/config")).into_iter().collect()
}

fn incomplete(message: impl Into<String>) -> KubeconfigError {
    KubeconfigError::Incomplete(message.into())
}

/// The reader's message without what it quotes of the file, which may be a key or a token.
fn without_content(message: &str) -> String {
    const QUOTES: [char; 3] = ['"', '`', '\''];
    const TWICE: &str = "duplicate mapping key";
    let line = message.lines().next().unwrap_or_default();
    if line.starts_with(TWICE) {
        let place = line.rfind(" at line ").map_or("", |at| &line[at..]);
        return format!("{TWICE}{place}");
    }
    match (line.find(QUOTES), message.rfind(QUOTES)) {
        (Some(from), Some(to)) if from < to => {
            let (before, after) = (&message[..from], &message[to + 1..]);
            format!("{before}…{}", after.lines().next().unwrap_or_default())
        }
        _ => line.to_owned(),
    }
}

fn is_false(it: &bool) -> bool {
    !*it
}

/// kubectl writes `null` for an empty list.
fn null_is_empty<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests;
