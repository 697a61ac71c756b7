//! Keeps a container's log from filling the disk: `0.log` is moved to `0.log.20261120-105729`, older ones are compressed.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};

use crate::cri::{ContainerFilter, ContainerState, ContainerStateValue, Cri, CriError};

/// When a log is moved away, and how many files of one container there are at most, the current one included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RotateLimits {
    pub bytes_max: u64,
    pub files_max: usize,
}

impl Default for RotateLimits {
    /// The kubelet's `containerLogMaxSize` and `containerLogMaxFiles`.
    fn default() -> Self {
        Self { bytes_max: 10 << 20, files_max: 5 }
    }
}

/// Moves away the log of every running container that has grown too large.
pub(crate) async fn rotate_all(cri: &Cri, limits: RotateLimits) -> Result<(), CriError> {
    let state = Some(ContainerStateValue { state: ContainerState::Running.into() });
    for container in cri.list_containers(Some(ContainerFilter { state, ..Default::default() })).await? {
        let path = PathBuf::from(cri.container_status(&container.id).await?.log_path);
        match rotate(&path, limits).await {
            Ok(Some(moved)) => {
                if let Err(error) = cri.reopen_container_log(&container.id).await {
                    // It goes on writing to the file it has open: that one must keep its name.
                    tracing::warn!(%error, "cannot rotate {}", path.display());
                    let _ = tokio::fs::rename(&moved, &path).await;
                }
            }
            Ok(None) => {}
            // It may have been removed since it was listed.
            Err(error) => tracing::debug!(%error, "cannot rotate {}", path.display()),
        }
    }
    Ok(())
}

/// Moves a log away that has grown too large; where to. The runtime must then be told to open it anew.
pub async fn rotate(path: &Path, limits: RotateLimits) -> io::Result<Option<PathBuf>> {
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || rotate_blocking(&path, limits)).await.map_err(io::Error::other)?
}

fn rotate_blocking(path: &Path, limits: RotateLimits) -> io::Result<Option<PathBuf>> {
    if fs::metadata(path)?.len() < limits.bytes_max {
        return Ok(None);
    }
    let mut old = rotated(path)?;
    // The current one and the one it becomes count too.
    let surplus = old.len().saturating_sub(limits.files_max.saturating_sub(2));
    for file in old.drain(..surplus) {
        fs::remove_file(file)?;
    }
    for file in old.iter().filter(|it| it.extension().is_none_or(|it| it != "gz")) {
        compress(file)?;
    }
    let stamp = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
    let moved = with_suffix(path, &format!(".{stamp}"));
    fs::rename(path, &moved)?;
    Ok(Some(moved))
}

/// The files this log was moved to before, oldest first.
fn rotated(path: &Path) -> io::Result<Vec<PathBuf>> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(Vec::new()) };
    let prefix = format!("{}.", name.to_string_lossy());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".tmp") {
            // A compression that was cut short.
            let _ = fs::remove_file(entry.path());
        } else if name.starts_with(&prefix) {
            found.push(entry.path());
        }
    }
    // Their stamps sort as they were made.
    found.sort();
    Ok(found)
}

fn compress(path: &Path) -> io::Result<()> {
    let unfinished = with_suffix(path, ".tmp");
    let mut encoder = GzEncoder::new(File::create(&unfinished)?, Compression::default());
    io::copy(&mut File::open(path)?, &mut encoder)?;
    encoder.finish()?.sync_all()?;
    fs::rename(&unfinished, with_suffix(path, ".gz"))?;
    fs::remove_file(path)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
