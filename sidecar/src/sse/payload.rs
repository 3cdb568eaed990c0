//! What payloads come to, apart from any connection: for whoever checks what holds for every payload.

use jiff::Timestamp;

use super::{
    control_plane::{self, Runs},
    load::Load,
    parse::Event,
    queue,
};

/// How a queue stands by what was told.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// Runs in line.
    pub waiting: u64,
    /// Runs that have begun and not ended.
    pub running: u64,
    /// Why runs are held back; all of these are labels.
    pub reasons: Vec<&'static str>,
    /// Seconds that the first in line has waited.
    pub oldest: f64,
}

impl From<Load> for Counted {
    fn from(load: Load) -> Self {
        let Load {
            depth,
            running,
            blocked,
            oldest,
        } = load;
        Self {
            waiting: depth,
            running,
            reasons: blocked.0.into_keys().collect(),
            oldest,
        }
    }
}

/// What an event of a controller says of its queue, so many seconds later.
pub fn of_queue(name: &str, data: &str, later: f64) -> Option<Counted> {
    let (_, message) = queue::read(Event { name, data });
    match message {
        Ok(queue::Message::State(state)) => state.load(later).map(Counted::from),
        Ok(queue::Message::Dropped(_) | queue::Message::End | queue::Message::Nothing) | Err(_) => {
            None
        }
    }
}

/// What messages of a control plane say, one after the other, if at most so many runs are kept.
pub fn of_control_plane<'m>(
    messages: impl IntoIterator<Item = &'m str>,
    most: usize,
    now: Timestamp,
) -> Option<Counted> {
    let mut runs = Runs::new(most);
    for data in messages {
        let name = "message";
        let (_, message) = control_plane::read(Event { name, data });
        match message {
            Ok(control_plane::Message::Run { key, stands }) => runs.put(key, stands),
            Ok(control_plane::Message::Status(status)) => runs.status = status,
            Ok(control_plane::Message::Nothing) | Err(_) => {}
        }
        runs.heard();
    }
    runs.load(now).map(Counted::from)
}
