//! Reads a tracker and takes over what is new.

use std::time::Duration;

use http::{StatusCode, header};
use jiff::Timestamp;
use kube::ResourceExt;

use super::issue::Deed;
use super::tracker::{Page, Place, Tracker};
use super::{ImplementationSources, key};
use crate::api::kinds::ImplementationSource;
use crate::api::tracker::Issue;
use crate::controller::cache::Key;
use crate::controller::driver::fault::{Class, Fault};
use crate::kit::egress::{Answer, Call, Failure};

/// Most pages that are read at a time, and time after which no other one is begun.
const PAGES: usize = 5;
const READING: Duration = Duration::from_secs(20);
/// Most ImplementationSpecs that are written at a time; the rest follows at once.
const WRITES: usize = 100;
const REST: Duration = Duration::from_secs(1);
/// Longest time for which a tracker can ask to be left alone.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

const WHAT: &str = "read the tracker";

/// How a look at a tracker went.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trail {
    pub(super) at: Timestamp,
    /// The spec that it was about.
    pub(super) generation: Option<i64>,
    /// When to look again.
    pub(super) due: Timestamp,
    /// By which the tracker knows what we have seen.
    pub(super) mark: Option<String>,
    pub(super) result: Result<Tally, Trouble>,
}

/// What was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Issues that belong to the source.
    pub(super) issues: usize,
    /// ImplementationSpecs that were written.
    pub(super) written: usize,
    /// Issues whose names others have.
    pub(super) taken: usize,
    /// Whether there are more issues than were read.
    pub(super) is_cut: bool,
}

/// Why a tracker could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It may not be called.
    Denied(String),
    /// It does not answer, or not as it should.
    Unreachable(String),
}

/// What a look at the list of issues gave.
enum Read {
    /// There is no room for a call now.
    Busy,
    /// Nothing has changed since the last look.
    Unchanged,
    Issues {
        issues: Vec<Issue>,
        mark: Option<String>,
        is_cut: bool,
    },
    Failed {
        trouble: Trouble,
        after: Option<Duration>,
    },
}

impl ImplementationSources {
    /// Reads the tracker and writes what is new; says whether there is anything to tell.
    pub(super) async fn sync(
        &self,
        source: &ImplementationSource,
        last: Option<&Trail>,
    ) -> Result<bool, Fault> {
        let generation = source.metadata.generation;
        let last = last.filter(|last| last.generation == generation);
        let before =
            last.and_then(|last| Some((last.mark.as_deref()?, *last.result.as_ref().ok()?)));
        let every = self.context.egress.sync;
        let (result, mark, pause) = match self.read(source, before.map(|(mark, _)| mark)).await? {
            Read::Busy => return Ok(false),
            Read::Unchanged => {
                let (mark, tally) = before.unzip();
                let tally = Tally {
                    written: 0,
                    ..tally.unwrap_or_default()
                };
                (Ok(tally), mark.map(str::to_owned), every)
            }
            Read::Failed { trouble, after } => {
                let pause = after.unwrap_or(every).max(every);
                (Err(trouble), None, pause.min(LONGEST_PAUSE.max(every)))
            }
            Read::Issues {
                issues,
                mark,
                is_cut,
            } => {
                let (tally, is_done) = self.take_over(source, &issues, is_cut).await?;
                let pause = if is_done { every } else { REST };
                let is_whole = is_done && !is_cut && tally.taken == 0;
                (Ok(tally), mark.filter(|_| is_whole), pause)
            }
        };
        let at = self.context.clock.now();
        let trail = Trail {
            at,
            generation,
            due: at.checked_add(pause).unwrap_or(at),
            mark,
            result,
        };
        self.trails.keep(source, &self.shelves.sources, trail);
        Ok(true)
    }

