//! A folder becomes that of another control plane: by a token it is given the cluster's keys, which the certificate key opens.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use corten_api::{core::v1::Secret, resources::SECRETS};
use corten_cli::{
    Failure, SHARED_ETCD_CLUSTER, SHARED_SECRET,
    control_plane_record::{self, ControlPlaneRecord},
};
use corten_client::Error;
use corten_machine::write_whole;
use corten_meta::Key;
use corten_pki::{
    public_key_hashes,
    sharing::{CertificateKey, lacking, place},
};

use super::{Invitation, JoinedFiles, client, discover, discovery::compare_clocks};

const CREATE: &str = "corten token create --control-plane # on a machine with a control plane of the cluster";

/// Files by the name that they are handed over by.
type Files = Vec<(String, Vec<u8>)>;

/// Makes `data` the folder of another control plane. One that is already is left as it is.
///
/// # Errors
/// The folder belongs to another cluster, the invitation is refused, the clocks are apart, or what is shared does not open.
pub(crate) async fn join_control_plane(
    invitation: &Invitation,
    key: Option<&CertificateKey>,
    data: &Path,
) -> Result<()> {
    if is_joined(data, &invitation.ca_hash)? {
        compare_clocks(invitation).await?;
        tracing::info!(data = %data.display(), "the folder is that of a control plane of this cluster already");
        return Ok(());
    }
    let Some(key) = key else {
        return Err(Failure::new("--certificate-key is needed: it opens the cluster's keys").next(CREATE).into());
    };
    let ca = discover(invitation).await.map_err(with_own_line)?;
    let sealed = fetched(invitation, &ca).await?;
    let files = opened(&sealed, key, &invitation.ca_hash)?;
    keep(data, files, &invitation.ca_hash)?;
    tracing::info!(server = invitation.server, data = %data.display(), "this is a control plane of the cluster now");
    Ok(())
}

/// # Errors
/// The folder holds what is not of the cluster whose authority has this hash.
fn is_joined(data: &Path, ca_hash: &str) -> Result<bool> {
    let refused = |what: &str| {
        let message = format!("{} {what}", data.display());
        let mut failure = Failure::new(message);
        failure.details.push("a control plane that joins begins with a folder of its own".to_owned());
        failure.next("name another folder with --data-dir")
    };
    if JoinedFiles::of(data).kubeconfig.exists() {
        return Err(refused("is that of a node, which has its cluster on other machines").into());
    }
    let ca = data.join("pki/ca.crt");
    if let Ok(authority) = fs::read_to_string(&ca) {
        let is_its = public_key_hashes(&authority).iter().any(|it| it.0 == ca_hash);
        let record = ControlPlaneRecord::load(data)?;
        // A unit goes on with the line that it joined by, whatever authority followed since.
        let has_joined_by = |it: &ControlPlaneRecord| it.joined_ca_hash.as_deref() == Some(ca_hash);
        return match (is_its, record) {
            (true, Some(_)) => Ok(true),
            (false, Some(record)) if has_joined_by(&record) => {
                tracing::warn!(
                    "the authority that --ca-hash names is not the cluster's any more: another one has followed it"
                );
                Ok(true)
            }
            (true, None) => Err(refused("has the keys of this cluster, and its data not in an etcd").into()),
            (false, _) => Err(refused("holds another cluster").into()),
        };
    }
    for folder in ["pki", "store"] {
        if fs::read_dir(data.join(folder)).is_ok_and(|mut it| it.next().is_some()) {
            return Err(refused(&format!("holds data of a cluster already ({folder})")).into());
        }
    }
    Ok(false)
}

async fn fetched(invitation: &Invitation, ca: &str) -> Result<Files> {
    let server = &invitation.server;
    let target = invitation.target(ca);
    let found = client(&target)?.get_as::<Secret>(&SECRETS, &Key::new("kube-system", SHARED_SECRET)).await;
    let secret = found.map_err(|error| refused(server, &error))?;
    Ok(secret.data.unwrap_or_default().into_iter().map(|(name, sealed)| (name, sealed.0)).collect())
}

