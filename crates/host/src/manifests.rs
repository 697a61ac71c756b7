//! Reads the folder of static pods' manifests, again and again: what changed is told as a whole.
//!
//! A file is read as the API server would read it: defaulted, unknown fields dropped, then checked. One that is no pod is
//! told with the reason. As in the kubelet's `extractFromDir`, hidden files and folders are passed over, and the path may
//! be that of one file.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use corten_api::core::v1::Pod;
use corten_kinds::Kind;
use corten_kubelet::{Event, Manifest};
use corten_meta::depth::LEVELS_MAX;
use serde_json::Value;
use tokio::sync::Mutex;

/// How often the folder is looked at.
const PERIOD: Duration = Duration::from_secs(1);
/// `maxConfigLength`: no manifest is larger.
const BYTES_MAX: u64 = 10 << 20;
const POD: &str = "io.k8s.api.core.v1.Pod";

/// The folder, and what was last told of it.
#[derive(Debug)]
pub struct Manifests {
    path: PathBuf,
    told: Mutex<Option<Vec<Stamp>>>,
}

/// Differs where a file does.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    path: PathBuf,
    inode: u64,
    size: u64,
    changed: (i64, i64),
    modified: (i64, i64),
}

impl Manifests {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), told: Mutex::new(None) }
    }

    /// The next call tells what the folder holds, as the first one.
    pub async fn renew(&self) {
        *self.told.lock().await = None;
    }

    /// What the folder holds: at first at once, later when it changed. A folder that cannot be read holds what it held.
    pub async fn next(&self) -> Event {
        loop {
            let path = self.path.clone();
            let listed = tokio::task::spawn_blocking(move || stamps(&path)).await.map_err(io::Error::other);
            let mut told = self.told.lock().await;
            match listed.and_then(|it| it) {
                Ok(stamps) if told.as_ref() != Some(&stamps) => {
                    let paths: Vec<PathBuf> = stamps.iter().map(|it| it.path.clone()).collect();
                    let read = tokio::task::spawn_blocking(move || paths.iter().map(|it| manifest(it)).collect());
                    if let Ok(manifests) = read.await {
                        *told = Some(stamps);
                        return Event::Manifests(manifests);
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, path = %self.path.display(), "cannot read the static pods' folder")
                }
            }
            drop(told);
            tokio::time::sleep(PERIOD).await;
        }
    }
}

/// The files that count, in the order of their names. A path that is not there has none.
fn stamps(path: &Path) -> io::Result<Vec<Stamp>> {
    let meta = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    if !meta.is_dir() {
        return Ok(vec![stamp(path, &meta)]);
    }
    let mut stamps = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        // Links are followed; one that leads nowhere, or a file that goes meanwhile, is not there.
        if let Some(meta) = fs::metadata(entry.path()).ok().filter(|it| it.is_file() && !is_hidden) {
            stamps.push(stamp(&entry.path(), &meta));
        }
    }
    stamps.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(stamps)
}

fn stamp(path: &Path, meta: &fs::Metadata) -> Stamp {
    Stamp {
        path: path.to_owned(),
        inode: meta.ino(),
        size: meta.size(),
        changed: (meta.ctime(), meta.ctime_nsec()),
        modified: (meta.mtime(), meta.mtime_nsec()),
    }
}

fn manifest(path: &Path) -> Manifest {
    let pod = read(path).and_then(|it| parse(&it));
    if let Err(problem) = &pod {
        tracing::warn!(path = %path.display(), problem, "a file in the static pods' folder is no pod");
    }
    Manifest { path: path.to_string_lossy().into_owned(), pod }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let size = fs::metadata(path).map_err(|it| it.to_string())?.len();
    if size > BYTES_MAX {
        return Err(format!("the file has {size} bytes, at most {BYTES_MAX} are read"));
    }
    fs::read(path).map_err(|it| it.to_string())
}

