//! Which namespaces are followed.

use agents::api::contract::env;
use agents::cluster::Namespaces;
use agents::kit::config::{self, Invalid, Reader, Setting};

/// What operators can set about look-ups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whose objects are followed.
    pub namespaces: Namespaces,
}

impl config::Settings for Settings {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Look-ups");
        let namespaces = reader.value(
            Setting::new(
                env::NAMESPACES,
                "Namespaces whose objects are followed, so that references to them can be looked up",
            )
            .or("agents"),
        );
        Ok(Self {
            namespaces: namespaces?,
        })
    }
}
