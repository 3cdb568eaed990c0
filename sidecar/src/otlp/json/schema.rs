//! Which field of which message has which number, as OTLP says. A name that is not here is ignored.

/// How a field is written in JSON and in protobuf.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    /// Text.
    Text,
    /// Bytes, in hexadecimal: ids of traces and spans.
    Hex,
    /// Bytes, in base64: all others.
    Base64,
    /// Yes or no.
    Bool,
    /// A double.
    Double,
    /// Eight bytes without a sign.
    Fixed,
    /// Eight bytes with a sign.
    SignedFixed,
    /// A number of variable length without a sign.
    Varint,
    /// The same with a sign.
    SignedVarint,
    /// A small number with a sign.
    Zigzag,
    /// The one enumeration.
    Temporality,
    /// A message.
    One(&'static Message),
    /// Messages.
    Many(&'static Message),
    /// Doubles.
    Doubles,
    /// Numbers of eight bytes.
    Fixeds,
    /// Numbers of variable length.
    Varints,
}

impl Form {
    /// The form of each in a list, if it is one.
    pub(super) fn each(self) -> Option<Self> {
        match self {
            Self::Many(message) => Some(Self::One(message)),
            Self::Doubles => Some(Self::Double),
            Self::Fixeds => Some(Self::Fixed),
            Self::Varints => Some(Self::Varint),
            Self::Text
            | Self::Hex
            | Self::Base64
            | Self::Bool
            | Self::Double
            | Self::Fixed
            | Self::SignedFixed
            | Self::Varint
            | Self::SignedVarint
            | Self::Zigzag
            | Self::Temporality
            | Self::One(_) => None,
        }
    }
}

/// Name, number and form of each field.
#[derive(Debug)]
pub(super) struct Message(pub(super) &'static [(&'static str, u32, Form)]);

pub(super) static REQUEST: Message = Message(&[("resourceMetrics", 1, Form::Many(&TARGET))]);

static TARGET: Message = Message(&[
    ("resource", 1, Form::One(&RESOURCE)),
    ("scopeMetrics", 2, Form::Many(&SCOPED)),
    ("schemaUrl", 3, Form::Text),
]);

static RESOURCE: Message = Message(&[("attributes", 1, Form::Many(&PAIR))]);

static SCOPED: Message = Message(&[
    ("scope", 1, Form::One(&SCOPE)),
    ("metrics", 2, Form::Many(&METRIC)),
    ("schemaUrl", 3, Form::Text),
]);

static SCOPE: Message = Message(&[
    ("name", 1, Form::Text),
    ("version", 2, Form::Text),
    ("attributes", 3, Form::Many(&PAIR)),
]);

static METRIC: Message = Message(&[
    ("name", 1, Form::Text),
    ("description", 2, Form::Text),
    ("unit", 3, Form::Text),
    ("gauge", 5, Form::One(&GAUGE)),
    ("sum", 7, Form::One(&SUM)),
    ("histogram", 9, Form::One(&HISTOGRAM)),
    ("exponentialHistogram", 10, Form::One(&EXPONENTIAL)),
    ("summary", 11, Form::One(&SUMMARY)),
    ("metadata", 12, Form::Many(&PAIR)),
]);

static GAUGE: Message = Message(&[("dataPoints", 1, Form::Many(&NUMBER_POINT))]);

static SUM: Message = Message(&[
    ("dataPoints", 1, Form::Many(&NUMBER_POINT)),
    ("aggregationTemporality", 2, Form::Temporality),
    ("isMonotonic", 3, Form::Bool),
]);

static HISTOGRAM: Message = Message(&[
    ("dataPoints", 1, Form::Many(&HISTOGRAM_POINT)),
    ("aggregationTemporality", 2, Form::Temporality),
]);

static EXPONENTIAL: Message = Message(&[
    ("dataPoints", 1, Form::Many(&EXPONENTIAL_POINT)),
    ("aggregationTemporality", 2, Form::Temporality),
]);

