//! Writes a folder of files so that a reader sees all old ones or all new ones.
//!
//! ```text
//! key          -> ..data/key
//! ..data       -> ..2026_11_20_10_57_29.123456789     replaced by one rename
//! ..2026_…/key
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown, symlink},
    path::{Component, Path, PathBuf},
    time::Duration,
};

use corten_kubelet::VolumeFile;
use corten_machine::tree::{self, Entry, Visitor, WalkBudget};
use rustix::fs::FileType;

const DATA: &str = "..data";
const NEW_DATA: &str = "..data_tmp";
const PATH_STEPS_MAX: u64 = 2048;

/// Makes the folder hold exactly `files`. Writes nothing where it does already.
pub(super) fn write(folder: &Path, files: &[VolumeFile]) -> io::Result<()> {
    let mut wanted = BTreeMap::new();
    for file in files {
        wanted.insert(checked(&file.path)?, file);
    }
    // Only a name beside it: a link that leads elsewhere was not made here.
    let old = fs::read_link(folder.join(DATA)).ok().filter(|it| it.components().count() == 1 && !it.is_absolute());
    if let Some(old) = &old
        && holds(&folder.join(old), &wanted)
    {
        return link_names(folder, &wanted);
    }
    let new = write_generation(folder, &wanted)?;
    let _ = fs::remove_file(folder.join(NEW_DATA));
    symlink(&new, folder.join(NEW_DATA))?;
    fs::rename(folder.join(NEW_DATA), folder.join(DATA))?;
    link_names(folder, &wanted)?;
    remove_generations_but(folder, &new)
}

fn checked(path: &str) -> io::Result<PathBuf> {
    let refused = || io::Error::new(io::ErrorKind::InvalidInput, format!("{path:?} is not a path beneath the volume"));
    let is_normal = Path::new(path).components().all(|it| matches!(it, Component::Normal(_)));
    if path.is_empty() || path.starts_with("..") || !is_normal {
        return Err(refused());
    }
    Ok(Path::new(path).components().collect())
}

/// Does this generation have the wanted content, and nothing else?
fn holds(generation: &Path, wanted: &BTreeMap<PathBuf, &VolumeFile>) -> bool {
    let same = |path: &PathBuf, file: &VolumeFile| {
        let path = generation.join(path);
        let mode = fs::metadata(&path).map(|it| it.permissions().mode() & 0o777);
        let owner = fs::metadata(&path).map(|it| it.uid());
        owner.is_ok_and(|it| it == file.user.unwrap_or(0))
            && mode.is_ok_and(|it| it == file.mode & 0o777)
            && fs::read(&path).is_ok_and(|it| *it == *file.content)
    };
    count_files(generation, wanted.len()).is_ok_and(|it| it == wanted.len())
        && wanted.iter().all(|(path, file)| same(path, file))
}

fn count_files(folder: &Path, most: usize) -> io::Result<usize> {
    struct Files(usize);
    impl Visitor for Files {
        fn meets(&mut self, entry: &Entry<'_>) -> io::Result<bool> {
            let is_folder = entry.kind == FileType::Directory;
            self.0 += usize::from(!is_folder);
            Ok(is_folder)
        }
    }
    let mut files = Files(0);
    // Folders are met, too: each is there for a file, and no path has more steps than this.
    let most = u64::try_from(most).unwrap_or(u64::MAX).saturating_mul(PATH_STEPS_MAX).saturating_add(1);
    tree::walk(tree::open_folder(folder)?, &mut WalkBudget::new(Duration::from_secs(10), most), &mut files)?;
    Ok(files.0)
}

/// Writes the files to a folder that nobody sees yet; its name.
fn write_generation(folder: &Path, wanted: &BTreeMap<PathBuf, &VolumeFile>) -> io::Result<PathBuf> {
    let stamp = jiff::Timestamp::now().strftime("..%Y_%m_%d_%H_%M_%S.%9f").to_string();
    let generation = folder.join(&stamp);
    fs::create_dir(&generation)?;
    fs::set_permissions(&generation, fs::Permissions::from_mode(0o755))?;
    for (path, file) in wanted {
        let path = generation.join(path);
        let parent = path.parent().unwrap_or(&generation);
        fs::create_dir_all(parent)?;
        let mut options = fs::OpenOptions::new();
        io::Write::write_all(&mut options.write(true).create_new(true).mode(0o600).open(&path)?, &file.content)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(file.mode & 0o777))?;
        if file.user.is_some() {
            chown(&path, file.user, None)?;
        }
    }
    Ok(PathBuf::from(stamp))
}

/// The names users see: a link for the first step of each path. Links of names that are gone go.
fn link_names(folder: &Path, wanted: &BTreeMap<PathBuf, &VolumeFile>) -> io::Result<()> {
    let names: BTreeSet<&std::ffi::OsStr> = wanted.keys().filter_map(|it| it.iter().next()).collect();
    for name in &names {
        match symlink(Path::new(DATA).join(name), folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_ours = entry.file_type()?.is_symlink() && name != DATA && !name.to_string_lossy().starts_with("..");
        if is_ours && !names.contains(name.as_os_str()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// What a crash may have left half written goes too.
fn remove_generations_but(folder: &Path, newest: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type()?.is_dir() && name.to_string_lossy().starts_with("..") && name != newest.as_os_str() {
            tree::remove(&entry.path())?;
        }
    }
    Ok(())
}
