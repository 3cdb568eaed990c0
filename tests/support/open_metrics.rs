//! A strict reader of OpenMetrics 1.0: it takes nothing that the format does not allow, where a scraper would look the other
//! way. It keeps only counts; [`crate::metrics`] reads values.

mod family;
mod line;

use std::{collections::BTreeSet, fmt};

use family::Family;
use line::{Metadata, Sample};

/// How much a page has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Families, those without a heading included.
    pub families: usize,
    /// Lines with a value.
    pub samples: usize,
}

/// What is wrong with a page, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The line, counted from 1.
    pub line: usize,
    /// The rule that it breaks.
    pub why: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of the page: {}", self.line, self.why)
    }
}

impl std::error::Error for Wrong {}

/// Reads a page.
pub fn read(page: &str) -> Result<Counts, Wrong> {
    let mut reader = Reader::default();
    let mut number = 0;
    let mut rest = page;
    while let Some((line, after)) = rest.split_once('\n') {
        number += 1;
        let wrong = |why| Wrong { line: number, why };
        if line == "# EOF" {
            reader.close().map_err(wrong)?;
            return match after {
                "" => Ok(reader.counts),
                _ => Err(wrong("something follows the end".to_owned())),
            };
        }
        reader.take(line).map_err(wrong)?;
        rest = after;
    }
    // The end alone may come without an end of its line.
    match rest {
        "# EOF" => reader.close().map(|()| reader.counts),
        _ => Err("the page does not end with # EOF".to_owned()),
    }
    .map_err(|why| Wrong {
        line: number + 1,
        why,
    })
}

#[derive(Default)]
struct Reader {
    family: Option<Family>,
    /// Every name that a sample of a family before may have.
    taken: BTreeSet<String>,
    counts: Counts,
}

impl Reader {
    fn take(&mut self, line: &str) -> Result<(), String> {
        if line.starts_with('#') {
            let metadata = Metadata::of(line)?;
            if self.family.as_ref().map(|family| &*family.name) != Some(&*metadata.name) {
                self.open(metadata.name.clone())?;
            }
            let family = self.family.as_mut().ok_or("a family")?;
            return family.describe(metadata);
        }
        let sample = Sample::of(line)?;
        let is_of_family = |family: &Family| family.has(&sample.name);
        if !self.family.as_ref().is_some_and(is_of_family) {
            self.open(sample.name.clone())?;
        }
        self.counts.samples += 1;
        let family = self.family.as_mut().ok_or("a family")?;
        family.take(sample)
    }

    fn open(&mut self, name: String) -> Result<(), String> {
        self.close()?;
        self.counts.families += 1;
        self.family = Some(Family::named(name));
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        let Some(family) = self.family.take() else {
            return Ok(());
        };
        for name in family.names() {
            if !self.taken.insert(name.clone()) {
                return Err(format!(
                    "{name} can be of two families, or one comes in two pieces"
                ));
            }
        }
        family.close()
    }
}
