//! A whole node with containers: started for a measurement, held still while the runtime alone is measured, taken away.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{
    connection::{Connection, ServerAddress},
    port::free_port,
};

const PATIENCE: Duration = Duration::from_secs(90);

pub struct RealNode {
    program: PathBuf,
    child: Child,
    /// On the disk that durable writes shall be measured on.
    data: TempDir,
    /// Where a machine keeps what ends with its run: in memory.
    run: TempDir,
    target: ServerAddress,
}

impl RealNode {
    /// Answers when the node is Ready. `images` are archives that the node shall have, `disk` a folder on the disk that it is
    /// measured on.
    pub async fn start_in(disk: &Path, program: &Path, images: &[PathBuf]) -> Result<Self> {
        let data = tempfile::Builder::new().prefix("corten-").tempdir_in(disk)?;
        let run = tempfile::Builder::new().prefix("corten-").tempdir_in("/run")?;
        let folder = data.path().join("images");
        fs::create_dir_all(&folder)?;
        for image in images {
            let name = image.file_name().context("an archive has a name")?;
            fs::copy(image, folder.join(name)).with_context(|| format!("taking {}", image.display()))?;
        }
        let [port, kubelet_port] = [free_port()?, free_port()?];
        // Where Corten has its logs: anything else in the folder would make it somebody else's.
        fs::create_dir_all(data.path().join("log"))?;
        let log = data.path().join("log/started.log");
        let child = Command::new(program)
            .arg("node")
            .args(flags(data.path(), run.path()))
            .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--kubelet-port", &kubelet_port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let kubeconfig = data.path().join("admin.kubeconfig");
        let program = program.to_owned();
        let mut starting = Starting { program, child: Some(child), data: Some(data), run: Some(run) };
        let target = starting.wait(&kubeconfig, port, &log).await?;
        Ok(starting.done(target))
    }

    pub async fn connect(&self) -> Result<Connection> {
        Connection::open(&self.target).await
    }

    /// Where its containerd listens.
    pub fn runtime_socket(&self) -> PathBuf {
        self.run.path().join("containerd.sock")
    }

    /// Where what it keeps is.
    pub fn data(&self) -> &Path {
        self.data.path()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Corten stands still, its containers and their runtime do not.
    pub fn pause(&self) -> Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), Signal::STOP)?)
    }

    pub fn go_on(&self) -> Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), Signal::CONT)?)
    }
}

impl Drop for RealNode {
    fn drop(&mut self) {
        let _ = self.go_on();
        take_away(&self.program, &mut self.child, self.data.path(), self.run.path());
    }
}

/// A node that is not Ready yet: goes as it came where it never gets there.
struct Starting {
    program: PathBuf,
    child: Option<Child>,
    data: Option<TempDir>,
    run: Option<TempDir>,
}

impl Starting {
    async fn wait(&mut self, kubeconfig: &Path, port: u16, log: &Path) -> Result<ServerAddress> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = self.child.as_mut().map(Child::try_wait).transpose()?.flatten() {
                bail!("the node ended with {status}: {}", last_words(log));
            }
            if let Ok(target) = ServerAddress::from_kubeconfig(kubeconfig)
                && target.port() == port
                && is_ready(&target).await
            {
                return Ok(target);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bail!("the node was not Ready after {PATIENCE:?}: {}", last_words(log))
    }

    fn done(mut self, target: ServerAddress) -> RealNode {
        let all_there = "taken out here, once";
        RealNode {
            program: std::mem::take(&mut self.program),
            child: self.child.take().expect(all_there),
            data: self.data.take().expect(all_there),
            run: self.run.take().expect(all_there),
            target,
        }
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        if let (Some(child), Some(data), Some(run)) = (&mut self.child, &self.data, &self.run) {
            take_away(&self.program, child, data.path(), run.path());
        }
    }
}

fn take_away(program: &Path, child: &mut Child, data: &Path, run: &Path) {
    let _ = kill_process(Pid::from_child(child), Signal::TERM);
    let _ = child.wait();
    let mut reset = Command::new(program);
    reset.args(["reset", "--yes"]).args(flags(data, run)).stdout(Stdio::null()).stderr(Stdio::null());
    if !reset.status().is_ok_and(|it| it.success()) {
        eprintln!("`corten reset` did not take everything away; see {}", data.display());
    }
}

fn flags(data: &Path, run: &Path) -> [std::ffi::OsString; 4] {
    ["--data-dir".into(), data.into(), "--run-dir".into(), run.into()]
}

async fn is_ready(target: &ServerAddress) -> bool {
    let Ok(mut connection) = Connection::open(target).await else { return false };
    let Ok(nodes) = connection.get("/api/v1/nodes").await else { return false };
    let Ok(nodes) = serde_json::from_slice::<serde_json::Value>(&nodes) else { return false };
    let conditions = nodes["items"][0]["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|it| it["type"] == "Ready" && it["status"] == "True")
}

fn last_words(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = text.lines().rev().take(10).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}