/// What is said of a node's line is another line's here.
fn with_own_line(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<Failure>() {
        Ok(mut failure) if failure.next.as_deref().is_some_and(|it| it.starts_with("corten token create")) => {
            failure.next = None;
            failure.next(CREATE).into()
        }
        Ok(failure) => failure.into(),
        Err(error) => error,
    }
}

fn refused(server: &str, error: &Error) -> anyhow::Error {
    let message = match error.status().map(|it| it.code) {
        Some(401) => format!("{server} does not know the token: it is wrong, deleted or has expired"),
        Some(403) => "the token is one of nodes, or the cluster is kept in the folder of its one server: it makes no control plane".to_owned(),
        Some(404) => "the cluster shares its certificates no more: they are there for two hours".to_owned(),
        _ => format!("{server} did not give the cluster's certificates: {error}"),
    };
    Failure::new(message).next(CREATE).into()
}

/// # Errors
/// The key is another one, or what is opened is not of the cluster whose authority has this hash.
fn opened(sealed: &Files, key: &CertificateKey, ca_hash: &str) -> Result<Files> {
    let mut files = Files::new();
    for (name, sealed) in sealed {
        let Some(plain) = key.open(name, sealed) else {
            let mut failure = Failure::new("the certificate key does not open the cluster's certificates");
            failure
                .details
                .push("it is wrong, or a newer line was printed since: only the newest opens them".to_owned());
            return Err(failure.next(CREATE).into());
        };
        files.push((name.clone(), plain));
    }
    let lacks = lacking(&files).or_else(|| {
        let needed = [control_plane_record::FILE, SHARED_ETCD_CLUSTER];
        needed.into_iter().find(|name| !files.iter().any(|it| it.0 == *name)).map(str::to_owned)
    });
    if let Some(lacks) = lacks {
        return Err(Failure::new(format!("the cluster shares no {lacks}")).next(CREATE).into());
    }
    let authority = files.iter().find(|it| it.0 == "ca.crt").map(|it| String::from_utf8_lossy(&it.1).into_owned());
    if !public_key_hashes(&authority.unwrap_or_default()).iter().any(|it| it.0 == ca_hash) {
        // Whoever rotated the authority since has other keys than the line names.
        return Err(Failure::new("the cluster's authority is another one than --ca-hash names").next(CREATE).into());
    }
    Ok(files)
}

/// The keys come last: without them the folder is one that has not joined.
fn keep(data: &Path, mut files: Files, ca_hash: &str) -> Result<()> {
    let mut take = |name: &str| {
        let at = files.iter().position(|it| it.0 == name);
        at.map(|it| files.remove(it).1).with_context(|| format!("{name} is among what was opened"))
    };
    let cluster = take(SHARED_ETCD_CLUSTER)?;
    let mut record: ControlPlaneRecord = serde_json::from_slice(&take(control_plane_record::FILE)?)
        .context("reading what the other control plane was told")?;
    let pki = data.join("pki");
    for (name, file) in record.files() {
        *file = files.iter().any(|it| it.0 == name).then(|| pki.join(name));
    }
    (record.is_joined, record.joined_ca_hash) = (true, Some(ca_hash.to_owned()));
    files.push((
        control_plane_record::FILE.to_owned(),
        serde_json::to_vec_pretty(&record).context("keeping what it was told")?,
    ));
    let path = data.join(SHARED_ETCD_CLUSTER);
    write_whole(&path, 0o600, &cluster).with_context(|| format!("writing {}", path.display()))?;
    place(&pki, &files).context("keeping the cluster's keys")
}

#[cfg(test)]
mod tests {
    use corten_pki::{Authority, sharing::shared_files};

    use super::*;

    struct Cluster {
        folder: tempfile::TempDir,
        hash: String,
        files: Files,
    }

    fn cluster() -> Cluster {
        let folder = tempfile::tempdir().expect("a folder");
        let pki = folder.path().join("one/pki");
        let authority = Authority::load_or_create(&pki).expect("an authority");
        let hash = public_key_hashes(&authority.signer_pem())[0].0.clone();
        let mut files = shared_files(&pki).expect("they are read");
        let record =
            ControlPlaneRecord { etcd_servers: vec!["https://a:2379".into()], ..ControlPlaneRecord::default() };
        files.push((control_plane_record::FILE.to_owned(), serde_json::to_vec(&record).expect("JSON")));
        files.push(("etcd-ca.crt".to_owned(), b"etcd's".to_vec()));
        files.push((SHARED_ETCD_CLUSTER.to_owned(), b"abc".to_vec()));
        Cluster { folder, hash, files }
    }

