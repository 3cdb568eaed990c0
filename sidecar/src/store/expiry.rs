//! When what is no longer sent goes: a series by the clock of its target, a target with all that it has. Pure.

use agents::closed_labels;

closed_labels! {
    /// Why a series left the page.
    pub enum Cause {
        /// Its target sent others for so long, but not this one.
        Unsent = "unsent",
        /// Its target sent nothing for so long.
        TargetSilent = "target_silent",
        /// Another target took the place of its own.
        TargetReplaced = "target_replaced",
    }
}

impl Cause {
    /// How many there are.
    pub(super) const COUNT: usize = Self::ALL.len();
}

/// How long what is no longer sent is shown, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// A series whose target sends others.
    pub series: u64,
    /// All series of a target that sends nothing.
    pub target: u64,
    /// For how many times as long it is known: a counter that comes back goes on where it was.
    pub known: u64,
}

impl Patience {
    /// Why a series is no longer shown that was last written at `seen` and whose target was last heard of at `heard`.
    ///
    /// The time of a series stands still while its target is silent, so that all series of that target go at once.
    pub(super) fn hides(&self, seen: u64, heard: u64, now: u64) -> Option<Cause> {
        self.ends(seen, heard, now, 1)
    }

    /// Whether nothing is known of it any more.
    pub(super) fn forgets(&self, seen: u64, heard: u64, now: u64) -> bool {
        self.ends(seen, heard, now, self.known).is_some()
    }

    fn ends(&self, seen: u64, heard: u64, now: u64, times: u64) -> Option<Cause> {
        // Into the series of all that are too many others write as well.
        let heard = heard.max(seen);
        if now.saturating_sub(heard) > times * self.target {
            Some(Cause::TargetSilent)
        } else if heard - seen > times * self.series {
            Some(Cause::Unsent)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_goes_by_the_clock_of_its_target_and_a_target_by_ours() {
        const PATIENCE: Patience = Patience {
            series: 10,
            target: 30,
            known: 2,
        };
        let (unsent, silent) = (Some(Cause::Unsent), Some(Cause::TargetSilent));
        for (seen, heard, now, hides, forgets) in [
            (100, 100, 100, None, false),
            // Its target goes on without it.
            (100, 110, 110, None, false),
            (100, 111, 111, unsent, false),
            (100, 120, 120, unsent, false),
            (100, 121, 121, unsent, true),
            // Its target is silent: the time of its series stands still.
            (100, 105, 135, None, false),
            (100, 105, 136, silent, false),
            (100, 105, 165, silent, false),
            (100, 105, 166, silent, true),
            (100, 111, 141, unsent, false),
            // Others write it, while its target is silent.
            (100, 50, 110, None, false),
            // A clock that went back.
            (100, 100, 50, None, false),
        ] {
            let case = format!("{seen} {heard} {now}");
            assert_eq!(PATIENCE.hides(seen, heard, now), hides, "{case}");
            assert_eq!(PATIENCE.forgets(seen, heard, now), forgets, "{case}");
        }
    }
}
