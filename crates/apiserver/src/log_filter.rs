//! What changes what the process logs.

/// What of the process decides what is logged.
pub trait LogFilter: Send + Sync {
    /// The directives that hold now.
    fn filter(&self) -> String;

    /// # Errors
    /// The directives cannot be understood; those of before hold.
    fn set_filter(&self, directives: &str) -> Result<(), String>;
}
