//! Decides what to do after a look at the files, by what was seen before. Reads no file and no clock.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

use super::{
    super::{
        Refused,
        material::{Checked, Demands, Material, Term, check},
    },
    Look,
};

/// Something wrong counts only if it is still there after this time: files that are being replaced may be caught
/// half-way, however often one looks meanwhile.
const SETTLED: SignedDuration = SignedDuration::from_millis(400);

/// What to do after a look at the files.
pub(super) enum Verdict {
    Same,
    Swap(Checked),
    Refuse(Refused),
    Warn(Timestamp),
    Expire(Timestamp),
}

/// What was seen before.
pub(super) struct Followed {
    demands: Demands,
    used: Option<Used>,
    doubted: Option<Doubt>,
}

struct Used {
    material: Material,
    term: Term,
    age: Age,
}

/// What was said about the age of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Age {
    Fresh,
    Overdue,
    Expired,
}

/// Something wrong, since when it is there, and whether that was said.
struct Doubt {
    seen: Look,
    since: Timestamp,
    said: bool,
}

impl fmt::Debug for Followed {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = self.used.as_ref().map(|used| used.term.not_after);
        f.debug_struct("Followed")
            .field("not_after", &until)
            .finish_non_exhaustive()
    }
}

impl Followed {
    pub(super) fn new(demands: Demands) -> Self {
        Self {
            demands,
            used: None,
            doubted: None,
        }
    }

    /// Whether there is a pair to serve with.
    pub(super) fn in_use(&self) -> bool {
        self.used.is_some()
    }

    /// Whether the files hold something that cannot be used.
    pub(super) fn doubts(&self) -> bool {
        self.doubted.is_some()
    }

    /// When the pair in use ended, if it has.
    pub(super) fn expired(&self) -> Option<Timestamp> {
        let used = self.used.as_ref()?;
        (used.age == Age::Expired).then_some(used.term.not_after)
    }

    /// Decides about one look.
    pub(super) fn judge(&mut self, seen: Look, now: Timestamp) -> Verdict {
        if let (Some(used), Ok(material)) = (&mut self.used, &seen)
            && used.material == *material
        {
            self.doubted = None;
            return used.age(now);
        }
        let checked = seen.clone().and_then(|material| {
            let checked = check(&material, &self.demands, now)?;
            Ok((material, checked))
        });
        match checked {
            Ok((material, checked)) => {
                self.doubted = None;
                self.used = Some(Used {
                    material,
                    term: checked.term,
                    age: Age::Fresh,
                });
                Verdict::Swap(checked)
            }
            Err(refused) => self.doubt(seen, refused, now),
        }
    }

    fn doubt(&mut self, seen: Look, refused: Refused, now: Timestamp) -> Verdict {
        match &mut self.doubted {
            Some(doubt) if doubt.seen == seen => {
                // A clock that was set back must not silence a refusal, so the time may count either way.
                if !doubt.said && now.duration_since(doubt.since).abs() >= SETTLED {
                    doubt.said = true;
                    return Verdict::Refuse(refused);
                }
            }
            Some(_) | None => {
                self.doubted = Some(Doubt {
                    seen,
                    since: now,
                    said: false,
                });
            }
        }
        let used = self.used.as_mut();
        used.map_or(Verdict::Same, |used| used.age(now))
    }
}

impl Used {
    /// Says once that the certificate should have been renewed, and once that it has ended.
    fn age(&mut self, now: Timestamp) -> Verdict {
        let Term { not_after, .. } = self.term;
        let age = match now {
            now if now >= not_after => Age::Expired,
            now if now >= self.term.overdue() => Age::Overdue,
            _ => Age::Fresh,
        };
        if age <= self.age {
            return Verdict::Same;
        }
        self.age = age;
        match age {
            Age::Fresh => Verdict::Same,
            Age::Overdue => Verdict::Warn(not_after),
            Age::Expired => Verdict::Expire(not_after),
        }
    }
}

#[cfg(test)]
mod tests;
