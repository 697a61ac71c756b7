//! A registry for everybody, outside of the machine: no cut reaches it.

use std::{
    fs::{self, File},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use corten_testbed::root;
use parking_lot::Mutex;

use crate::{e2e::images_cache, namespaces::run};

const PORT: u16 = 5000;
const DEADLINE: Duration = Duration::from_secs(20);
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

pub(super) struct Registry {
    process: Child,
    n_images: Mutex<usize>,
}

impl Registry {
    /// It ends with the thread that starts it, if not before.
    pub(super) fn start(folder: &Path) -> Result<Self> {
        let settings = folder.join("registry.yml");
        let text = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: \":{PORT}\"}}\n",
            folder.join("registry").display()
        );
        fs::write(&settings, text)?;
        let log = File::create(folder.join("registry.log"))?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "docker-registry", "serve"]).arg(settings);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let process = command.spawn().context("starting docker-registry")?;
        let registry = Self { process, n_images: Mutex::new(0) };
        let end = Instant::now() + DEADLINE;
        while TcpStream::connect(("127.0.0.1", PORT)).is_err() {
            if Instant::now() >= end {
                bail!("docker-registry does not answer");
            }
            std::thread::park_timeout(BETWEEN_LOOKS);
        }
        Ok(registry)
    }

    /// So many images that are different, once for all machines.
    pub(super) fn fill(&self, n_images: usize) -> Result<()> {
        let mut there = self.n_images.lock();
        if *there < n_images {
            let script = root()?.join("e2e/machine/fill-registry");
            let archive = images_cache().join("demo.tar");
            let text = |it: &Path| it.to_str().map(str::to_owned).context("a path is text");
            run(&text(&script)?, &[&text(&archive)?, &n_images.to_string()])?;
            *there = n_images;
        }
        Ok(())
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
