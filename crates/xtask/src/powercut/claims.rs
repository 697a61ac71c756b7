//! What a claim holds over cuts: every record that was said to be written, in a volume of its size, which is mounted once. And that there
//! are as many volumes as claims, of the size that each asks for.
//!
//! The Pod's output leaves the machine while it runs (`e2e/machine/claims.yaml`), so what it said is known after a cut.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader},
    process::{Child, ChildStdout, Stdio},
    thread::JoinHandle,
};

use anyhow::{Context, Result, bail};

use super::cluster::{Cluster, within};

const FOLLOW: &str = "exec kubectl logs --follow --tail=1 records-0";
const READ: &str = "kubectl logs records-0";
/// The volumes' files that are disks, as the kernel has them: each once, and none of a volume that is gone.
const ATTACHED: &str = "cat /sys/block/loop*/loop/backing_file 2>/dev/null | grep '^/var/lib/corten/volumes/' || true";
const VOLUME_OF_RECORDS: &str = "kubectl get pvc data-records-0 -o jsonpath={.spec.volumeName}";
/// What a real machine may take until no claim is bound, grown or removed any more.
const SETTLED_SECONDS: f64 = 30.0;
/// Says what is wrong, if anything, once nothing is under way any more: volumes, their folders and claims are the same, and as large
/// as is asked for. A claim whose Pod was not made before the cut has no volume.
const SETTLED: &str = r#"of() { kubectl get "$1" -o jsonpath="{range .items[*]}$2{'\n'}{end}" | sort; }
for _ in $(seq SECONDS); do
  volumes=$(of pv '{.spec.csi.volumeHandle}') claims=$(of pvc '{.spec.volumeName}' | grep .)
  folders=$(ls /var/lib/corten/volumes | grep pvc- | sort)
  growing=$(of pvc '{.metadata.name} {.spec.resources.requests.storage} {.status.capacity.storage} {.status.phase}' | awk '$3 != "Pending" && $2 != $3')
  [ "$volumes" = "$claims" ] && [ "$volumes" = "$folders" ] && [ -z "$growing" ] && exit
  sleep 1
done
echo "volumes:" $volumes "of claims:" $claims "folders:" $folders "not as asked for:" $growing"#;

/// What was said of the claim of one machine.
#[derive(Debug, Default)]
pub(super) struct Claim {
    n_written: u64,
    /// Of which the last was heard of before the last cut.
    n_heard: u64,
    kib: Option<u64>,
}

/// Listens to the Pod until the plug is pulled.
pub(super) struct Listener {
    child: Child,
    hearing: JoinHandle<u64>,
}

impl Listener {
    pub(super) fn begin(cluster: &Cluster) -> Result<Self> {
        let mut command = cluster.machine.command(&within(FOLLOW)?);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("listening to what a Pod writes")?;
        let stdout = child.stdout.take().context("its output is a pipe")?;
        Ok(Self { child, hearing: std::thread::spawn(move || last_written(stdout)) })
    }

    /// Of a machine that is off.
    pub(super) fn end(mut self, claim: &mut Claim) -> Result<()> {
        self.child.wait()?;
        let n_written = self.hearing.join().map_err(|_| anyhow::anyhow!("the listener has panicked"))?;
        claim.n_heard = n_written;
        claim.n_written = claim.n_written.max(n_written);
        Ok(())
    }
}

fn last_written(output: ChildStdout) -> u64 {
    let lines = BufReader::new(output).lines().map_while(Result::ok);
    lines.filter_map(|it| it.strip_prefix("wrote ")?.parse().ok()).last().unwrap_or_default()
}

impl Claim {
    /// For whoever looks on.
    pub(super) fn told(&self) -> String {
        format!("{} records, {} of them heard of before", self.n_written, self.n_heard)
    }

