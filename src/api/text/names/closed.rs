//! Closed lists of words: enums whose variants are the very words that the API shows.
//!
//! The word is taken from the variant and its meaning from the sentence above it, so none of them can drift apart.

/// Declares an enum of words with `ALL`, `as_str`, `meaning` and `Display`.
macro_rules! closed_words {
    (
        $(#[$about:meta])*
        pub enum $name:ident { $($(#[doc = $meaning:literal])+ $word:ident,)+ }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[doc = $meaning])+ $word,)+
        }

        impl $name {
            /// Every word of the list, in its order.
            pub const ALL: &'static [Self] = &[$(Self::$word,)+];

            /// The word as the API shows it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$word => stringify!($word),)+
                }
            }

            /// One sentence for the documentation.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$word => concat!($($meaning),+).trim_ascii(),)+
                }
            }

            /// The entry that is written exactly so.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|entry| entry.as_str() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use closed_words;
