//! Archives of images in the node's image folders: imported once, and again when an image of theirs was removed and is wanted.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use corten_machine::{Doing, Layout, MachineError, command};
use serde::Deserialize;

use super::{Containerd, blobs};

/// What the record of an import says where it went well.
pub(super) const IMPORTED: &str = "imported";
/// No list of an archive's images is longer.
const LIST_BYTES_MAX: u64 = 4 << 20;
/// Where the images' names are, by which of these an archive has.
const OCI_LIST: &str = "index.json";
const DOCKER_LIST: &str = "manifest.json";
const OCI_NAMES: [&str; 2] = ["io.containerd.image.name", "org.opencontainers.image.ref.name"];

impl Containerd {
    /// Imports each wanted archive of the image folders that is new or has changed.
    pub async fn import_images(&self, wanted: impl Fn(&Path) -> bool) {
        for archive in archives(&self.layout).into_iter().filter(|it| wanted(it)) {
            let record = record_of_import(&self.layout, &archive);
            let Some(version) = version_of(&archive) else { continue };
            if fs::read_to_string(&record).is_ok_and(|it| it.lines().next() == Some(&version)) {
                continue;
            }
            let turn = match self.images.turn().await {
                Ok(turn) => turn,
                Err(error) => {
                    tracing::warn!(%error, "cannot import {} yet", archive.display());
                    continue;
                }
            };
            // A failure is recorded too: trying again every period would help nobody. A new archive is a new try.
            let mut imported = import(&self.layout, &archive).await;
            if imported.is_err() && !self.remove_damaged(blobs::ANY).await.is_empty() {
                imported = import(&self.layout, &archive).await;
            }
            // One that a power cut could damage is not there yet.
            if imported.is_ok() {
                imported = turn.keep().await;
            }
            let names = match imported {
                Ok(()) => names_in(archive.clone()).await,
                Err(error) => Err(error),
            };
            let outcome = match names {
                Ok(names) => [IMPORTED.to_owned()].into_iter().chain(names).collect::<Vec<_>>().join("\n"),
                Err(error) => {
                    tracing::error!(%error, "cannot import images");
                    error.to_string()
                }
            };
            if let Err(error) = fs::write(&record, format!("{version}\n{outcome}\n")) {
                tracing::warn!(%error, "cannot record the import of {}", archive.display());
            }
        }
    }
}

/// The archives in the image folders, in the order of their names.
pub(super) fn archives(layout: &Layout) -> Vec<PathBuf> {
    let folders = layout.image_folders.iter().filter_map(|it| fs::read_dir(it).ok());
    let mut archives: Vec<PathBuf> = folders.flatten().flatten().map(|it| it.path()).collect();
    archives.retain(|it| it.extension().is_some_and(|it| it == "tar"));
    archives.sort();
    archives
}

/// The file beside containerd's images that says which version of an archive is among them, and what it has brought.
pub(super) fn record_of_import(layout: &Layout, archive: &Path) -> PathBuf {
    layout.containerd_root().join(format!("imported{}", archive.to_string_lossy().replace('/', "-")))
}

/// The archive that has brought `image`, where it still is what it was.
pub(crate) fn holding(layout: &Layout, image: &str) -> Option<PathBuf> {
    let image = full_name(image);
    archives(layout).into_iter().find(|archive| {
        let record = fs::read_to_string(record_of_import(layout, archive)).unwrap_or_default();
        let mut lines = record.lines();
        lines.next().is_some_and(|it| version_of(archive).as_deref() == Some(it))
            && lines.next() == Some(IMPORTED)
            && lines.any(|it| it == image)
    })
}

/// Imports all images of an archive, however long that takes a slow machine.
pub(crate) async fn import(layout: &Layout, archive: &Path) -> Result<(), MachineError> {
    let (socket, archive) = (layout.containerd_socket(), archive.to_string_lossy());
    let args = ["--address", &socket.to_string_lossy(), "--namespace", "k8s.io", "images", "import", &archive];
    // `ctr` reads the archive, and containerd writes its layers.
    let containerd = super::running(layout).map(|it| it.as_raw_nonzero().get().unsigned_abs());
    let progress = |ctr: u32| (command::bytes_read(ctr), containerd.map(command::bytes_written));
    command::run_while_it_advances("ctr", &args, progress).await.map(drop)
}

/// Changes when the file's content does.
fn version_of(file: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let meta = fs::metadata(file).ok()?;
    Some(format!("{} {}.{}", meta.size(), meta.mtime(), meta.mtime_nsec()))
}