    /// The list of issues, page by page.
    async fn read(&self, source: &ImplementationSource, mark: Option<&str>) -> Result<Read, Fault> {
        let failed = |trouble| Read::Failed {
            trouble,
            after: None,
        };
        let tracker = match Tracker::of(source) {
            Ok(tracker) => tracker,
            Err(refusal) => return Ok(failed(Trouble::Denied(refusal.sentence().to_owned()))),
        };
        let token = self.token(source).await?;
        let credential = token.as_deref().map(|token| tracker.credential(token));
        if let Some(None) = credential {
            let why = "the token of the source cannot be sent: it has characters that no token has";
            return Ok(failed(Trouble::Unreachable(why.to_owned())));
        }
        let credential = credential.flatten();
        let started = self.context.clock.now();
        let (mut issues, mut new_mark, mut place) = (Vec::new(), None, Place::Page(1));
        for page in 1..=PAGES {
            let mark = mark.filter(|_| page == 1);
            let call = Call {
                credential: credential.clone(),
                ..tracker.ask(&place, mark)
            };
            let read = match self.context.call_out(WHAT, call).await? {
                None => return Ok(Read::Busy),
                Some(answer) => read_page(&tracker, &place, answer),
            };
            let (found, its_mark) = match read {
                Ok(Some(read)) => read,
                Ok(None) => return Ok(Read::Unchanged),
                Err((trouble, after)) => return Ok(Read::Failed { trouble, after }),
            };
            new_mark = new_mark.or(its_mark);
            issues.extend(found.issues);
            let Some(next) = found.next else {
                return Ok(Read::Issues {
                    issues,
                    mark: new_mark,
                    is_cut: false,
                });
            };
            place = next;
            let taken = self.context.clock.now().duration_since(started);
            if Duration::try_from(taken).is_ok_and(|taken| taken > READING) {
                break;
            }
        }
        Ok(Read::Issues {
            issues,
            mark: None,
            is_cut: true,
        })
    }

    /// The token of the source, read when it is needed and kept nowhere.
    async fn token(&self, source: &ImplementationSource) -> Result<Option<String>, Fault> {
        let sync = source.spec.sync.as_ref();
        let Some(reference) = sync.and_then(|sync| sync.secret_ref.as_ref()) else {
            return Ok(None);
        };
        let secret = self.secret(source, reference.name.trim()).await?;
        let data = secret.and_then(|secret| secret.data);
        let value = data.and_then(|mut data| data.remove(key(reference)));
        let text = value.and_then(|value| String::from_utf8(value.0).ok());
        let text = text.map(|text| text.trim().to_owned());
        Ok(text.filter(|text| !text.is_empty()))
    }

    /// Writes what is new; says what was done and whether that is all.
    async fn take_over(
        &self,
        source: &ImplementationSource,
        issues: &[Issue],
        is_cut: bool,
    ) -> Result<(Tally, bool), Fault> {
        let mut tally = Tally {
            issues: issues.len(),
            is_cut,
            ..Tally::default()
        };
        let namespace = source.namespace().unwrap_or_default();
        let shelf = &self.shelves.implementations;
        let mut is_done = true;
        for issue in issues {
            if tally.written >= WRITES {
                return Ok((tally, false));
            }
            let there = shelf.get(&Key::new(&namespace, issue.name()));
            let written = match (issue.deed(source, there.as_deref()), &there) {
                (Deed::Nothing, _) | (Deed::Change(_), None) => continue,
                (Deed::Taken, _) => {
                    tally.taken += 1;
                    continue;
                }
                (Deed::Make(object), _) => {
                    let what = "make the ImplementationSpec of an issue";
                    self.context.create(what, &*object).await
                }
                (Deed::Change(changes), Some(there)) => {
                    let what = "change the ImplementationSpec of an issue";
                    self.context.change(what, &**there, changes).await
                }
            };
            match written {
                // Not put on the shelf: what is there already is news to nobody, and it would stay without a status.
                Ok(_) => tally.written += 1,
                // Someone else was faster, or it went; the next look sees how it stands.
                Err(fault) if fault.class == Class::Conflict || fault.is_not_found() => {
                    is_done = false;
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok((tally, is_done))
    }
}

type PageRead = Result<Option<(Page, Option<String>)>, (Trouble, Option<Duration>)>;

/// One page and its mark; none if it has not changed.
fn read_page(tracker: &Tracker<'_>, place: &Place, answer: Result<Answer, Failure>) -> PageRead {
    let base = tracker.base();
    let answer = answer.map_err(|failure| {
        let trouble = match &failure {
            Failure::Refused(_) => Trouble::Denied(format!("{base} may not be called: {failure}")),
            Failure::Unreachable(_) | Failure::TimedOut(_) | Failure::TooLarge(_) => {
                Trouble::Unreachable(format!("{base} cannot be read: {failure}"))
            }
        };
        (trouble, None)
    })?;
    if answer.status == StatusCode::NOT_MODIFIED {
        return Ok(None);
    }
    if !answer.status.is_success() {
        let why = format!("{base} answered {}", answer.status.as_u16());
        return Err((Trouble::Unreachable(why), answer.retry_after()));
    }
    let mark = answer.headers.get(header::ETAG);
    let mark = mark.and_then(|mark| mark.to_str().ok()).map(str::to_owned);
    match tracker.read(place, &answer.body) {
        Ok(page) => Ok(Some((page, mark))),
        Err(why) => Err((Trouble::Unreachable(format!("{base}: {why}")), None)),
    }
}
