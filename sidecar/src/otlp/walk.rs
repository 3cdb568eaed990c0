//! From the bytes of a request to the store, point by point.

use std::sync::Arc;

use super::{
    attributes::key_value,
    points::{self, Scratch, Unread},
    wire::{Field, Fields, Malformed},
};
use crate::store::{Hint, Intake, Metric, Origin, Pair, Refusal, Scope, Sort, Temporality};

/// Takes all metrics of a request in. Bytes that are no protobuf fail the whole request; what came before is kept, and
/// comes again when the sender mends it.
pub fn metrics(request: &[u8], intake: &mut Intake<'_>) -> Result<(), Malformed> {
    let mut scratch = Scratch::default();
    let mut fields = Fields::of(request);
    while let Some(field) = fields.read()? {
        if field.number == 1 {
            of_target(field.content.bytes()?, intake, &mut scratch)?;
        }
    }
    Ok(())
}

fn each<'a>(
    message: &'a [u8],
    number: u32,
    mut visit: impl FnMut(&'a [u8]) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let mut fields = Fields::of(message);
    while let Some(field) = fields.read()? {
        if field.number == number {
            visit(field.content.bytes()?)?;
        }
    }
    Ok(())
}

fn of_target<'a>(
    message: &'a [u8],
    intake: &mut Intake<'_>,
    scratch: &mut Scratch<'a>,
) -> Result<(), Malformed> {
    let mut resource = &[][..];
    each(message, 1, |found| {
        resource = found;
        Ok(())
    })?;
    let origin = intake.origin(resource, || {
        let rows = rows(resource, 1).map_err(|_| Refusal::Text)?;
        super::pairs(&rows)
    });
    each(message, 2, |scope| {
        of_scope(scope, &origin, intake, scratch)
    })
}

fn of_scope<'a>(
    message: &'a [u8],
    origin: &Result<Arc<Origin>, Refusal>,
    intake: &mut Intake<'_>,
    scratch: &mut Scratch<'a>,
) -> Result<(), Malformed> {
    let (mut described, mut schema) = (&[][..], &[][..]);
    let mut fields = Fields::of(message);
    while let Some(field) = fields.read()? {
        match field.number {
            1 => described = field.content.bytes()?,
            3 => schema = field.content.bytes()?,
            _ => {}
        }
    }
    let scope = match origin {
        Ok(origin) => known_scope(described, schema, intake).map(|scope| (&**origin, scope)),
        Err(refusal) => Err(*refusal),
    };
    each(message, 2, |metric| {
        let scope = scope.as_ref().map(|(origin, scope)| (*origin, &**scope));
        of_metric(metric, scope.map_err(|refusal| *refusal), intake, scratch)
    })
}

fn known_scope(
    described: &[u8],
    schema: &[u8],
    intake: &mut Intake<'_>,
) -> Result<Arc<Scope>, Refusal> {
    let read = || scope_labels(described, schema);
    if schema.is_empty() {
        return intake.scope(described, read);
    }
    // The length keeps two that end alike apart.
    let length = (described.len() as u64).to_le_bytes();
    let key = [&length[..], described, schema].concat();
    intake.scope(&key, read)
}

/// What a scope says of itself, as labels: its attributes must not take the place of its name.
fn scope_labels(described: &[u8], schema: &[u8]) -> Result<Vec<Pair>, Refusal> {
    const FIXED: [&str; 3] = ["name", "version", "schema_url"];
    let text = |bytes: &[u8]| {
        let text = std::str::from_utf8(bytes).map_err(|_| Refusal::Text)?;
        Ok::<_, Refusal>(text.to_owned())
    };
    let (mut name, mut version) = (&[][..], &[][..]);
    let mut fields = Fields::of(described);
    while let Some(field) = fields.read().map_err(|_| Refusal::Text)? {
        match field.number {
            1 => name = field.content.bytes().map_err(|_| Refusal::Text)?,
            2 => version = field.content.bytes().map_err(|_| Refusal::Text)?,
            _ => {}
        }
    }
    let rows = rows(described, 3).map_err(|_| Refusal::Text)?;
    let mut labels = Vec::new();
    for pair in super::pairs(&rows)? {
        if !FIXED.contains(&pair.name.replace(['.', '-'], "_").as_str()) {
            labels.push(Pair {
                name: format!("otel_scope_{}", pair.name),
                value: pair.value,
            });
        }
    }
    for (word, value) in FIXED.into_iter().zip([name, version, schema]) {
        labels.push(Pair {
            name: format!("otel_scope_{word}"),
            value: text(value)?,
        });
    }
    labels.retain(|pair| !pair.value.is_empty());
    Ok(labels)
}

/// All fields of a number, one after the other as they were sent.
fn rows(message: &[u8], number: u32) -> Result<Vec<u8>, Malformed> {
    let mut rows = Vec::new();
    let mut fields = Fields::of(message);
    while let Some(Field {
        number: found,
        place: (from, to),
        ..
    }) = fields.read()?
    {
        if found == number {
            rows.extend_from_slice(message.get(from..to).unwrap_or_default());
        }
    }
    Ok(rows)
}