fn parse(bytes: &[u8]) -> Result<Box<Pod>, String> {
    let pods: &Kind = corten_kinds::by_path("", "v1", "pods").expect("pods are a row of the table");
    let mut value: Value = serde_saphyr::from_slice_with_options(bytes, options())
        .map_err(|it| it.to_string().lines().next().unwrap_or("not YAML").to_owned())?;
    if !value.is_object() {
        return Err("couldn't parse as pod: it is no object".into());
    }
    for (field, wanted) in [("apiVersion", "v1"), ("kind", "Pod")] {
        if value[field] != wanted {
            return Err(format!("couldn't parse as pod: {field} is {}, not {wanted:?}", value[field]));
        }
    }
    let findings = corten_schema::check(POD, &value);
    if let Some(wrong) = findings.wrong_types.first() {
        return Err(format!("couldn't parse as pod: {}", wrong.message));
    }
    corten_schema::prune(POD, &mut value);
    pods.policy.default(&mut value);
    if let Some(violation) = pods.policy.validate(&value).first() {
        return Err(format!("invalid pod: {violation}"));
    }
    serde_json::from_value(value).map_err(|it| format!("couldn't parse as pod: {it}"))
}

/// Bounds that alias bombs run into.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: LEVELS_MAX, max_nodes: 250_000, max_events: 500_000, max_aliases: 1_000, max_documents: 1 },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 100_000 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD_YAML: &str = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n  containers:\n  - name: app\n    image: app:1\n    surprise: 1\n";

    #[test]
    fn says_what_is_wrong_with_a_file() {
        for (text, expected) in [
            (POD_YAML, Ok("Always IfNotPresent")),
            (
                r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"j"},"spec":{"containers":[{"name":"a","image":"a"}]}}"#,
                Ok("Always Always"),
            ),
            ("", Err("couldn't parse as pod: it is no object")),
            ("{}", Err("couldn't parse as pod: apiVersion is null, not \"v1\"")),
            ("apiVersion: v1\nkind: ConfigMap\n", Err("couldn't parse as pod: kind is \"ConfigMap\", not \"Pod\"")),
            ("a: [", Err("")),
            ("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: 7}\n", Err("couldn't parse as pod: ")),
            (
                "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: []}\n",
                Err("invalid pod: spec.containers: Required value"),
            ),
        ] {
            match (parse(text.as_bytes()), expected) {
                (Ok(pod), Ok(expected)) => {
                    let spec = pod.spec.expect("a spec");
                    let text = |it: &Option<String>| it.clone().unwrap_or_default();
                    let found =
                        format!("{} {}", text(&spec.restart_policy), text(&spec.containers[0].image_pull_policy));
                    assert_eq!(found, expected);
                }
                (Err(problem), Err(expected)) => assert!(problem.starts_with(expected), "{problem:?} for {text:?}"),
                (found, expected) => panic!("{found:?} is not {expected:?} for {text:?}"),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn tells_what_changed_and_passes_hidden_files_over() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let folder = dir.path().join("manifests");
        let manifests = Manifests::new(&folder);
        let paths = |event: Event| match event {
            Event::Manifests(all) => all
                .into_iter()
                .map(|it| format!("{} {}", it.path.rsplit('/').next().unwrap_or_default(), it.pod.is_ok()))
                .collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        assert!(paths(manifests.next().await).is_empty(), "a folder that is not there holds nothing");
        fs::create_dir_all(folder.join("sub.yaml")).expect("a folder");
        for (name, text) in [("b.json", "nonsense"), ("a.yaml", POD_YAML), (".hidden.yaml", POD_YAML)] {
            fs::write(folder.join(name), text).expect("written");
        }
        assert_eq!(paths(manifests.next().await), ["a.yaml true", "b.json false"]);
        fs::remove_file(folder.join("b.json")).expect("removed");
        assert_eq!(paths(manifests.next().await), ["a.yaml true"]);
        let one = Manifests::new(folder.join("a.yaml"));
        assert_eq!(paths(one.next().await), ["a.yaml true"]);
    }
}
