//! Answers that hold for a while, by keys that nobody outside can choose: what was asked goes through a hash whose secret is made with
//! the process. Two generations bound it: what is asked for moves to the younger one, and of a full one the older half is forgotten. What
//! has ended goes with its generation, too: that is as old as an answer ever becomes. A large answer takes the place of several.

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
    /// When the young one began.
    begun: Option<Instant>,
    /// How long the longest answer was to be kept.
    longest: Duration,
    /// Of how many places the young one's answers take.
    n_taken: usize,
    young: HashMap<Key, MemoryEntry<T>>,
    old: HashMap<Key, MemoryEntry<T>>,
}

struct MemoryEntry<T> {
    until: Instant,
    n_places: usize,
    answer: T,
}

impl<T: Clone> Memory<T> {
    /// Of at most so many answers.
    pub(crate) fn new(max: usize) -> Self {
        let (young, old) = (HashMap::new(), HashMap::new());
        let generations = Generations { begun: None, longest: Duration::ZERO, n_taken: 0, young, old };
        Self { half: max / 2, generations: Mutex::new(generations) }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<T> {
        let now = Instant::now();
        let mut generations = self.generations.lock();
        generations.age(now);
        if let Some(known) = generations.young.get(key) {
            return (now < known.until).then(|| known.answer.clone());
        }
        let known = generations.old.remove(key).filter(|it| now < it.until)?;
        let answer = known.answer.clone();
        generations.insert(self.half, *key, known, now);
        Some(answer)
    }

    /// Nothing is kept for no time.
    pub(crate) fn put(&self, key: Key, answer: T, keep: Duration) {
        self.put_large(key, answer, keep, 1);
    }

    /// In so many places. What takes more than half of all is not kept.
    pub(crate) fn put_large(&self, key: Key, answer: T, keep: Duration, n_places: usize) {
        if keep.is_zero() || n_places > self.half {
            return;
        }
        // A time that no clock reaches is as good as for ever.
        let now = Instant::now();
        let until = now.checked_add(keep).unwrap_or_else(|| now + Duration::from_secs(1 << 30));
        let mut generations = self.generations.lock();
        generations.age(now);
        generations.longest = generations.longest.max(until - now);
        generations.insert(self.half, key, MemoryEntry { until, n_places, answer }, now);
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        let generations = self.generations.lock();
        generations.young.len() + generations.old.len()
    }
}

impl<T> Generations<T> {
    /// Forgets the older generation where all of it has ended: it came before the younger one, and nothing is kept for longer.
    fn age(&mut self, now: Instant) {
        if self.begun.is_some_and(|it| now - it >= self.longest) {
            self.begin(now);
        }
    }

    fn begin(&mut self, now: Instant) {
        self.old = std::mem::take(&mut self.young);
        self.n_taken = 0;
        self.begun = Some(now);
    }

    fn insert(&mut self, half: usize, key: Key, known: MemoryEntry<T>, now: Instant) {
        if self.n_taken + known.n_places > half || self.begun.is_none() {
            self.begin(now);
        }
        self.old.remove(&key);
        self.n_taken += known.n_places;
        if let Some(before) = self.young.insert(key, known) {
            self.n_taken -= before.n_places;
        }
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

    #[tokio::test(start_paused = true)]
    async fn a_large_answer_takes_the_place_of_several() {
        let (keys, memory) = (Keys::default(), Memory::new(8));
        let key = |n: usize| keys.key([&n.to_le_bytes()[..]]);
        let keep = Duration::from_secs(10);
        memory.put_large(key(0), 0, keep, 5);
        assert_eq!(memory.get(&key(0)), None, "it is too large");
        for round in 0..20 {
            memory.put_large(key(1), 1, keep, 3);
            memory.put(key(2), 2, keep);
            assert_eq!((memory.get(&key(1)), memory.get(&key(2)), memory.len()), (Some(1), Some(2), 2), "{round}");
        }
        memory.put_large(key(3), 3, keep, 4);
        assert_eq!((memory.get(&key(3)), memory.len()), (Some(3), 3), "the others are the older half");
        memory.put_large(key(4), 4, keep, 4);
        assert_eq!((memory.get(&key(4)), memory.get(&key(1)), memory.len()), (Some(4), None, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_ended_takes_no_room() {
        let (keys, memory) = (Keys::default(), Memory::new(1000));
        let key = |n: usize| keys.key([&n.to_le_bytes()[..]]);
        let (short, long) = (Duration::from_secs(1), Duration::from_secs(10));
        memory.put(key(0), 0, long);
        for n in 1..400 {
            memory.put(key(n), n, short);
        }
        for second in 0..10 {
            assert_eq!(memory.get(&key(0)), Some(0), "{second}");
            tokio::time::advance(short).await;
        }
        assert_eq!(memory.get(&key(0)), None);
        memory.put(key(0), 0, long);
        assert!(memory.len() <= 401);
        tokio::time::advance(long).await;
        memory.put(key(1000), 1, short);
        assert_eq!(memory.len(), 2, "those that were there at the start are gone");
        tokio::time::advance(long * 2).await;
        assert_eq!(memory.get(&key(1000)), None);
        assert!(memory.len() <= 1);
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
