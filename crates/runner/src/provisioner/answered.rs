//! Volumes that drivers have answered with lately: whose each is, before its PersistentVolume is seen. Two requests under way at once
//! that are answered with one volume would give one claim's data to another.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// More than are ever under way at once; what is older is seen as a PersistentVolume by then.
const KEPT_MAX: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Answered(Mutex<VecDeque<Answer>>);

#[derive(Debug)]
struct Answer {
    driver: String,
    handle: String,
    /// The PersistentVolume.
    volume: String,
}

impl Answered {
    /// # Errors
    /// The volume that has this handle already.
    pub(super) fn take(&self, driver: &str, handle: &str, volume: &str) -> Result<(), String> {
        let mut answers = self.0.lock();
        match answers.iter().find(|it| it.driver == driver && it.handle == handle) {
            Some(it) if it.volume == volume => return Ok(()),
            Some(it) => return Err(it.volume.clone()),
            None => {}
        }
        if answers.len() >= KEPT_MAX {
            answers.pop_front();
        }
        answers.push_back(Answer { driver: driver.into(), handle: handle.into(), volume: volume.into() });
        Ok(())
    }

    /// The volume is removed: its handle may come again.
    pub(super) fn forget(&self, driver: &str, handle: &str) {
        self.0.lock().retain(|it| it.driver != driver || it.handle != handle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_one_volumes_until_that_is_removed() {
        let answered = Answered::default();
        answered.take("d", "h", "pv1").expect("free");
        answered.take("d", "h", "pv1").expect("the same once more");
        answered.take("other", "h", "pv2").expect("another driver's");
        assert_eq!(answered.take("d", "h", "pv2"), Err("pv1".into()));
        answered.forget("d", "h");
        answered.take("d", "h", "pv2").expect("free again");
        (0..2 * KEPT_MAX).for_each(|it| answered.take("d", &it.to_string(), "pv").expect("free"));
        assert_eq!(answered.0.lock().len(), KEPT_MAX);
    }
}
