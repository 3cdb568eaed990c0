//! Why a run is held back. One list for the controllers, who write it, and for the command line, which says what to do.

use super::{Lifecycle, Reason};

macro_rules! hindrances {
    ($($word:ident,)+) => {
        /// Why a run is held back: the reason of its condition `Blocked`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Hindrance {
            $(#[doc = concat!("[`Lifecycle::", stringify!($word), "`]")] $word,)+
        }

        impl Hindrance {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$word,)+];

            /// The word in the condition.
            pub const fn word(self) -> Lifecycle {
                match self {
                    $(Self::$word => Lifecycle::$word,)+
                }
            }
        }
    };
}

hindrances! {
    ConcurrencyLimit,
    QueueLimit,
    RateLimit,
    Exceeded,
    MissingAgent,
    MissingProvider,
    MissingImplementation,
    MissingMemory,
    MissingBudget,
    MissingVcsProvider,
    SecretNotFound,
    SecretKeyMissing,
    ConfigMapNotFound,
    ConfigMapKeyMissing,
    ClaimNotFound,
    JobNameConflict,
    PodNotEnding,
}

impl Hindrance {
    /// The same as text.
    pub const fn as_str(self) -> &'static str {
        self.word().as_str()
    }

    /// The one that a condition names.
    pub fn parse(reason: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|one| one.as_str() == reason)
    }

    /// Whether a condition with this reason means that the run waits in line.
    pub fn names_capacity(reason: &str) -> bool {
        Self::parse(reason).is_some_and(Self::is_capacity)
    }

    /// Whether it means that the run waits in line.
    pub const fn is_capacity(self) -> bool {
        match self {
            Self::ConcurrencyLimit | Self::QueueLimit | Self::RateLimit => true,
            Self::Exceeded
            | Self::MissingAgent
            | Self::MissingProvider
            | Self::MissingImplementation
            | Self::MissingMemory
            | Self::MissingBudget
            | Self::MissingVcsProvider
            | Self::SecretNotFound
            | Self::SecretKeyMissing
            | Self::ConfigMapNotFound
            | Self::ConfigMapKeyMissing
            | Self::ClaimNotFound
            | Self::JobNameConflict
            | Self::PodNotEnding => false,
        }
    }

    /// Whether it ends when someone makes what the run refers to.
    pub const fn is_missing(self) -> bool {
        match self {
            Self::MissingAgent
            | Self::MissingProvider
            | Self::MissingImplementation
            | Self::MissingMemory
            | Self::MissingBudget
            | Self::MissingVcsProvider
            | Self::SecretNotFound
            | Self::SecretKeyMissing
            | Self::ConfigMapNotFound
            | Self::ConfigMapKeyMissing
            | Self::ClaimNotFound => true,
            Self::ConcurrencyLimit
            | Self::QueueLimit
            | Self::RateLimit
            | Self::Exceeded
            | Self::JobNameConflict
            | Self::PodNotEnding => false,
        }
    }
}

impl From<Hindrance> for Reason {
    fn from(one: Hindrance) -> Self {
        one.word().into()
    }
}