/// The points of a metric.
struct Data<'a> {
    message: &'a [u8],
    sort: Sort,
}

impl<'a> Data<'a> {
    /// Of the last sort that the metric has; several would be a mistake of the sender.
    fn of(metric: &'a [u8]) -> Result<Option<Self>, Malformed> {
        let mut last = None;
        let mut fields = Fields::of(metric);
        while let Some(field) = fields.read()? {
            if matches!(field.number, 5 | 7 | 9 | 10 | 11) {
                last = Some((field.number, field.content.bytes()?));
            }
        }
        let Some((number, message)) = last else {
            return Ok(None);
        };
        let (mut temporality, mut is_monotonic) = (0, false);
        // Neither gauges nor summaries say how they count, so their points need not be gone over for it.
        let mut fields = match number {
            7 | 9 | 10 => Fields::of(message),
            _ => Fields::of(&[]),
        };
        while let Some(field) = fields.read()? {
            match (number, field.number) {
                (_, 2) => temporality = field.content.varint()?,
                (7, 3) => is_monotonic = field.content.varint()? != 0,
                _ => {}
            }
        }
        let temporality = match temporality {
            1 => Temporality::Delta,
            2 => Temporality::Cumulative,
            _ => Temporality::Unspecified,
        };
        let sort = match number {
            5 => Sort::Gauge,
            7 => Sort::Sum {
                temporality,
                is_monotonic,
            },
            9 => Sort::Histogram(temporality),
            10 => Sort::Exponential(temporality),
            _ => Sort::Summary,
        };
        Ok(Some(Self { message, sort }))
    }

    fn count(&self) -> Result<u64, Malformed> {
        let mut points = 0;
        each(self.message, 1, |_| {
            points += 1;
            Ok(())
        })?;
        Ok(points)
    }
}

/// What a metric says of itself.
#[derive(Default)]
struct Head<'a> {
    name: &'a [u8],
    description: &'a [u8],
    unit: &'a [u8],
    hint: Hint,
}

impl<'a> Head<'a> {
    fn of(metric: &'a [u8]) -> Result<Self, Malformed> {
        let mut head = Self::default();
        let mut fields = Fields::of(metric);
        while let Some(field) = fields.read()? {
            match field.number {
                1 => head.name = field.content.bytes()?,
                2 => head.description = field.content.bytes()?,
                3 => head.unit = field.content.bytes()?,
                12 => head.hint = hinted(field.content.bytes()?)?.unwrap_or(head.hint),
                _ => {}
            }
        }
        Ok(head)
    }
}

fn of_metric<'a>(
    message: &'a [u8],
    scope: Result<(&Origin, &Scope), Refusal>,
    intake: &mut Intake<'_>,
    scratch: &mut Scratch<'a>,
) -> Result<(), Malformed> {
    let Some(data) = Data::of(message)? else {
        return Ok(());
    };
    let head = Head::of(message)?;
    let shown = String::from_utf8_lossy(head.name);
    let stream = scope.and_then(|(origin, scope)| {
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| Refusal::Text);
        let metric = Metric {
            name: text(head.name)?,
            description: &String::from_utf8_lossy(head.description),
            unit: text(head.unit)?,
            sort: data.sort,
            hint: head.hint,
        };
        intake.stream(origin, scope, &metric)
    });
    let shelved = stream.and_then(|stream| match stream.refusal() {
        Some(refusal) => {
            stream.refused(refusal, data.count().unwrap_or_default());
            Err(refusal)
        }
        None => Ok(stream),
    });
    let stream = match shelved {
        Ok(stream) => stream,
        Err(refusal) => {
            intake.tally.refuse(refusal, data.count()?, &shown);
            return Ok(());
        }
    };
    let Some(mut open) = intake.open(&stream) else {
        return Ok(());
    };
    each(data.message, 1, |point| {
        match points::read(point, data.sort, scratch) {
            Ok(point) => {
                open.take(&point);
                Ok(())
            }
            Err(Unread::TooManyBuckets) => {
                open.refuse(Refusal::Buckets);
                Ok(())
            }
            Err(Unread::Malformed(malformed)) => Err(malformed),
        }
    })
}

/// What Prometheus said that a metric is, before it came by OTLP.
fn hinted(message: &[u8]) -> Result<Option<Hint>, Malformed> {
    let (name, value) = key_value(message)?;
    if name != b"prometheus.type" {
        return Ok(None);
    }
    let mut text = &[][..];
    each(value, 1, |found| {
        text = found;
        Ok(())
    })?;
    Ok(match text {
        // The specification spelt it so once.
        b"unknown" | b"unkown" => Some(Hint::Unknown),
        b"info" => Some(Hint::Info),
        b"stateset" => Some(Hint::StateSet),
        _ => None,
    })
}
