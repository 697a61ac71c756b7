//! Answers that hold for a while, by keys that nobody outside can choose: what was asked goes through a hash whose secret is made with
//! the process. Two generations bound it: what is asked for moves to the younger one, and of a full one the older half is forgotten.

use std::{collections::HashMap, time::Duration};

use aws_lc_rs::{
    hmac,
    rand::{SecureRandom, SystemRandom},
};
use parking_lot::Mutex;
use tokio::time::Instant;

/// What stands for a question.
pub(crate) type Key = [u8; 32];

/// Makes keys.
pub(crate) struct Keys(hmac::Key);

impl Default for Keys {
    fn default() -> Self {
        let mut secret = [0; 32];
        // Without randomness the process has no keys of its own either, and does not come to here.
        SystemRandom::new().fill(&mut secret).expect("the system gives randomness");
        Self(hmac::Key::new(hmac::HMAC_SHA256, &secret))
    }
}

impl Keys {
    /// Each part with its length: no two lists of parts are the same text.
    pub(crate) fn key<'p>(&self, parts: impl IntoIterator<Item = &'p [u8]>) -> Key {
        let mut context = hmac::Context::with_key(&self.0);
        for part in parts {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part);
        }
        let tag = context.sign();
        tag.as_ref().try_into().expect("SHA-256 has 32 bytes")
    }
}

pub(crate) struct Memory<T> {
    half: usize,
    generations: Mutex<Generations<T>>,
}

struct Generations<T> {
    young: HashMap<Key, Known<T>>,
    old: HashMap<Key, Known<T>>,
}

struct Known<T> {
    until: Instant,
    answer: T,
}

impl<T: Clone> Memory<T> {
    /// Of at most so many answers.
    pub(crate) fn new(max: usize) -> Self {
        Self { half: max / 2, generations: Mutex::new(Generations { young: HashMap::new(), old: HashMap::new() }) }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<T> {
        let now = Instant::now();
        let mut generations = self.generations.lock();
        if let Some(known) = generations.young.get(key) {
            return (now < known.until).then(|| known.answer.clone());
        }
        let known = generations.old.remove(key).filter(|it| now < it.until)?;
        let answer = known.answer.clone();
        generations.insert(self.half, *key, known);
        Some(answer)
    }

    /// Nothing is kept for no time.
    pub(crate) fn put(&self, key: Key, answer: T, keep: Duration) {
        if keep.is_zero() {
            return;
        }
        // A time that no clock reaches is as good as for ever.
        let now = Instant::now();
        let until = now.checked_add(keep).unwrap_or_else(|| now + Duration::from_secs(1 << 30));
        self.generations.lock().insert(self.half, key, Known { until, answer });
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        let generations = self.generations.lock();
        generations.young.len() + generations.old.len()
    }
}

impl<T> Generations<T> {
    fn insert(&mut self, half: usize, key: Key, known: Known<T>) {
        if self.young.len() >= half {
            self.old = std::mem::take(&mut self.young);
        }
        self.old.remove(&key);
        self.young.insert(key, known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn answers_are_forgotten_in_time_and_for_want_of_room() {
        let (keys, memory) = (Keys::default(), Memory::new(8));
        let key = |n: usize| keys.key([&n.to_le_bytes()[..]]);
        memory.put(key(0), 0, Duration::from_secs(10));
        memory.put(key(1), 1, Duration::ZERO);
        assert_eq!((memory.get(&key(0)), memory.get(&key(1))), (Some(0), None));
        for n in 2..100 {
            memory.put(key(n), n, Duration::from_secs(10));
            assert!(memory.get(&key(0)).is_some(), "what is asked for stays");
            assert!(memory.len() <= 8);
        }
        assert_eq!(memory.get(&key(2)), None);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(memory.get(&key(0)), None);
    }

    #[test]
    fn no_two_questions_have_one_key() {
        let keys = Keys::default();
        let key = |parts: &[&str]| keys.key(parts.iter().map(|it| it.as_bytes()));
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_ne!(key(&["a"]), key(&["a", ""]));
        assert_ne!(key(&["a"]), Keys::default().key([&b"a"[..]]), "another process has other keys");
    }
}
