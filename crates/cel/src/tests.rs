mod checks;
mod conformance;
