//! What is fetched from Debian's mirror without being installed.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result, bail};

const MIRROR: &str = "http://deb.debian.org/debian";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// `apt-get` with lists and a cache of its own: nothing of the machine's changes.
pub(crate) struct Apt {
    /// Where it puts what it fetches.
    pub(crate) folder: PathBuf,
}

impl Apt {
    /// Knows what the release has: programs with `deb`, sources with `deb-src`.
    pub(crate) fn new(folder: PathBuf, what: &str, release: &str) -> Result<Self> {
        for part in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(folder.join(part)).with_context(|| format!("making {}", folder.display()))?;
        }
        fs::write(folder.join("sources.list"), format!("{what} [signed-by={KEYRING}] {MIRROR} {release} main\n"))
            .context("naming Debian's mirror")?;
        let apt = Self { folder };
        apt.run(&["update"])?;
        Ok(apt)
    }

    pub(crate) fn run(&self, words: &[&str]) -> Result<()> {
        let at = |name: &str| self.folder.join(name).display().to_string();
        let settings = [
            ("Dir::Etc::sourcelist", at("sources.list")),
            ("Dir::Etc::sourceparts", "/dev/null".into()),
            ("Dir::State::lists", at("lists")),
            ("Dir::State::status", "/dev/null".into()),
            ("Dir::Cache", at("cache")),
            ("Acquire::Languages", "none".into()),
            ("APT::Sandbox::User", "root".into()),
        ];
        let mut command = Command::new("apt-get");
        command.arg("-qq").current_dir(&self.folder);
        for (name, value) in settings {
            command.args(["-o", &format!("{name}={value}")]);
        }
        let status = command.args(words).status().context("running apt-get")?;
        if !status.success() {
            bail!("apt-get {} failed", words.join(" "));
        }
        Ok(())
    }
}
