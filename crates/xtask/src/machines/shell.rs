//! The commands of a script: most run in a machine, some are done to it.

use std::{path::PathBuf, time::Instant};

use anyhow::{Context, Result, bail};
use corten_testbed::root;
use serde_json::Value;

use super::{Args, payload::Payload};
use crate::{
    e2e::Shell,
    machine::{Boot, Guest, GuestSpec, Suite, not_ready, slowness},
};

/// The machines of a script, by their numbers. One is made when a command first names it.
pub(super) struct Machines<'a> {
    args: &'a Args,
    suite: Suite,
    base: PathBuf,
    payload: &'a Payload,
    machines: Vec<Guest>,
    slowness: f64,
}

impl<'a> Machines<'a> {
    pub(super) fn new(args: &'a Args, suite: Suite, base: PathBuf, payload: &'a Payload) -> Self {
        Self { args, suite, base, payload, machines: Vec::new(), slowness: 1.0 }
    }

    pub(super) fn remove(self) -> Result<()> {
        self.machines.into_iter().try_for_each(Guest::remove)
    }

    pub(super) fn say_what_is_kept(&self) {
        for guest in &self.machines {
            let name = guest.name();
            println!(
                "kept: {name}. `cargo xtask guest run {name} COMMAND`, and in the end `cargo xtask guest rm {name}`"
            );
        }
    }

    /// The machine with a number, the first being 1.
    pub(super) fn machine(&mut self, number: usize) -> Result<&mut Guest> {
        while self.machines.len() < number {
            self.add()?;
        }
        number.checked_sub(1).and_then(|it| self.machines.get_mut(it)).context("machines are counted from 1")
    }

    fn add(&mut self) -> Result<()> {
        let number = self.machines.len() + 1;
        let of_run = self.args.on.clone().unwrap_or_else(|| format!("{}-{}", self.suite, std::process::id()));
        let name = format!("{of_run}-{number}");
        if self.args.on.is_some()
            && let Ok(guest) = Guest::open(&name)
        {
            return self.go_on(guest);
        }
        let wanted = GuestSpec {
            name: &name,
            host_name: &format!("machine-{number}"),
            base: &self.base,
            arch: self.args.arch,
            memory_mib: self.args.memory,
            payload: Some(&self.payload.path()),
            ports: &[],
            is_kept: self.args.keep || self.args.on.is_some(),
        };
        let mut guest = Guest::make(&wanted)?;
        let begin = Instant::now();
        guest.boot(&Boot::default())?;
        self.slowness = slowness(&guest)?;
        println!(
            "       {} with Debian {} {}: reached after {:.1} s, {:.1} times slower than this machine",
            guest.host_name(),
            self.suite,
            self.args.arch,
            begin.elapsed().as_secs_f64(),
            self.slowness
        );
        self.machines.push(guest);
        Ok(())
    }

    /// With one that an earlier run kept: the program is that run's, the scripts are those of today.
    fn go_on(&mut self, mut guest: Guest) -> Result<()> {
        if !guest.is_on() {
            guest.boot(&Boot::default())?;
        }
        let root = root()?;
        guest.put(&[root.join("e2e/machine")], &root.join("e2e").display().to_string())?;
        self.slowness = slowness(&guest)?;
        println!("       {} as it was kept, {:.1} times slower than this machine", guest.host_name(), self.slowness);
        self.machines.push(guest);
        Ok(())
    }

    /// What is done to a machine, in the words of `e2e/machine/README.md`.
    fn act(&mut self, number: usize, verb: &str) -> Result<(i32, String)> {
        let (verb, rest) = verb.split_once(' ').unwrap_or((verb, ""));
        let guest = self.machine(number)?;
        match verb {
            "cut" => guest.cut()?,
            "boot" => {
                let (clock, words): (Vec<&str>, Vec<&str>) = rest.split(' ').partition(|it| it.starts_with("clock="));
                let clock = clock.first().and_then(|it| it.strip_prefix("clock=")).map(str::to_owned);
                guest.boot(&Boot { clock, kernel_words: Some(words.join(" ")) })?;
                self.measure(number)?;
            }
            "reboot" => {
                guest.reboot()?;
                self.measure(number)?;
            }
            "ready" => return self.ready(number),
            _ => bail!("{verb:?} is none of: cut, boot, reboot, ready"),
        }
        Ok((0, String::new()))
    }