    fn sealed(files: &Files, key: &CertificateKey) -> Files {
        files.iter().map(|(name, it)| (name.clone(), key.seal(name, it).expect("sealed"))).collect()
    }

    #[test]
    fn what_is_handed_over_makes_a_control_plane_of_the_same_cluster() {
        let cluster = cluster();
        let key = CertificateKey::generate().expect("a key");
        let files = opened(&sealed(&cluster.files, &key), &key, &cluster.hash).expect("it opens");
        let data = cluster.folder.path().join("two");
        fs::create_dir_all(&data).expect("made");
        assert!(!is_joined(&data, &cluster.hash).expect("an empty folder"));
        keep(&data, files, &cluster.hash).expect("it is kept");
        assert!(is_joined(&data, &cluster.hash).expect("joined"));
        let record = ControlPlaneRecord::joined(&data).expect("read").expect("there");
        assert_eq!(record.etcd_servers, ["https://a:2379"]);
        assert_eq!((record.etcd_ca_file, record.etcd_cert_file), (Some(data.join("pki/etcd-ca.crt")), None));
        assert_eq!(control_plane_record::etcd_cluster(&data).expect("read").as_deref(), Some("abc"));
        let authority = Authority::load_or_create(data.join("pki")).expect("an authority");
        assert_eq!(public_key_hashes(&authority.signer_pem())[0].0, cluster.hash);

        // Its unit says the same when another authority has followed, and who says another hash means another cluster.
        let next = self::cluster();
        fs::copy(next.folder.path().join("one/pki/ca.crt"), data.join("pki/ca.crt")).expect("copied");
        assert!(is_joined(&data, &cluster.hash).expect("joined"));
        let refused = is_joined(&data, "sha256:0").expect_err("another cluster").to_string();
        assert!(refused.ends_with("holds another cluster"), "{refused}");
    }

    #[test]
    fn what_is_not_of_the_cluster_is_refused() {
        let cluster = cluster();
        let (key, other) = (CertificateKey::generate().expect("a key"), CertificateKey::generate().expect("another"));
        let refused = |files: &Files, hash: &str| opened(files, &key, hash).expect_err("refused").to_string();
        assert!(refused(&sealed(&cluster.files, &other), &cluster.hash).contains("the certificate key does not open"));
        let stranger = format!("sha256:{}", "0".repeat(64));
        assert!(refused(&sealed(&cluster.files, &key), &stranger).contains("another one than --ca-hash"));
        for lacking in ["ca.key", "sa.key", control_plane_record::FILE, SHARED_ETCD_CLUSTER] {
            let files = cluster.files.iter().filter(|it| it.0 != lacking).cloned().collect();
            assert_eq!(refused(&sealed(&files, &key), &cluster.hash), format!("the cluster shares no {lacking}"));
        }
    }

    #[test]
    fn a_folder_with_something_else_in_it_is_refused() {
        let cluster = cluster();
        let one = cluster.folder.path().join("one");
        let refused = |data: &Path, hash: &str| is_joined(data, hash).expect_err("refused").to_string();
        assert!(refused(&one, &cluster.hash).ends_with("has the keys of this cluster, and its data not in an etcd"));
        assert!(refused(&one, "sha256:0").ends_with("holds another cluster"));
        let stored = cluster.folder.path().join("stored");
        fs::create_dir_all(stored.join("store")).expect("made");
        assert!(!is_joined(&stored, &cluster.hash).expect("an empty folder holds nothing"));
        fs::write(stored.join("store/log"), "").expect("written");
        assert!(refused(&stored, &cluster.hash).ends_with("holds data of a cluster already (store)"));
        let node = cluster.folder.path().join("node");
        fs::create_dir_all(node.join("kubelet")).expect("made");
        fs::write(node.join("kubelet/kubeconfig"), "").expect("written");
        assert!(refused(&node, &cluster.hash).contains("is that of a node"));
    }
}
