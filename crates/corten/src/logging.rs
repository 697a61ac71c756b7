//! What is logged and how: from the command line at the start, through the API while the process runs.

use std::{io::IsTerminal, sync::Arc};

use anyhow::{Context, Result};
use clap::ArgMatches;
use corten_apiserver::LogFilter;
use tracing_subscriber::{EnvFilter, Layer, Registry, filter::LevelFilter, fmt, layer::SubscriberExt, reload};

/// Begins to log to standard error; what it gives changes what is logged.
///
/// # Errors
/// `--log-level`, `CORTEN_LOG` or `--log-format` cannot be understood.
pub(crate) fn begin(matches: &ArgMatches) -> Result<Arc<dyn LogFilter>> {
    let (layer, log) = read(matches)?;
    // A second call (never in the program) would find the first one's subscriber: harmless.
    let _ = tracing::subscriber::set_global_default(Registry::default().with(layer));
    Ok(log)
}

/// Reads what [`begin`] does, and logs nothing.
///
/// # Errors
/// As of [`begin`].
pub(crate) fn check(matches: &ArgMatches) -> Result<Arc<dyn LogFilter>> {
    Ok(read(matches)?.1)
}

type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

fn read(matches: &ArgMatches) -> Result<(BoxedLayer, Arc<dyn LogFilter>)> {
    let level = matches.get_one::<String>("log-level").cloned();
    let filter = match level {
        Some(told) => filter_of(&told).map_err(anyhow::Error::msg).context("reading --log-level")?,
        None => match std::env::var("CORTEN_LOG").ok().filter(|it| !it.is_empty()) {
            Some(told) => filter_of(&told).map_err(anyhow::Error::msg).context("reading CORTEN_LOG")?,
            None => EnvFilter::new(DEFAULT),
        },
    };
    let lines: BoxedLayer = match matches.get_one::<String>("log-format").map(|it| &**it) {
        Some("text") | None => {
            let colour = std::io::stderr().is_terminal();
            fmt::layer().with_writer(std::io::stderr).with_ansi(colour).boxed()
        }
        Some("json") => fmt::layer().json().flatten_event(true).with_writer(std::io::stderr).boxed(),
        Some(_) => anyhow::bail!("reading --log-format: must be text or json"),
    };
    let (filter, handle) = reload::Layer::new(filter);
    Ok((lines.with_filter(filter).boxed(), Arc::new(Reloaded(handle))))
}

const DEFAULT: &str = "info";

struct Reloaded(reload::Handle<EnvFilter, Registry>);

impl LogFilter for Reloaded {
    fn filter(&self) -> String {
        self.0.with_current(ToString::to_string).unwrap_or_default()
    }

    fn set_filter(&self, directives: &str) -> Result<(), String> {
        let filter = filter_of(directives)?;
        self.0.reload(filter).map_err(|it| it.to_string())?;
        tracing::info!(filter = directives, "what is logged was changed");
        Ok(())
    }
}

/// A word alone is a level here: as the name of a module it would silence all others.
fn filter_of(directives: &str) -> Result<EnvFilter, String> {
    for part in directives.split(',').map(str::trim) {
        let is_whole = part.parse::<LevelFilter>().is_ok() || part.contains(['=', '[']);
        if part.is_empty() || !is_whole {
            return Err(format!("{part:?} is neither a level (error, warn, info, debug, trace) nor MODULE=LEVEL"));
        }
    }
    EnvFilter::try_new(directives).map_err(|it| it.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_level_is_refused() {
        for told in ["info", "debug", "info,corten_runner=debug", "off", "warn,[pod{name=web}]=trace"] {
            assert!(filter_of(told).is_ok(), "{told}");
        }
        for told in ["verbose", "", "info,,warn", "corten_runner", "a=loud"] {
            assert!(filter_of(told).is_err(), "{told}");
        }
    }

    #[test]
    fn what_is_logged_can_be_changed() {
        let (_filter, handle) = reload::Layer::<EnvFilter, Registry>::new(EnvFilter::new(DEFAULT));
        let log = Reloaded(handle);
        assert_eq!(log.filter(), "info");
        log.set_filter("warn,corten_runner=debug").expect("understood");
        assert_eq!(log.filter(), "corten_runner=debug,warn");
        assert!(log.set_filter("loud").is_err());
        assert_eq!(log.filter(), "corten_runner=debug,warn");
    }
}
