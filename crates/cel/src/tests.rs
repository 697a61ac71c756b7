mod bombs;
mod checks;
mod conformance;
mod devices;
mod libraries;