static SUMMARY: Message = Message(&[("dataPoints", 1, Form::Many(&SUMMARY_POINT))]);

static NUMBER_POINT: Message = Message(&[
    ("attributes", 7, Form::Many(&PAIR)),
    ("startTimeUnixNano", 2, Form::Fixed),
    ("timeUnixNano", 3, Form::Fixed),
    ("asDouble", 4, Form::Double),
    ("asInt", 6, Form::SignedFixed),
    ("exemplars", 5, Form::Many(&EXEMPLAR)),
    ("flags", 8, Form::Varint),
]);

static HISTOGRAM_POINT: Message = Message(&[
    ("attributes", 9, Form::Many(&PAIR)),
    ("startTimeUnixNano", 2, Form::Fixed),
    ("timeUnixNano", 3, Form::Fixed),
    ("count", 4, Form::Fixed),
    ("sum", 5, Form::Double),
    ("bucketCounts", 6, Form::Fixeds),
    ("explicitBounds", 7, Form::Doubles),
    ("exemplars", 8, Form::Many(&EXEMPLAR)),
    ("flags", 10, Form::Varint),
    ("min", 11, Form::Double),
    ("max", 12, Form::Double),
]);

static EXPONENTIAL_POINT: Message = Message(&[
    ("attributes", 1, Form::Many(&PAIR)),
    ("startTimeUnixNano", 2, Form::Fixed),
    ("timeUnixNano", 3, Form::Fixed),
    ("count", 4, Form::Fixed),
    ("sum", 5, Form::Double),
    ("scale", 6, Form::Zigzag),
    ("zeroCount", 7, Form::Fixed),
    ("positive", 8, Form::One(&BUCKETS)),
    ("negative", 9, Form::One(&BUCKETS)),
    ("flags", 10, Form::Varint),
    ("exemplars", 11, Form::Many(&EXEMPLAR)),
    ("min", 12, Form::Double),
    ("max", 13, Form::Double),
    ("zeroThreshold", 14, Form::Double),
]);

static BUCKETS: Message = Message(&[
    ("offset", 1, Form::Zigzag),
    ("bucketCounts", 2, Form::Varints),
]);

static SUMMARY_POINT: Message = Message(&[
    ("attributes", 7, Form::Many(&PAIR)),
    ("startTimeUnixNano", 2, Form::Fixed),
    ("timeUnixNano", 3, Form::Fixed),
    ("count", 4, Form::Fixed),
    ("sum", 5, Form::Double),
    ("quantileValues", 6, Form::Many(&QUANTILE)),
    ("flags", 8, Form::Varint),
]);

static QUANTILE: Message = Message(&[("quantile", 1, Form::Double), ("value", 2, Form::Double)]);

static EXEMPLAR: Message = Message(&[
    ("filteredAttributes", 7, Form::Many(&PAIR)),
    ("timeUnixNano", 2, Form::Fixed),
    ("asDouble", 3, Form::Double),
    ("asInt", 6, Form::SignedFixed),
    ("spanId", 4, Form::Hex),
    ("traceId", 5, Form::Hex),
]);

static PAIR: Message = Message(&[("key", 1, Form::Text), ("value", 2, Form::One(&ANY))]);

static ANY: Message = Message(&[
    ("stringValue", 1, Form::Text),
    ("boolValue", 2, Form::Bool),
    ("intValue", 3, Form::SignedVarint),
    ("doubleValue", 4, Form::Double),
    ("arrayValue", 5, Form::One(&LIST)),
    ("kvlistValue", 6, Form::One(&MAP)),
    ("bytesValue", 7, Form::Base64),
]);

static LIST: Message = Message(&[("values", 1, Form::Many(&ANY))]);

static MAP: Message = Message(&[("values", 1, Form::Many(&PAIR))]);
