mod bombs;
mod checks;
mod conformance;
mod libraries;
