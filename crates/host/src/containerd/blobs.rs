//! What containerd has fetched of images, each file under the digest of its content: one that has another content would be
//! taken for the image for ever, since what is there is not fetched again.

use std::{
    fs, io,
    io::Read,
    path::{Path, PathBuf},
};

use aws_lc_rs::digest;

/// As large as a manifest or a configuration may be; anything larger is a layer.
pub(super) const SMALL: u64 = 1 << 20;
pub(super) const ANY: u64 = u64::MAX;
const CHUNK: usize = 1 << 16;

/// Removes the files of at most that size whose content is not what they are named for, and tells them.
pub(super) fn remove_damaged(containerd_root: &Path, bytes_max: u64) -> Vec<PathBuf> {
    let folder = containerd_root.join("io.containerd.content.v1.content/blobs/sha256");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter(|it| it.metadata().is_ok_and(|it| it.is_file() && it.len() <= bytes_max));
    let damaged = files.map(|it| it.path()).filter(|it| is_damaged(it));
    damaged.filter(|it| fs::remove_file(it).inspect(|()| tell(it)).is_ok()).collect()
}

fn tell(file: &Path) {
    tracing::warn!(file = %file.display(), "a part of an image is damaged: it is removed, and fetched again when it is needed");
}

/// One that cannot be read is none of ours to judge.
fn is_damaged(file: &Path) -> bool {
    let name = file.file_name().and_then(|it| it.to_str()).unwrap_or_default();
    sha256(file).is_ok_and(|it| it != name)
}

fn sha256(file: &Path) -> io::Result<String> {
    let mut file = fs::File::open(file)?;
    let mut context = digest::Context::new(&digest::SHA256);
    let mut chunk = vec![0; CHUNK];
    loop {
        let n = file.read(&mut chunk)?;
        if n == 0 {
            break;
        }
        context.update(&chunk[..n]);
    }
    Ok(context.finish().as_ref().iter().map(|it| format!("{it:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_its_name_is_removed() {
        const OF_HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        let dir = tempfile::tempdir().expect("a temporary folder");
        let folder = dir.path().join("io.containerd.content.v1.content/blobs/sha256");
        assert_eq!(remove_damaged(dir.path(), ANY), Vec::<PathBuf>::new(), "nothing there yet");
        fs::create_dir_all(&folder).expect("a folder");
        let (whole, torn, large) = (folder.join(OF_HELLO), folder.join("ab"), folder.join("cd"));
        fs::write(&whole, "hello").expect("written");
        fs::write(&torn, "hel").expect("written");
        fs::write(&large, "a layer").expect("written");
        let removed = remove_damaged(dir.path(), 5);
        assert_eq!(removed, std::slice::from_ref(&torn));
        assert!(whole.exists() && !torn.exists() && large.exists());
        assert_eq!(remove_damaged(dir.path(), ANY), [large]);
    }
}
