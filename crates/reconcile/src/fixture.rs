//! Text worlds for tests of minds.
