//! `cargo xtask sim`: plays one seed again, as its failure said, or looks for seeds that fail.

use anyhow::{Context, Result, bail};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The seed, decimal or 0x hexadecimal
    seed: String,
    /// Play so many seeds, from this one on
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// With so many control planes [default: three of an odd seed, one of an even one]
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=5))]
    planes: Option<u8>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let first = match args.seed.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => args.seed.parse(),
    };
    let first = first.with_context(|| format!("{:?} is no seed", args.seed))?;
    let mut failed = 0;
    for seed in first..first.saturating_add(args.seeds) {
        let played = match args.planes {
            Some(planes) => corten_sim::run_of(seed, planes.into()),
            None => corten_sim::run(seed),
        };
        match played {
            Ok(report) => println!("{report}"),
            Err(failure) => {
                failed += 1;
                println!("{failure}");
            }
        }
    }
    if failed > 0 {
        bail!("{failed} of {} seeds failed", args.seeds);
    }
    Ok(())
}