    /// What the Pod found at its start, after a cut.
    pub(super) fn check(&mut self, cluster: &Cluster) -> Result<()> {
        let said = cluster.output(READ).context("what the Pod with a claim found")?;
        self.check_said(&said)?;
        let seconds = format!("{:.0}", SETTLED_SECONDS * cluster.patience);
        let wrong = cluster.output(&SETTLED.replace("SECONDS", &seconds))?;
        if !wrong.trim().is_empty() {
            bail!("{wrong}");
        }
        check_attached(&cluster.output(ATTACHED)?, &cluster.output(VOLUME_OF_RECORDS)?)
    }

    fn check_said(&mut self, said: &str) -> Result<()> {
        if let Some(broken) = said.lines().find(|it| it.starts_with("broken")) {
            bail!("{broken}");
        }
        let found =
            said.lines().find_map(|it| it.strip_prefix("found ")).context("the Pod says nothing of its claim")?;
        let (n_found, rest) = found.split_once(" of ").context("what was found has a size")?;
        let (kib, held) = rest.split_once(" KiB, which are ").context("what was found has a size")?;
        let (n_found, kib): (u64, u64) = (n_found.parse()?, kib.parse()?);
        if n_found < self.n_written {
            bail!("{} records were written, and {n_found} are there", self.n_written);
        }
        if held != "held" || *self.kib.get_or_insert(kib) != kib {
            bail!("the volume's size was {:?} KiB, and is {kib} KiB, which are {held}", self.kib);
        }
        // Those that nobody outside heard of are there, too, from now on.
        self.n_written = n_found;
        Ok(())
    }
}

fn check_attached(attached: &str, records: &str) -> Result<()> {
    let mut once = BTreeSet::new();
    if let Some(twice) = attached.lines().find(|it| !once.insert(*it)) {
        bail!("{twice} is two disks: {attached}");
    }
    if let Some(left) = attached.lines().find(|it| it.ends_with("(deleted)")) {
        bail!("{left} is a disk still");
    }
    if !attached.lines().any(|it| it.contains(records)) {
        bail!("the Pod is Ready, and its volume {records} is no disk: {attached}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_volume_is_one_disk_and_none_is_left_over() {
        let of = |it: &str| format!("/var/lib/corten/volumes/{it}/disk.img");
        let said = |files: &[String]| check_attached(&files.join("\n"), "pvc-1").map_err(|it| it.to_string());
        assert_eq!(said(&[of("pvc-1"), of("pvc-2")]), Ok(()));
        assert!(said(&[of("pvc-1"), of("pvc-1")]).is_err_and(|it| it.contains("two disks")));
        assert!(said(&[of("pvc-1"), of("pvc-2") + " (deleted)"]).is_err_and(|it| it.contains("a disk still")));
        assert!(said(&[of("pvc-2")]).is_err_and(|it| it.contains("is no disk")));
    }

    #[test]
    fn a_record_that_was_written_is_there_in_a_volume_of_its_size() {
        let mut claim = Claim { n_written: 12, ..Claim::default() };
        let mut said = |text: &str| claim.check_said(text).map_err(|it| it.to_string());
        assert_eq!(said("found 13 of 27632 KiB, which are held\nwrote 14\n"), Ok(()), "one that nobody heard of");
        let lost = said("found 12 of 27632 KiB, which are held\n").expect_err("one is lost");
        assert_eq!(lost, "13 records were written, and 12 are there");
        let grown = said("found 13 of 60000 KiB, which are held\n").expect_err("another size");
        assert!(grown.contains("27632") && grown.contains("60000"), "{grown}");
        assert!(said("found 13 of 27632 KiB, which are not held\n").is_err());
        assert_eq!(
            said("broken: 3 records are whole, and 70000 bytes are there\nfound 13 of 27632 KiB, which are held"),
            Err("broken: 3 records are whole, and 70000 bytes are there".to_owned())
        );
        assert!(said("").is_err(), "nothing was looked at");
    }
}
