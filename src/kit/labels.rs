//! Labels of metrics from closed lists, and series that stand at 0 before anything was counted.
//!
//! A series that first appears with its first count hides that count from `rate()` and from alerts.

use prometheus_client::metrics::family::{Family, MetricConstructor};
// For the code that the macro makes in other crates.
#[doc(hidden)]
pub use prometheus_client::encoding::{EncodeLabelValue, LabelValueEncoder};

/// Declares a closed list of label values, each with the word that a scrape shows.
#[macro_export]
macro_rules! closed_labels {
    (
        $(#[$about:meta])*
        $seen:vis enum $name:ident { $($(#[$meaning:meta])* $label:ident = $word:literal,)+ }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $seen enum $name {
            $($(#[$meaning])* $label,)+
        }

        impl $name {
            /// Every value.
            $seen const ALL: &'static [Self] = &[$(Self::$label,)+];

            /// The word that a scrape and a log line show.
            $seen const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$label => $word,)+
                }
            }
        }

        impl $crate::kit::labels::EncodeLabelValue for $name {
            fn encode(
                &self,
                encoder: &mut $crate::kit::labels::LabelValueEncoder<'_>,
            ) -> std::fmt::Result {
                $crate::kit::labels::EncodeLabelValue::encode(&self.as_str(), encoder)
            }
        }
    };
}

/// Makes the series of these labels, so that each is shown from the first scrape on.
pub fn start_at_zero<L, M, C>(family: &Family<L, M, C>, labels: impl IntoIterator<Item = L>)
where
    L: Clone + std::hash::Hash + Eq,
    C: MetricConstructor<M>,
{
    for labels in labels {
        drop(family.get_or_create(&labels));
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::{
        encoding::{EncodeLabelSet, text::encode},
        metrics::counter::Counter,
        registry::Registry,
    };

    use super::*;

    closed_labels! {
        enum Colour {
            Red = "red",
            Green = "green",
        }
    }

    #[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
    struct Painted {
        colour: Colour,
    }

    #[test]
    fn every_series_is_shown_before_anything_was_counted() {
        let mut registry = Registry::default();
        let walls = Family::<Painted, Counter>::default();
        registry.register("walls", "Painted walls", walls.clone());
        start_at_zero(&walls, Colour::ALL.iter().map(|&colour| Painted { colour }));
        let mut page = String::new();
        encode(&mut page, &registry).unwrap();
        let mut samples: Vec<_> = page.lines().filter(|line| !line.starts_with('#')).collect();
        samples.sort_unstable();
        assert_eq!(
            samples,
            [
                "walls_total{colour=\"green\"} 0",
                "walls_total{colour=\"red\"} 0"
            ]
        );
    }
}
