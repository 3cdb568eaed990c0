//! How keys of the store are hashed: with a secret, so that no source can choose keys that collide. What does is told apart by
//! comparing it whole, which tests show with a hash that is always the same.

#[cfg(not(test))]
pub(super) use foldhash::fast::RandomState as Hashing;
#[cfg(test)]
pub(super) use same::Hashing;

#[cfg(test)]
pub(super) mod same {
    use std::{
        cell::Cell,
        hash::{BuildHasher, Hasher},
    };

    use foldhash::fast::RandomState;

    thread_local! {
        static IS_SAME: Cell<bool> = const { Cell::new(false) };
    }

    /// Runs tests on stores in which all hashes are 1.
    pub(in super::super) fn with_one_hash(tests: &[fn()]) {
        IS_SAME.set(true);
        tests.iter().for_each(|test| test());
        IS_SAME.set(false);
    }

    /// As in use, unless all hashes are to be the same.
    #[derive(Debug)]
    pub(in super::super) struct Hashing(Option<RandomState>);

    impl Default for Hashing {
        fn default() -> Self {
            Self((!IS_SAME.get()).then(RandomState::default))
        }
    }

    impl BuildHasher for Hashing {
        type Hasher = OneOrMany;

        fn build_hasher(&self) -> OneOrMany {
            OneOrMany(self.0.as_ref().map(RandomState::build_hasher))
        }
    }

    pub(in super::super) struct OneOrMany(Option<<RandomState as BuildHasher>::Hasher>);

    impl Hasher for OneOrMany {
        fn write(&mut self, bytes: &[u8]) {
            if let Some(hasher) = &mut self.0 {
                hasher.write(bytes);
            }
        }

        fn finish(&self) -> u64 {
            self.0.as_ref().map_or(1, Hasher::finish)
        }
    }

    #[test]
    fn all_hashes_are_the_same_only_where_that_is_asked_for() {
        with_one_hash(&[|| {
            let hashing = Hashing::default();
            assert_eq!((hashing.hash_one("a"), hashing.hash_one("b")), (1, 1));
        }]);
        let hashing = Hashing::default();
        assert_ne!(hashing.hash_one("a"), hashing.hash_one("b"));
    }
}