    /// The machine it runs on may be busier than before.
    fn measure(&mut self, number: usize) -> Result<()> {
        self.slowness = slowness(self.machine(number)?)?;
        Ok(())
    }

    /// Is there a Pod, and every one Ready? Says how long that took since the machine was switched on.
    fn ready(&mut self, number: usize) -> Result<(i32, String)> {
        let slowness = self.slowness;
        let guest = self.machine(number)?;
        let asked = guest.run(&in_project("kubectl get pods -A -o json --request-timeout 10s")?)?;
        let Ok(list) = serde_json::from_slice::<Value>(&asked.stdout) else {
            return Ok((1, String::from_utf8_lossy(&asked.stderr).into_owned()));
        };
        let pods = list["items"].as_array().context("a list of Pods has items")?;
        let booted = guest.booted()?;
        let waiting: Vec<&str> = pods.iter().filter_map(|it| not_ready(it, &booted)).collect();
        if pods.is_empty() || !waiting.is_empty() {
            return Ok((1, format!("{} Pods, not Ready: {}\n", pods.len(), waiting.join(", "))));
        }
        let Some(since) = guest.powered_on() else { return Ok((0, format!("all {} Pods Ready", pods.len()))) };
        let took = since.elapsed().as_secs_f64();
        let said = format!("all {} Pods Ready {took:.1} s after power-on", pods.len());
        println!("       {said}; that is {:.1} s of a machine without emulation", took / slowness);
        Ok((0, said))
    }
}

/// In the project's folder, with the cluster's kubeconfig, as a person would who sits there.
fn in_project(command: &str) -> Result<String> {
    let root = root()?;
    Ok(format!(
        "cd '{}' && export HOME=/root PATH=/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin \
         KUBECONFIG=/var/lib/corten/admin.kubeconfig\n{command}",
        root.display()
    ))
}

impl Shell for Machines<'_> {
    fn run(&mut self, command: &str) -> Result<(i32, String)> {
        let (number, command) = addressed(command);
        if let Some(verb) = command.strip_prefix('@') {
            return self.act(number, verb);
        }
        let output = self.machine(number)?.run(&in_project(command)?)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        Ok((output.status.code().unwrap_or(-1), text))
    }

    fn show_state(&self) {
        let look = "exec 2>&1; kubectl get nodes,pods -A -o wide --request-timeout 20s; corten why -A; systemctl --failed --no-legend; \
                    tail -n 40 /var/lib/corten/log/corten.log; df -h /; free -m; cat /proc/loadavg";
        for guest in self.machines.iter().filter(|it| it.is_on()) {
            let seen = in_project(look).and_then(|it| guest.run(&it)).map(|it| it.stdout).unwrap_or_default();
            for line in String::from_utf8_lossy(&seen).lines() {
                println!("  {}: {line}", guest.host_name());
            }
            for line in guest.console(10).lines() {
                println!("  {} console: {line}", guest.host_name());
            }
        }
    }

    fn slowness(&self) -> f64 {
        self.slowness
    }
}

/// `@2 COMMAND` is for machine 2, and `@VERB` is done to a machine.
fn addressed(command: &str) -> (usize, &str) {
    let other = command.strip_prefix('@').and_then(|it| it.split_once(' '));
    match other.and_then(|(number, rest)| Some((number.parse().ok()?, rest))) {
        Some(addressed) => addressed,
        None => (1, command),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_addressed() {
        assert_eq!(addressed("corten up"), (1, "corten up"));
        assert_eq!(addressed("@2 corten up"), (2, "corten up"));
        assert_eq!(addressed("@cut"), (1, "@cut"));
        assert_eq!(addressed("@2 @boot clock=2020-01-01T00:00:00"), (2, "@boot clock=2020-01-01T00:00:00"));
    }
}