async fn names_in(archive: PathBuf) -> Result<BTreeSet<String>, MachineError> {
    let path = archive.clone();
    let work = tokio::task::spawn_blocking(move || File::open(&path).and_then(read_names));
    work.await.map_err(io::Error::other).and_then(|it| it).doing("read the names of images in", &archive)
}

/// One entry of `manifest.json`: `docker save`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DockerImage {
    repo_tags: Option<Vec<String>>,
}

/// `index.json`: the OCI image layout.
#[derive(Deserialize)]
struct OciIndex {
    manifests: Vec<OciImage>,
}

#[derive(Deserialize)]
struct OciImage {
    #[serde(default)]
    annotations: serde_json::Map<String, serde_json::Value>,
}

/// What the lists in an archive call its images, in full.
fn read_names(archive: impl Read + io::Seek) -> io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in tar::Archive::new(archive).entries_with_seek()? {
        let entry = entry?;
        let path = entry.path()?.into_owned();
        let list = entry.take(LIST_BYTES_MAX);
        match path.strip_prefix("./").unwrap_or(&path).to_str() {
            Some(DOCKER_LIST) => {
                let images: Vec<DockerImage> = serde_json::from_reader(list)?;
                names.extend(images.into_iter().filter_map(|it| it.repo_tags).flatten().map(|it| full_name(&it)));
            }
            Some(OCI_LIST) => {
                let index: OciIndex = serde_json::from_reader(list)?;
                let name = |it: &OciImage| {
                    let found = OCI_NAMES.iter().find_map(|name| it.annotations.get(*name)?.as_str());
                    // A tag alone names nothing that a Pod could ask for.
                    found.filter(|it| it.contains([':', '/'])).map(full_name)
                };
                names.extend(index.manifests.iter().filter_map(name));
            }
            _ => {}
        }
    }
    Ok(names)
}

/// `busybox` → `docker.io/library/busybox:latest`, as the runtime stores it.
fn full_name(image: &str) -> String {
    let (domain, rest) = match image.split_once('/') {
        Some((domain, rest)) if domain.contains(['.', ':']) || domain == "localhost" => (domain, rest),
        _ => ("docker.io", image),
    };
    let library = if domain == "docker.io" && !rest.contains('/') { "library/" } else { "" };
    let tag = if rest.contains([':', '@']) { "" } else { ":latest" };
    format!("{domain}/{library}{rest}{tag}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(entries: &[(&str, &str)]) -> io::Cursor<Vec<u8>> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, content) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            builder.append_data(&mut header, path, content.as_bytes()).expect("written");
        }
        io::Cursor::new(builder.into_inner().expect("whole"))
    }

    #[test]
    fn names_are_read_of_both_kinds_of_archives() {
        let index = r#"{"manifests":[
            {"annotations":{"io.containerd.image.name":"docker.io/library/busybox:1.35","org.opencontainers.image.ref.name":"1.35"}},
            {"annotations":{"org.opencontainers.image.ref.name":"localhost/own:1"}},
            {"annotations":{"org.opencontainers.image.ref.name":"latest"}},
            {}]}"#;
        let docker = r#"[{"Config":"c","RepoTags":["redis:7","ghcr.io/a/b:2"],"Layers":[]},{"RepoTags":null}]"#;
        for (entries, expected) in [
            (vec![("blobs/x", "not read"), ("index.json", index)], "docker.io/library/busybox:1.35 localhost/own:1"),
            (vec![("./manifest.json", docker), ("later", "")], "docker.io/library/redis:7 ghcr.io/a/b:2"),
            (vec![("nothing", "")], ""),
        ] {
            let names = read_names(archive(&entries)).expect("names");
            assert_eq!(names.into_iter().collect::<Vec<_>>().join(" "), expected);
        }
        assert!(read_names(archive(&[("index.json", "{")])).is_err());
    }

    #[test]
    fn names_are_written_in_full() {
        for (short, full) in [
            ("busybox", "docker.io/library/busybox:latest"),
            ("busybox:1", "docker.io/library/busybox:1"),
            ("me/app:1", "docker.io/me/app:1"),
            ("localhost/own", "localhost/own:latest"),
            ("localhost:5000/own:1", "localhost:5000/own:1"),
            ("ghcr.io/a@sha256:00", "ghcr.io/a@sha256:00"),
        ] {
            assert_eq!(full_name(short), full);
        }
    }
}
