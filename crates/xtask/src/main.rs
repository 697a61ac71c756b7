//! The project's own tasks: `cargo xtask <task>`.

#![expect(clippy::print_stdout, reason = "a command line prints")]

mod codegen;
mod crash;
mod debian;
mod dist;
mod docs;
mod e2e;
mod etcd;
mod faults;
mod fuzz;
mod histories;
mod kms_plugin;
mod machine;
mod machines;
mod namespaces;
mod powercut;
mod sample_apiserver;
mod sample_csi_driver;
mod sample_device_driver;
mod sample_device_plugin;
mod sim;
mod test;
mod tidy;
mod upstream;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "xtask", about = "Tasks of the Corten project", arg_required_else_help = true)]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Write the type table of crates/schema
    Codegen,
    /// Run every test, several programs of tests at a time
    Test(test::Args),
    /// Check the rules of the house that no compiler checks
    Tidy,
    /// Write the reference pages of docs/reference
    Docs,
    /// Measure a running control plane, beside Kubernetes
    Bench(corten_bench::Args),
    /// Build the program that is shipped, by what it does under load
    Dist(dist::Args),
    /// Play a whole cluster in one thread, with faults from a seed
    Sim(sim::Args),
    /// Kill the server amid its work, and look for what it lost
    Crash(crash::Args),
    /// Play faults of machines on three servers and the members of their etcd, and look for answers that no single server could give
    Histories(histories::Args),
    /// Pull the plug of a machine amid its work, and look for what it lost
    Powercut(powercut::Args),
    /// Look for inputs that break what reads them
    Fuzz(fuzz::Args),
    /// Play the scripts of e2e/ against the real program
    E2e(e2e::Args),
    /// Fetch the etcd that Debian packages, and hold the store's contract against it
    Etcd(etcd::Args),
    /// Build Kubernetes's own API server, scheduler and controller manager from Debian's source, for the scripts that play them
    Upstream,
    /// Play the scripts of e2e/machine/ on whole machines, which can be rebooted and cut off
    Machines(machines::Args),
    /// Serve Flunders as an API server of its own, behind an APIService
    SampleApiserver(sample_apiserver::Args),
    /// A KMS plugin for scripts, which fails as it is told to
    KmsPlugin(kms_plugin::Args),
    /// A CSI driver for scripts, which fails as it is told to
    SampleCsiDriver(sample_csi_driver::Args),
    /// Offers devices to containers, which files tell it of: for scripts
    SampleDevicePlugin(sample_device_plugin::Args),
    /// Prepares claims for devices (dynamic resource allocation): for scripts
    SampleDeviceDriver(sample_device_driver::Args),
    /// Whole machines to try things on: make, start, run, cut, boot, rm
    Guest(machine::ByHand),
}

fn main() -> Result<()> {
    match Args::parse().task {
        Task::Codegen => codegen::run(),
        Task::Test(args) => test::run(&args),
        Task::Tidy => tidy::run(),
        Task::Docs => docs::run(false),
        Task::Bench(args) => corten_bench::run(&args),
        Task::Dist(args) => dist::run(&args),
        Task::Sim(args) => sim::run(&args),
        Task::Crash(args) => crash::run(&args),
        Task::Histories(args) => histories::run(&args),
        Task::Powercut(args) => powercut::run(&args),
        Task::Fuzz(args) => fuzz::run(&args),
        Task::E2e(args) => e2e::run(&args),
        Task::Etcd(args) => etcd::run(&args),
        Task::Upstream => upstream::run(),
        Task::Machines(args) => machines::run(&args),
        Task::SampleApiserver(args) => sample_apiserver::run(&args),
        Task::KmsPlugin(args) => kms_plugin::run(&args),
        Task::SampleCsiDriver(args) => sample_csi_driver::run(args),
        Task::SampleDeviceDriver(args) => sample_device_driver::run(&args),
        Task::SampleDevicePlugin(args) => sample_device_plugin::run(&args),
        Task::Guest(args) => machine::by_hand(&args),
    }
}
